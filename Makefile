# Everything sets itself up: the first target that runs makes .venv and installs into it.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TRAIN := $(VENV)/.train
TESTS := $(VENV)/.training
DOCS := $(VENV)/.docs
MADE := $(VENV)/.made
NATIVE := $(VENV)/.native

# whether a cargo is on the path that can build native/; any other use of the project needs none
CARGO := $(shell cargo --version 2>&1 | \
    awk '$$1 == "cargo" {split($$2, v, "."); if (v[1] > 1 || v[1] == 1 && v[2] >= 95) print 1}')
SIMULATOR := $(if $(CARGO),$(NATIVE),no-native)
NO_CARGO := cargo 1.95 or later is not on the path: get Rust from https://rustup.rs, then enter: make native

.PHONY: install native no-native match play train test test-slow fuzz planted mutation release-check bench parity physics docs check clean

# cargo's tests run the Python of .venv, and have to find its library
CARGO_PYTHON = PYO3_PYTHON="$(CURDIR)/$(BIN)/python" \
    LD_LIBRARY_PATH="$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_config_var("LIBDIR"))')"
CRATE := --manifest-path native/Cargo.toml
RUST_TESTS := $(if $(CARGO),$(shell grep -rls '\[test\]' native/src))

install: $(STAMP) $(SIMULATOR)

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

# rocketsim-batch, which steps RocketSim 3: a minute the first time, and again where its sources change.
# PIP_CONSTRAINT holds in pip's own environment for builds, too, where --constraint does not.
native: $(NATIVE)

$(NATIVE): native/Cargo.toml native/Cargo.lock native/pyproject.toml native/src \
    $(shell find native/src native/python native/build.rs native/.cargo -type f ! -name "*.py[co]" 2>/dev/null) | $(STAMP)
	$(if $(CARGO),,$(error $(NO_CARGO)))
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --force-reinstall --no-deps ./native
	touch $@

# a rocketsim-batch that was installed by hand, such as a wheel of a release, needs no cargo
no-native: $(STAMP)
	@$(BIN)/python -c "import rocketsim_batch" 2>/dev/null || echo "RocketSim 2.2.1 plays and trains, and tests \
	of RocketSim 3 are skipped: $(NO_CARGO)" >&2

# torch and what else training needs; a torch that is there stays, such as the CPU build
$(TRAIN): pyproject.toml constraints.txt $(MADE)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[train]"
	touch $@

$(TESTS): $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,train,view,play,replay,ray,rllib]"
	touch $@

$(DOCS): $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $@

match: $(STAMP) $(SIMULATOR)
	mkdir -p logs
	$(BIN)/rlgym-bridge match rlbot.cfg --pace lockstep --record logs/match-$$(date +%Y%m%d-%H%M%S).mcap

play: $(STAMP) $(SIMULATOR)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[play]"
	$(BIN)/rlgym-bridge play

train: $(TRAIN) $(SIMULATOR)
	$(BIN)/python -m training

test: $(TESTS) $(SIMULATOR)
	$(BIN)/python -m pytest -n 3 --dist worksteal
	$(if $(RUST_TESTS),$(CARGO_PYTHON) cargo test $(CRATE) --quiet --locked --no-default-features --profile release-checked)

test-slow: $(TESTS) $(DOCS) $(SIMULATOR)
	$(BIN)/python -m pytest -m slow
	$(if $(CARGO),$(CARGO_PYTHON) ROCKETSIM_MESHES="$$($(BIN)/python -c 'from rlgym_bridge.user_input.extras import meshes_folder; print(meshes_folder())')" \
	    cargo test $(CRATE) --quiet --locked --no-default-features --profile release-checked --test modes -- --ignored)

# everything that reads what others have written: make fuzz SECONDS=3600
SECONDS ?= 300
fuzz: $(TESTS) $(SIMULATOR)
	$(BIN)/python -m tools.fuzz --seconds $(SECONDS)

# what compare says of 120 planted faults and of 120 clean recordings, from seed FIRST to LAST: hours
FIRST ?= 1
LAST ?= 120
planted: $(TESTS) $(SIMULATOR)
	$(BIN)/python -m tools.planted $(FIRST) $(LAST)
	$(BIN)/python -m tools.false_alarms $(FIRST) $(LAST)

# whether the tests notice the faults of tools/faults.toml; PLACES=rlgym_bridge/sim for those of a room
mutation: $(TESTS) $(SIMULATOR)
	$(BIN)/python -m tools.mutation_check $(PLACES)

# what the release workflow does, but publish: builds, checks, installs from the wheel, plays
release-check: $(TESTS)
	$(BIN)/python -m tools.release_check

bench: $(TESTS) $(SIMULATOR)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tools.benchmarks.bench

parity: $(STAMP)
	$(BIN)/python -m tools.parity --write lab/parity.md

# needs recordings of the real game, which are no part of the project
physics: $(TESTS)
	$(BIN)/python -m tools.physics --write lab/physics.md

docs: $(DOCS)
	$(BIN)/python docs_commands.py

check: $(TESTS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/check_types.py
	$(if $(CARGO),cargo fmt $(CRATE) --check)
	$(if $(CARGO),$(CARGO_PYTHON) cargo clippy $(CRATE) --quiet --release --locked --all-targets -- -D warnings)

clean:
	rm -rf $(VENV) build native/target *.egg-info .pytest_cache .mypy_cache .ruff_cache
