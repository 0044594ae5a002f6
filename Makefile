# Everything sets itself up: the first target that runs makes .venv and installs into it.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install match test test-slow bench parity check clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

match: $(STAMP)
	$(BIN)/rlgym-bridge match rlbot.cfg --pace lockstep

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow

bench: $(STAMP)
	$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/python -m pip install --quiet -c constraints.txt torch
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.benchmarks.bench

parity: $(STAMP)
	$(BIN)/python -m tests.parity --write docs/parity.md

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
