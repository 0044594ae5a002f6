# Everything sets itself up: the first target that runs makes .venv and installs into it.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TRAIN := $(VENV)/.train
TESTS := $(VENV)/.training
DOCS := $(VENV)/.docs
MADE := $(VENV)/.made

.PHONY: install match train test test-slow fuzz release-check bench parity physics docs check clean

install: $(STAMP)

# .venv is made anew where its Python is not supported, or is not the PYTHON that the command names
SUPPORTED := 3.11|3.12
VERSION := -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>&1 | head -n 1
NAMED := $(filter command environment,$(origin PYTHON))

$(MADE): FORCE
	@had=$$($(BIN)/python $(VERSION)); new=$$($(PYTHON) $(VERSION)); \
	case "$$had" in $(SUPPORTED)) \
	    if [ -z "$(NAMED)" ] || [ "$$had" = "$$new" ]; then [ -e $@ ] || touch -t 200001010000 $@; exit 0; fi ;; esac; \
	case "$$new" in $(SUPPORTED)) ;; *) \
	    echo "PYTHON is $(PYTHON) ($$new), expected Python 3.11 or 3.12, as in: make install PYTHON=python3.12" >&2; \
	    exit 1 ;; esac; \
	rm -rf $(VENV) && $(PYTHON) -m venv $(VENV) && touch $@ || { rm -rf $(VENV); exit 1; }

FORCE:

$(STAMP): pyproject.toml constraints.txt $(MADE)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

# torch and what else training needs; a torch that is there stays, such as the CPU build
$(TRAIN): pyproject.toml constraints.txt $(MADE)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[train]"
	touch $@

$(TESTS): $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,train,view,replay,rllib]"
	touch $@

$(DOCS): $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $@

match: $(STAMP)
	mkdir -p logs
	$(BIN)/rlgym-bridge match rlbot.cfg --pace lockstep --record logs/match-$$(date +%Y%m%d-%H%M%S).mcap

train: $(TRAIN)
	$(BIN)/python -m training

test: $(TESTS)
	$(BIN)/python -m pytest -n 3 --dist worksteal

test-slow: $(TESTS) $(DOCS)
	$(BIN)/python -m pytest -m slow

# everything that reads what others have written: make fuzz SECONDS=3600
SECONDS ?= 300
fuzz: $(TESTS)
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS)

# what the release workflow does, but publish: builds, checks, installs from the wheel, plays
release-check: $(TESTS)
	$(BIN)/python -m tests.support.release_check

bench: $(TESTS)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.benchmarks.bench

parity: $(STAMP)
	$(BIN)/python -m tests.parity --write docs/measured/parity.md

# needs recordings of the real game, which are no part of the project
physics: $(TESTS)
	$(BIN)/python -m tests.physics --write docs/measured/physics.md

docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

check: $(TESTS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/check_types.py

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
