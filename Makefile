# Everything sets itself up: the first target that runs makes .venv and installs into it.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TRAIN := $(VENV)/.training

.PHONY: install match train test test-slow bench parity check clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

$(TRAIN): $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,train,view,replay,rllib]"
	touch $@

match: $(STAMP)
	mkdir -p logs
	$(BIN)/rlgym-bridge match rlbot.cfg --pace lockstep --record logs/match-$$(date +%Y%m%d-%H%M%S).mcap

train: $(TRAIN)
	$(BIN)/python -m training

test: $(TRAIN)
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(TRAIN)
	$(BIN)/python -m pytest -m slow

bench: $(TRAIN)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.benchmarks.bench

parity: $(STAMP)
	$(BIN)/python -m tests.parity --write docs/parity.md

check: $(TRAIN)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
