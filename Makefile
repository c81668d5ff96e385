# A fresh machine needs Python 3.11+, pip and make. Everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup test check demo bench bench-scaling bench-million faults format clean
help:            ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /	/' | expand -t 14

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "TierMem needs Python 3.11 or newer; set PYTHON=python3.x")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

setup: $(STAMP)  ## make .venv with the tested versions

test: $(STAMP)   ## run all tests
	$(BIN)/python -m pytest

check: $(STAMP)  ## lint, format, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

demo: $(STAMP)   ## a pinned warning survives 200 rounds of small talk
	$(BIN)/python simulations/scam_warning.py

bench: $(STAMP)  ## one tick loop against mem0, Chroma and LangGraph (ARGS="--agents 1000 --memories 200")
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python benchmarks/tick_loop.py $(ARGS)

bench-scaling: $(STAMP) ## cost per agent from 10 to 10,000 agents
	$(BIN)/python benchmarks/scaling.py $(ARGS)

bench-million: $(STAMP) ## memory and opening time of a million memories
	$(BIN)/python benchmarks/million.py $(ARGS)

faults: $(STAMP) ## kill a writing process 1,000 times and look for a lost memory
	TIERMEM_KILLS=1000 $(BIN)/python -m pytest tests/faults -k kill

format: $(STAMP) ## let ruff format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:           ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
