# Everything sets itself up: only python3 (3.10 or newer), pip and make are needed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# pip makes it for what it copies, not for what stays where it is: a start would take 0.1 s longer
BYTECODE := @$(BIN)/python -m compileall -q src
WORKERS ?= auto
# tests of a file share what they compile; a worker each, long files first as tests/conftest.py puts them, and no
# threads of BLAS that wait for each other; a worker that died ends the run, which would else wait for it for ever
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
  --max-worker-restart 0

.PHONY: demo test test-all test-avx2 learn docs cheat-sheet links spelling dist bench bench-others bench-check bench-record nightly check style types layers house coverage sizes matrix replay setup clean

demo: $(VENV)/.core            ## the main job: equations in demo/, checks, throughput
	$(BIN)/drevo demo

test: $(VENV)/.test            ## the tests that one waits for
	$(PYTEST) --timeout 600 -m "not nightly and not slow"

test-all: $(VENV)/.test        ## those and the slow ones, whose kin is in make test: browsers, clusters, more robots
	$(PYTEST) --timeout 600 -m "not nightly"

# a file or two of every engine that makes machine code: kernels of one state and of batches in both layouts, their
# derivatives and products, loops over bodies, constraints, steps under both laws, motions, streams, lists
AVX2 = $(patsubst %,tests/test_%.py,neighbours linear_kernels constraint_kernels large products step simulate \
  derivative_kernels runtime ir batch_last large_inverses high_orders streaming configurations image)

test-avx2: $(VENV)/.test       ## machine code as of processors without AVX-512, which most are: some two minutes
	DREVO_PROCESSOR=avx2 $(PYTEST) --timeout 600 -m "not nightly" $(AVX2)

learn: $(VENV)/.learn          ## a cheetah learns to run, by PyTorch on the processor: some six minutes
	$(BIN)/python examples/learn_to_run.py

bench: $(VENV)/.bench          ## Drevo against its peers, into benchmarks/
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/operations.py
	$(BIN)/python benchmarks/simulation.py
	$(BIN)/python benchmarks/one_call.py

bench-others: $(VENV)/.bench   ## the same, and peers that need an environment of their own
	test -d build/peers || $(PYTHON) -m venv build/peers
	for p in frax adam-robotics mujoco-mjx drake; do \
	  build/peers/bin/python -m pip --disable-pip-version-check --quiet install $$p || echo "$$p does not install"; done
	$(BIN)/python benchmarks/peers.py --others build/peers/bin/python

bench-check: $(VENV)/.bench    ## fails where a ratio to a peer has fallen below the recorded one
	$(BIN)/python benchmarks/peers.py --check

bench-record: $(VENV)/.bench   ## keeps the ratios of this processor for bench-check
	$(BIN)/python benchmarks/peers.py --record

# what a lever may change: programs against numbers that were found without them
PROGRAMS = $(patsubst %,tests/test_%.py,differential example_robots khalil vectors fused parameters emit higher \
  derivative_kernels constraints loops linearise simulate large_angles singular batch_last levers)

nightly: $(VENV)/.dev          ## what needs longer
	DREVO_TREES=10000 DREVO_WORDS=300 $(PYTEST) --dist worksteal
	for lever in $$($(BIN)/python -c 'from drevo.codegen.graph.levers import LEVERS; print(*LEVERS)'); do \
	  echo "without $$lever"; DREVO_WITHOUT=$$lever $(PYTEST) -m "not nightly" $(PROGRAMS) || exit 1; done

check: style types layers house ## what a commit must pass beside the tests

style: $(VENV)/.dev
	$(BIN)/ruff format --check src tests benchmarks docs examples tools
	$(BIN)/ruff check src tests benchmarks docs examples tools

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

house: $(VENV)/.dev            ## sizes of rooms and words of the code, by the numbers in pyproject.toml
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/test_house.py

coverage: $(VENV)/.dev         ## lines and branches that the tests reach, into docs/coverage.md
	rm -f .coverage .coverage.*
	$(PYTEST) -m "not nightly" --cov --cov-report=
	$(BIN)/python tools/reached.py

sizes: $(VENV)/.dev            ## lines, functions, the wheel and the import, into docs/sizes.md
	$(BIN)/python tools/sizes.py

PYTHONS ?= python3.10 python3.11 python3.12 python3.13
matrix:                        ## the tests on every Python that is found, each in an environment of its own
	for python in $(PYTHONS); do \
	  if command -v $$python; then $(MAKE) test PYTHON=$$python VENV=build/$$(basename $$python) || exit 1; \
	  else echo "$$python is not installed: left out"; fi; done

docs: $(VENV)/.docs            ## the pages and the reference as HTML, into build/docs; a warning fails
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/doctrees docs build/docs
	@echo build/docs/index.html

cheat-sheet: docs              ## the cheat sheet as a PDF; needs chromium
	chromium --headless --no-sandbox --no-pdf-header-footer --print-to-pdf=build/docs/cheat-sheet.pdf \
	  file://$(CURDIR)/build/docs/cheat-sheet.html

links: $(VENV)/.docs           ## whether the links of the docs lead somewhere; needs the network
	$(BIN)/python -m sphinx -q -b linkcheck -d build/doctrees docs build/links

spelling: $(VENV)/.docs        ## misspelt words in pages, sources and tests
	$(BIN)/codespell --config tools/codespell.cfg

dist: $(VENV)/.dev             ## the sdist and the wheel, each tried in an environment of its own
	$(BIN)/python tools/dist.py

BASE ?= HEAD
replay: $(VENV)/.test          ## what the working tree makes of fifty robots against what BASE made, to the bit
	rm -rf build/replay && mkdir -p build/replay && git archive $(BASE) src | tar -x -C build/replay
	PYTHONPATH=build/replay/src $(BIN)/python tools/replay.py record build/replay/before.json
	PYTHONPATH=src $(BIN)/python tools/replay.py record build/replay/after.json
	$(BIN)/python tools/replay.py compare build/replay/before.json build/replay/after.json

setup: $(VENV)/.test $(VENV)/.dev

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m venv --clear --without-pip $(VENV) && \
	$(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }  # where ensurepip is left out

# a stamp is newer than pyproject.toml, or the packages are looked at again
$(VENV)/.core: pyproject.toml | $(VENV)/bin/python
	$(PIP) install -e .
	$(BYTECODE)
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(PIP) install -e '.[test]'
	$(BYTECODE)
	@touch $@ $(VENV)/.core

$(VENV)/.bench: pyproject.toml | $(VENV)/bin/python
	$(PIP) install -e '.[test,bench]'
	$(BYTECODE)
	@touch $@ $(VENV)/.test $(VENV)/.core

# of PyTorch what needs no graphics processor, a tenth of the other
$(VENV)/.learn: pyproject.toml | $(VENV)/bin/python
	$(PIP) install 'torch>=2.8' --index-url https://download.pytorch.org/whl/cpu
	$(PIP) install -e '.[torch,rl]'
	@touch $@ $(VENV)/.core

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) install -e '.[test,dev]'
	@touch $@ $(VENV)/.test $(VENV)/.core

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(PIP) install -e '.[design,view,docs]'
	@touch $@ $(VENV)/.core

clean:                         ## forgets the environment and what was made
	rm -rf $(VENV) demo build
