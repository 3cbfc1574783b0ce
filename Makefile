# Two commands matter on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
ORACLE ?= .venv-oracle
PEERS  ?= .venv-peers
REAL   ?= .venv-real
RIVALS ?= .venv-rivals
REPLAY ?= .venv-replay
BIN    := $(VENV)/bin

# One thread for every linear-algebra library: what is measured and tested is one core.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

# Data sets that are not part of the project, where somebody has laid them beside it.
ifneq ($(wildcard ../shared/data),)
export BOCA_DATA ?= $(abspath ../shared/data)
endif

.DEFAULT_GOAL := help
.PHONY: help demo test lint types imports unit test-slow test-faults docs bench paper overhead scale oracle peers speed real rivals replay clean

help:            ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	@touch $@

demo: $(VENV)/.demo          ## install, then tune a real model with and without fidelities, five seeds side by side
	$(BIN)/python examples/boosting.py

test: lint types imports unit  ## everything that must pass

lint: $(VENV)/.dev           ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev          ## mypy --strict
	$(BIN)/mypy

imports: $(VENV)/.dev        ## imports point one way
	$(BIN)/lint-imports --no-cache

unit: $(VENV)/.dev           ## the tests, on two cores
	$(BIN)/python -m pytest -n 2 -m 'not slow and not faults'

test-slow: $(VENV)/.dev      ## the tests that take minutes
	$(BIN)/python -m pytest -n 2 -m slow

test-faults: $(VENV)/.dev    ## many kills, full disks, servers that go away (BOCA_FAULTS=500: so many kills)
	$(BIN)/python -m pytest -n 2 -m faults

docs: $(VENV)/.dev           ## the documentation, as a site in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: $(VENV)/.dev          ## simple regret of every method on the synthetic problems (hours)
	$(BIN)/boca bench run --out bench-results
	$(BIN)/boca bench table bench-results
	$(BIN)/boca bench figures bench-results

paper: $(VENV)/.dev          ## the figures of the paper, runs and all; it says how many hours first (needs the data)
	for figure in 1 2 gain good-set bound; do $(BIN)/boca bench run --figure $$figure --out paper-results || exit 1; done
	$(BIN)/boca bench run --figure all --out paper-results
	$(BIN)/boca bench table paper-results

overhead: $(ORACLE)/.done     ## seconds per suggestion, beside scikit-learn and BoTorch in the same run
	$(ORACLE)/bin/python benchmarks/overhead.py

scale: $(VENV)/.dev          ## a suggestion with 50 to 10,000 results: cost, parts, threads, regret (an hour or two)
	$(BIN)/python benchmarks/scale.py cost
	$(BIN)/python benchmarks/scale.py parts
	$(BIN)/python benchmarks/scale.py threads
	$(BIN)/python benchmarks/scale.py batch
	$(BIN)/python benchmarks/scale.py workers
	$(BIN)/python benchmarks/scale.py regret

oracle: $(ORACLE)/.done       ## the tests against BoTorch and pymoo, in an environment of their own
	$(ORACLE)/bin/python -m pytest tests/oracle

# BoTorch is never a dependency: it serves as an oracle and as a reference of speed.  PyTorch comes first, in a
# version with a small build; asked for by another package, it would bring gigabytes.
$(ORACLE)/.done: pyproject.toml
	$(PYTHON) -m venv $(ORACLE)
	$(ORACLE)/bin/python -m pip install --quiet torch==2.13.0
	$(ORACLE)/bin/python -m pip install --quiet botorch pymoo
	$(ORACLE)/bin/python -m pip install --quiet --editable '.[dev]'
	@touch $@

peers: $(PEERS)/.done         ## the same problems with BoTorch, Optuna and SMAC, in an environment of their own (days)
	$(PEERS)/bin/python -m benchmarks.peers run --out peers-results
	$(PEERS)/bin/python -m benchmarks.peers table peers-results

# As above, PyTorch comes first.  With greenlet Optuna's GPSampler took 4.6 s for a run on Currin, without 14.8 s.
$(PEERS)/.done: pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet torch==2.13.0
	$(PEERS)/bin/python -m pip install --quiet botorch optuna greenlet smac
	$(PEERS)/bin/python -m pip install --quiet --editable .
	@touch $@

speed: $(PEERS)/.done         ## a suggestion of ours beside BoTorch's, with 100, 200 and 500 results (an hour)
	$(PEERS)/bin/python -m benchmarks.peers.speed

real: $(REAL)/.done           ## real tuning tasks with Optuna's samplers and pruners, in an environment of their own (days)
	$(REAL)/bin/python -m benchmarks.real run --out real-results
	$(REAL)/bin/python -m benchmarks.real table real-results

# onnxruntime runs the networks of YAHPO.  As above, PyTorch comes first, for Optuna's GPSampler.
$(REAL)/.done: pyproject.toml
	$(PYTHON) -m venv $(REAL)
	$(REAL)/bin/python -m pip install --quiet torch==2.13.0
	$(REAL)/bin/python -m pip install --quiet optuna greenlet onnxruntime
	$(REAL)/bin/python -m pip install --quiet --editable '.[sklearn]'
	@touch $@

rivals: $(RIVALS)/.done       ## eight of the real tasks with SMAC, DEHB, BoTorch and Ax (days)
	$(RIVALS)/bin/python -m benchmarks.real run --out real-results --half eight \
	  --method benchmarks.real.rivals:DEHB --method benchmarks.real.rivals:Ax \
	  --method benchmarks.peers.smac:MultiFidelity --method benchmarks.peers.botorch:QLogNEI
	$(RIVALS)/bin/python -m benchmarks.real table real-results --half eight

# DEHB brings NumPy 1.26.  HEBO is not here: see benchmarks/real/rivals.py.
$(RIVALS)/.done: pyproject.toml
	$(PYTHON) -m venv $(RIVALS)
	$(RIVALS)/bin/python -m pip install --quiet torch==2.13.0
	$(RIVALS)/bin/python -m pip install --quiet botorch optuna onnxruntime smac dehb ax-platform
	$(RIVALS)/bin/python -m pip install --quiet --editable '.[sklearn]'
	@touch $@

replay: $(VENV)/.dev $(REPLAY)/.done  ## decisions of an old commit, recorded once, made again and compared in every bit (minutes)
	$(REPLAY)/bin/python -E -m benchmarks.replay.record --out build/replay/studies
	$(BIN)/python -m benchmarks.replay.compare build/replay/studies --jobs 2

# The old commit beside the working tree, with the same numerical libraries: other ones round differently.
PINNED := $(shell sed -n 's/^COMMIT = "\(.*\)"/\1/p' benchmarks/replay/__init__.py)
$(REPLAY)/.done: benchmarks/replay/__init__.py | $(VENV)/.dev
	rm -rf build/replay $(REPLAY)
	mkdir -p build/replay/old
	git archive $(PINNED) | tar -x -C build/replay/old
	$(BIN)/python -m pip freeze | grep -iE '^(numpy|scipy|sqlalchemy|cloudpickle)==' > build/replay/constraints.txt
	$(PYTHON) -m venv $(REPLAY)
	$(REPLAY)/bin/python -m pip install --quiet --constraint build/replay/constraints.txt './build/replay/old[postgres]'
	@touch $@

clean:           ## remove what make created
	rm -rf $(VENV) $(ORACLE) $(PEERS) $(REAL) $(RIVALS) $(REPLAY) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis \
	  bench-results paper-results peers-results real-results demo.png
