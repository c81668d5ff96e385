"""Break each adapter on purpose, and see whether its own tests notice.

A row of the table is a place in an adapter's code, what stands there instead, and what that breaks:
a search finds nothing, or the oldest memories in the place of the nearest; the order of time is
turned round; what was kept is lost; a filter is ignored. With each, the adapter's own tests run
until one fails. A line for an adapter says how many were noticed, and which were not.

This script does so for the adapters whose frameworks are installed for development; the others are
broken by the scripts beside this one, in their own environments. The exit code is 0 if all is
noticed.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import suites

NOTHING, OLDEST, ORDER, STATE, FILTER = "nothing", "oldest", "order", "state", "filter"
TESTS = suites.ROOT / "tests/adapters"


class Mutation(NamedTuple):
    """A place of an adapter's code that is broken."""

    kind: str
    module: str
    """The module, without ``tiermem.``."""
    code: str
    """The code, which is in the module once."""
    instead: str


_CAMEL_SEARCH = "in_mind(self.memories, self._topic, self.retrieve_limit + len(newest))"
TABLE: dict[str, Sequence[Mutation]] = {
    "agent_society": (
        Mutation(
            NOTHING,
            "agent_society",
            "hits = self.memories.search(str(query), max(1, int(limit or 20)))",
            "hits = Hits()",
        ),
        Mutation(
            NOTHING,
            "agent_society",
            "for hit in in_mind(self.memories, query, limit)",
            "for hit in ()",
        ),
        Mutation(
            OLDEST,
            "agent_society",
            "hits = self.memories.search(str(query), max(1, int(limit or 20)))",
            "hits = oldest(self.memories, limit)",
        ),
        Mutation(
            OLDEST,
            "agent_society",
            "for hit in in_mind(self.memories, query, limit)",
            "for hit in oldest(self.memories, limit)",
        ),
        Mutation(
            ORDER,
            "agent_society",
            "[self._episode(each) for each in self.memories.all()]",
            "[self._episode(each) for each in self.memories.all()[::-1]]",
        ),
        Mutation(
            STATE,
            "agent_society",
            "_store(memories, AgentMemoryStore(workspace_root, agent_id=agent_id).iter_episodes())",
            "pass",
        ),
        Mutation(
            FILTER,
            "agent_society",
            'if each["id"] not in read',
            "if each",
        ),
    ),
    "autogen": (
        Mutation(
            NOTHING,
            "autogen",
            "_ranked(await in_turn(self.memories, AgentMemory.search, text, limit, **options))",
            "_ranked(Hits())",
        ),
        Mutation(
            NOTHING,
            "autogen",
            "hits = await in_turn(self.memories, in_mind, query, self.limit)",
            "hits = Hits()",
        ),
        Mutation(
            OLDEST,
            "autogen",
            "hits = await in_turn(self.memories, in_mind, query, self.limit)",
            "hits = oldest(self.memories, self.limit)",
        ),
        Mutation(
            OLDEST,
            "autogen",
            "AgentMemory.search, text, limit, **options",
            "oldest, limit",
        ),
        Mutation(
            ORDER,
            "autogen",
            "MemoryQueryResult(results=list(map(_content, memories)))",
            "MemoryQueryResult(results=list(map(_content, reversed(memories))))",
        ),
        Mutation(STATE, "autogen", "for content in config.contents:", "for content in ():"),
        Mutation(
            FILTER,
            "autogen",
            "AgentMemory.search, text, limit, **options",
            "AgentMemory.search, text, limit",
        ),
    ),
    "camel": (
        Mutation(NOTHING, "camel", _CAMEL_SEARCH, "()"),
        Mutation(OLDEST, "camel", _CAMEL_SEARCH, "oldest(self.memories, 3)"),
        Mutation(
            ORDER,
            "camel",
            "rest = rest[max(0, len(rest) - self.window_size) :]",
            "rest = rest[: self.window_size]",
        ),
        Mutation(STATE, "camel", "if _number(memory) == self._number", "if False"),
        Mutation(
            FILTER,
            "camel",
            'and hit.memory.metadata.get("speaker") != "system"',
            "and True",
        ),
        Mutation(FILTER, "camel", "if hit.memory.id not in newest", "if True"),
    ),
    "concordia": (
        Mutation(
            NOTHING,
            "concordia.memory_bank",
            "hits = agent.search(query, _positive(k), context_tokens=_MOST_TOKENS)",
            "hits = Hits() if _positive(k) else ()",
        ),
        Mutation(
            OLDEST,
            "concordia.memory_bank",
            "hits = agent.search(query, _positive(k), context_tokens=_MOST_TOKENS)",
            "hits = oldest(agent, _positive(k))",
        ),
        Mutation(ORDER, "concordia.memory_bank", "[-_positive(k) :]", "[: _positive(k)]"),
        Mutation(
            ORDER,
            "concordia.memory_bank",
            "[] if self._agent is None else self._agent.all()",
            "[] if self._agent is None else self._agent.all()[::-1]",
        ),
        Mutation(
            STATE,
            "concordia.memory_bank",
            "self._restore(agent, rows)",
            "self._restore(agent, [])",
        ),
        Mutation(FILTER, "concordia.memory_bank", "if selector_fn(text)", "if True"),
    ),
    "google_adk": (
        Mutation(
            NOTHING,
            "google_adk",
            "[_entry(hit.memory) for hit in hits]",
            "[_entry(hit.memory) for hit in Hits()]",
        ),
        Mutation(
            OLDEST,
            "google_adk",
            "in_turn(self._agent(app_name, user_id), in_mind, query, self.limit)",
            "in_turn(self._agent(app_name, user_id), oldest, self.limit)",
        ),
        Mutation(
            ORDER,
            "google_adk",
            "for event in new.values():",
            "for event in reversed(new.values()):",
        ),
        Mutation(
            STATE,
            "google_adk",
            "return list(newest[0]) if newest else []",
            "return []",
        ),
        Mutation(FILTER, "google_adk", "flat(own), said", "{}, said"),
    ),
    "langgraph": (
        Mutation(
            NOTHING,
            "langgraph.searches",
            "return [Found(hit.memory, hit.score) for hit in hits]",
            "return []",
        ),
        Mutation(
            OLDEST,
            "langgraph.searches",
            "hits = sorted(chain.from_iterable(kept), key=_place)",
            "hits = sorted(chain.from_iterable(kept), key=lambda hit: hit.memory.sequence)",
        ),
        Mutation(
            ORDER,
            "langgraph.searches",
            "key=lambda memory: -memory.created_tick",
            "key=lambda memory: memory.created_tick",
        ),
        Mutation(
            ORDER,
            "langgraph.searches",
            "reversed(items.bank.agent(agent).all())",
            "items.bank.agent(agent).all()",
        ),
        Mutation(
            STATE,
            "langgraph.items",
            "if isinstance(value, dict):\n            return value",
            "if False:\n            return value",
        ),
        Mutation(
            FILTER,
            "langgraph.searches",
            "not scope.op.filter or matches(items.value(memory), scope.op.filter)",
            "True",
        ),
        Mutation(
            FILTER,
            "langgraph.searches",
            "if size <= len(namespace) and namespace[:size] in agents:",
            "if size <= len(namespace):\n                namespace = next(iter(agents))",
        ),
    ),
    "llama_index": (
        Mutation(NOTHING, "llama_index", 'return render(hits) if hits else ""', 'return ""'),
        Mutation(
            OLDEST,
            "llama_index",
            "await in_turn(self.memories, in_mind, query, self.limit)",
            "await in_turn(self.memories, oldest, self.limit)",
        ),
        Mutation(
            ORDER,
            "llama_index",
            "(messages or [])[-max(1, self.retrieval_context_window) :]",
            "(messages or [])[: max(1, self.retrieval_context_window)]",
        ),
        Mutation(
            STATE,
            "llama_index",
            "memories.add_many([_item(memories, message, text) for message, text in said])",
            "[_item(memories, message, text) for message, text in said]",
        ),
    ),
    "mem0": (
        Mutation(
            NOTHING,
            "mem0.finding",
            "return list(zip(outlines, rows.scores.tolist(), strict=False))",
            "return []",
        ),
        Mutation(
            NOTHING,
            "mem0.finding",
            "return [(hit.memory, hit.score) for hit in hits]",
            "return []",
        ),
        Mutation(
            OLDEST,
            "mem0.finding",
            "return list(zip(outlines, rows.scores.tolist(), strict=False))",
            "kept = self._bank.agent(agent).all()[:limit]\n"
            "                return [(memory, 0.5) for memory in kept]",
        ),
        Mutation(
            ORDER,
            "mem0.finding",
            "sorted(passing, key=lambda memory: (_created(memory), id_of(memory)))",
            "sorted(passing, key=lambda memory: (_created(memory), id_of(memory)))[::-1]",
        ),
        Mutation(
            STATE,
            "mem0.payloads",
            "def whole(metadata: Metadata) -> Mapping[str, Any]:\n",
            "def whole(metadata: Metadata) -> Mapping[str, Any]:\n    metadata = {}\n",
        ),
        Mutation(
            FILTER,
            "mem0.finding",
            'return test.holds({**entries, "memory": memory.content, "data": memory.content})',
            "return True",
        ),
        Mutation(
            FILTER,
            "mem0.finding",
            "only = only._replace(tiers=tiers, metadata=condition)",
            "pass",
        ),
    ),
    "mesa": (
        Mutation(NOTHING, "mesa.memories", "self._run.recall(asked)", "self._run.recall([])"),
        Mutation(
            NOTHING,
            "simulation.runs.model_memory",
            "return self._run.search(self.agent_id, query, limit)",
            "return Hits()",
        ),
        Mutation(
            OLDEST,
            "simulation.runs.model_memory",
            "return self._run.given(self.agent_id)",
            "return oldest(self._own, 5)",
        ),
        Mutation(
            OLDEST,
            "simulation.runs.model_memory",
            "return self._run.search(self.agent_id, query, limit)",
            "return oldest(self._own, limit)",
        ),
        Mutation(
            FILTER,
            "mesa.memories",
            "for agent in self._model.agents if agents is None else agents:",
            "for agent in self._model.agents:",
        ),
    ),
    "mesa_llm": (
        Mutation(
            NOTHING,
            "mesa_llm",
            'return render(Hits(told.values())) if told else ""',
            'return ""',
        ),
        Mutation(
            OLDEST,
            "mesa_llm",
            "self.memories.search(self._query(), self.considered_entries + shown)",
            "oldest(self.memories, self.considered_entries + shown)",
        ),
        Mutation(
            ORDER, "mesa_llm", "return steps[-self.capacity :]", "return steps[: self.capacity]"
        ),
        Mutation(STATE, "mesa_llm", "deque(self._kept_steps())", "deque()"),
        Mutation(
            FILTER,
            "mesa_llm",
            "if memory.sequence >= first and _event_of(memory) is not None:",
            "if False:",
        ),
    ),
    "oasis": (
        Mutation(NOTHING, "camel", _CAMEL_SEARCH, "()"),
        Mutation(OLDEST, "camel", _CAMEL_SEARCH, "oldest(self.memories, 3)"),
        Mutation(
            ORDER,
            "camel",
            "rest = rest[max(0, len(rest) - self.window_size) :]",
            "rest = rest[: self.window_size]",
        ),
        Mutation(STATE, "oasis", "for text, about in _texts(posts))", "for text, about in ())"),
        Mutation(FILTER, "oasis", "return set(self._page)", "return set()"),
    ),
    "openai_agents": (
        Mutation(
            NOTHING,
            "openai_agents",
            "hits = in_mind(memories, query, limit + len(read))",
            "hits = Hits()",
        ),
        Mutation(
            OLDEST,
            "openai_agents",
            "hits = in_mind(memories, query, limit + len(read))",
            "hits = oldest(memories, limit + len(read))",
        ),
        Mutation(
            ORDER,
            "openai_agents",
            "items[max(0, len(items) - limit) :]",
            "items[:limit]",
        ),
        Mutation(STATE, "openai_agents", "return value[_ITEM]", "return {}"),
        Mutation(
            FILTER,
            "openai_agents",
            "memories.all(session=session)",
            "memories.all()",
        ),
        Mutation(FILTER, "openai_agents", "if hit.memory.id not in read", "if hit"),
    ),
    "pydantic_ai": (
        Mutation(
            NOTHING,
            "pydantic_ai",
            "hits = in_mind(memories, query, limit)",
            "hits = Hits()",
        ),
        Mutation(
            OLDEST,
            "pydantic_ai",
            "hits = in_mind(memories, query, limit)",
            "hits = oldest(memories, limit)",
        ),
        Mutation(
            ORDER,
            "pydantic_ai",
            '[("user", _words(ctx.prompt)), ("assistant", _output(result))]',
            '[("assistant", _output(result)), ("user", _words(ctx.prompt))]',
        ),
        Mutation(STATE, "pydantic_ai", "memories.add_many(items)", "pass"),
        Mutation(
            FILTER,
            "pydantic_ai",
            "for place in reversed(range(len(messages))):",
            "for place in range(len(messages)):",
        ),
    ),
}
"""By adapter, what is broken in turn."""
HERE_TOO = {
    "langgraph": sorted(TESTS.glob("test_langgraph_*.py")),
    "mem0": sorted(TESTS.glob("test_mem0_*.py")),
    "mesa": [path for path in sorted(TESTS.glob("test_mesa_*.py")) if "llm" not in path.name],
}
"""The adapters that can be tested with what is installed for development, and their tests."""


def noticed(python: Path, adapter: str, tests: Iterable[Path], *options: str) -> bool:
    """Break an adapter in each way, and say what its tests did not notice; whether that is nothing.

    ``options`` are those of pytest with which the tests pass while nothing is broken.
    """
    missed = [
        f"{mutation.kind} ({mutation.code})"
        for mutation in TABLE[adapter]
        if not _fails(python, mutation, tests, options)
    ]
    of, names = len(TABLE[adapter]), "; ".join(missed) or "none"
    print(
        f"tiermem.{adapter}, broken: {of - len(missed)} of {of} noticed; not: {names}", flush=True
    )
    return not missed


def _fails(python: Path, mutation: Mutation, tests: Iterable[Path], options: Sequence[str]) -> bool:
    """Whether a test fails: to collect them is not enough, nor is an error of pytest."""
    broken = json.dumps([f"tiermem.{mutation.module}", mutation.code, mutation.instead])
    command = [python, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
    told = subprocess.run(
        [*map(str, [*command, "-p", "mutated", "-m", "not long", *options, *tests])],
        cwd=suites.ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(suites.HERE / "plugins"),
            "TIERMEM_MUTATION": broken,
        },
        capture_output=True,
        text=True,
    )
    fails = re.search(r"^FAILED ", told.stdout, re.MULTILINE) is not None
    if not fails and told.returncode:
        raise SystemExit(f"{told.stdout}{told.stderr}no test could run with {broken}")
    return fails


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("adapter", nargs="*", help=f"of {', '.join(HERE_TOO)}; all by default")
    wanted = parser.parse_args().adapter or list(HERE_TOO)
    if unknown := sorted(set(wanted) - HERE_TOO.keys()):
        parser.error(f"{', '.join(unknown)}: not one of {', '.join(HERE_TOO)}")
    is_good = True
    for adapter in wanted:
        options = ("-n", "2", "--dist", "worksteal", "-p", "no:schemathesis")
        is_good &= noticed(Path(sys.executable), adapter, HERE_TOO[adapter], *options)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
