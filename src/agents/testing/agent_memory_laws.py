"""The laws of whatever keeps the memories of agents: a bank, or an adapter for a framework."""

import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from ..bank.memory_bank import MemoryBank
from ..storage.files import TemporaryFolder
from .laws import DoesNotApply, for_all, law, must
from .processes import another_hash_seed, elsewhere, started
from .strategies import agent_ids, contents

_AGENTS = ("alice", "bob", "Alice")
_TEXTS = tuple(f"memory number {number} of {number % 3} kinds" for number in range(12))
_LAST = _TEXTS[-1]
_SIGHTS = ("a bridge", "a well", "a mill")
_TOLD = "alice saw a well"
_TELLS = (
    ("alice", "bob", _TOLD),
    ("bob", "Alice", _TOLD),
    ("Alice", "alice", _TOLD),  # who saw it first learns nothing new
    ("alice", "bob", _TOLD),  # nor does who was told before
    ("Alice", "bob", "Alice saw a mill"),
    ("bob", "alice", "Alice saw a mill"),
)
"""Who tells whom what."""


class AgentMemoryLaws:
    """The laws of an adapter: ``class TestMine(AgentMemoryLaws)`` with ``make``.

    The other methods say how the laws use what ``make`` gives; as they are, they use a
    :class:`~tiermem.MemoryBank`. The class is at the top of a module, because other processes
    import it.
    """

    examples: int = 10
    names: Any = agent_ids
    """A strategy for the names that agents may have; for free text, ``strategies.any_text``."""
    repeats: bool = True
    """Whether a text that an agent has already is stored once more; else it is there once."""

    def make(self, folder: Path) -> Any:
        """What keeps memories in a folder, made or opened again."""
        raise NotImplementedError(f"{type(self).__name__} needs make(self, folder)")

    def add(self, made: Any, agent: str, text: str) -> None:
        """Add a memory; when it returns, the memory must last."""
        made.agent(agent).add(text)

    def texts(self, made: Any, agent: str) -> list[str]:
        """The texts of an agent's memories, oldest first."""
        return [memory.content for memory in made.agent(agent).all()]

    def search(self, made: Any, agent: str, query: str, limit: int) -> list[str]:
        """The texts that a search finds, best first."""
        return [hit.memory.content for hit in made.agent(agent).search(query, limit)]

    def delete(self, made: Any, agent: str, text: str) -> None:
        """Delete the agent's memories with this text."""
        agent_memory = made.agent(agent)
        for memory in agent_memory.all():
            if memory.content == text:
                agent_memory.delete(memory.id)

    def tell(self, made: Any, teller: str, listener: str, text: str) -> None:
        """Let an agent tell another one its memory with this text."""
        bank = self._banked(made, "tell(self, made, teller, listener, text)")
        agent_memory = bank.agent(teller)
        for memory in agent_memory.all():
            if memory.content == text:
                agent_memory.social.tell(listener, memory.id)

    def tellers(self, made: Any, agent: str, text: str) -> list[str]:
        """The agents through whose hands a memory with this text came, from its owner backwards."""
        bank = self._banked(made, "tellers(self, made, agent, text)")
        (memory,) = [each for each in bank.agent(agent).all() if each.content == text]
        return [each.agent_id for each in bank.chain(memory).memories]

    def save(self, made: Any, file: Path) -> None:
        """Save everything to a file."""
        self._banked(made, "save(self, made, file)").checkpoint(file)

    def restore(self, file: Path, folder: Path) -> Any:
        """What :meth:`make` gives, from a file of :meth:`save`, in a new folder."""
        raise DoesNotApply("there is no restore(self, file, folder)")

    def close(self, made: Any) -> None:
        """Close what :meth:`make` gave."""
        made.close()

    def given(self) -> dict[str, Any]:
        """The arguments with which another process makes these laws."""
        return {}

    @law
    def test_nothing_that_was_added_is_lost(self) -> None:
        """any texts of any agents, also after a new opening"""

        def lived(added: list[tuple[str, str]]) -> None:
            with TemporaryFolder("laws") as folder:
                for step in range(2):
                    with self._open(folder) as made:
                        for agent, text in added if step == 0 else ():
                            self.add(made, agent, text)
                        self._compare(made, added, "" if step == 0 else "after a new opening, ")

        pairs = st.tuples(st.sampled_from(_AGENTS), contents)
        for_all(lived, self.examples, st.lists(pairs, min_size=1, max_size=8, unique=True))

    @law
    def test_a_text_that_comes_twice_is_there_twice(self) -> None:
        """or once, if ``repeats`` says so; also after a new opening"""
        wanted = ["tea", "cake", "tea"] if self.repeats else ["tea", "cake"]
        with TemporaryFolder("laws") as folder:
            for step in range(2):
                with self._open(folder) as made:
                    for text in ("tea", "cake", "tea") if step == 0 else ():
                        self.add(made, "alice", text)
                    texts = self.texts(made, "alice")
                    must(texts == wanted, f"alice has {texts}, and not {wanted}")

    @law
    def test_agents_are_isolated(self) -> None:
        """whatever their names are, no agent sees or finds what another one has"""

        def apart(names: list[str]) -> None:
            every = dict.fromkeys([*_AGENTS, *names])
            own = {name: f"secret number {number}" for number, name in enumerate(every)}
            with TemporaryFolder("laws") as folder, self._open(folder) as made:
                for name, text in own.items():
                    self.add(made, name, text)
                for name, text in own.items():
                    seen = {*self.texts(made, name), *self.search(made, name, "secret number", 99)}
                    must(seen == {text}, f"{name!r} has {text!r}, and sees {sorted(seen)}")

        for_all(apart, self.examples, st.lists(self.names, min_size=2, max_size=4, unique=True))

    @law
    def test_what_is_told_crosses_and_nothing_else(self) -> None:
        """tells among three agents, also after a new opening; a copy has a life of its own"""
        with TemporaryFolder("laws") as folder:
            with self._open(folder) as made:
                known = self._tell_all(made)
                self._compare_known(made, known, "")
                self.delete(made, "bob", _TOLD)
                del known["bob"][_TOLD]
                self._compare_known(made, known, f"after bob deleted {_TOLD!r}, ")
            with self._open(folder) as made:
                self._compare_known(made, known, "after a new opening, ")

    @law
    def test_what_was_told_leads_back_to_its_origin(self) -> None:
        """the agents through whose hands a memory came"""
        with TemporaryFolder("laws") as folder, self._open(folder) as made:
            for agent, own in self._tell_all(made).items():
                for text, origin in own.items():
                    hands = self.tellers(made, agent, text)
                    must(
                        hands[0] == agent and hands[-1] == origin and len(hands) == len({*hands}),
                        f"{text!r} of {agent} began with {origin}, and leads to {hands}",
                    )

    @law
    def test_a_text_finds_itself(self) -> None:
        """a search for each text that was added"""
        with self._filled() as made:
            for text in _TEXTS:
                best = self.search(made, "alice", text, 1)
                must(best == [text], f"a search for {text!r} finds {best}")

    @law
    def test_a_search_has_one_order(self) -> None:
        """the same search again, after a new opening, and in another process"""
        with TemporaryFolder("laws") as folder:
            with self._open(folder) as made:
                self._fill(made)
                first = self.found(made)
                for _ in range(5):
                    must(self.found(made) == first, "the same search gives another order")
            other = elsewhere(self, "found_elsewhere", another_hash_seed(), place=folder)
            must(other == first, "in another process, the same search gives another order")

    @law
    def test_what_it_gives_belongs_to_the_caller(self) -> None:
        """who changes a list of memories changes no memory"""
        with self._filled() as made:
            for given in (self.texts(made, "alice"), self.search(made, "alice", "number", 5)):
                given.clear()
            now = self.texts(made, "alice")
            must(now == list(_TEXTS), f"after a caller cleared a list, alice has {now}")

    @law
    def test_what_was_deleted_is_gone(self) -> None:
        """a deletion, also after a new opening; another agent keeps the same text"""
        left = [text for text in _TEXTS if text != _TEXTS[3]]
        with TemporaryFolder("laws") as folder:
            with self._open(folder) as made:
                self._fill(made)
                self.add(made, "bob", _TEXTS[3])
                others = self.texts(made, "bob")
                self.delete(made, "alice", _TEXTS[3])
                must(self.texts(made, "alice") == left, "a deleted memory is still there")
                now = self.texts(made, "bob")
                must(now == others, f"after a deletion of alice, bob has {now}, and not {others}")
            with self._open(folder) as made:
                must(self.texts(made, "alice") == left, "after a new opening, it is there again")

    @law
    def test_a_copy_has_everything_and_shares_nothing(self) -> None:
        """saved to a file, and restored twice"""
        with TemporaryFolder("laws") as folder, self._open(f"{folder}/first") as made:
            self._fill(made)
            file = Path(folder, "saved")
            self.save(made, file)
            with contextlib.ExitStack() as stack:
                copies = [self.restore(file, Path(folder, name)) for name in ("second", "third")]
                for copy in copies:
                    stack.callback(self.close, copy)
                    now = self.texts(copy, "alice")
                    must(now == list(_TEXTS), f"the copy has {now}, and not {list(_TEXTS)}")
                    must(self.found(copy) == self.found(made), "a search of the copy is another")
                self.add(copies[0], "alice", "only here")
                for other in (made, copies[1]):
                    must("only here" not in self.texts(other, "alice"), "copies share memories")

    @law
    def test_what_was_acknowledged_survives_a_kill(self) -> None:
        """killed with SIGKILL after some memories were added"""
        with TemporaryFolder("laws") as scratch:
            place = str(Path(scratch, "bank"))
            with started(self, "add_until_killed", Path(scratch), place=place) as child:
                for line in child.stdout or ():
                    if line.strip() == _LAST:
                        child.kill()
                        break
            must(child.returncode == -signal.SIGKILL, "the process ended before it was killed")
            with self._open(place) as made:
                kept = self.texts(made, "alice")
        must(kept == list(_TEXTS), f"after a kill, alice has {kept}")

    def found(self, made: Any) -> list[list[str]]:
        """What a few searches find."""
        return [self.search(made, "alice", query, 8) for query in ("number", _TEXTS[5], "kinds 2")]

    def found_elsewhere(self, place: str) -> list[list[str]]:
        """:meth:`found`, in another process."""
        with self._open(place) as made:
            return self.found(made)

    def add_until_killed(self, place: str) -> None:
        """Add memories, say so after each of them, and wait."""
        with self._open(place) as made:
            for text in _TEXTS:
                self.add(made, "alice", text)
                print(text, file=sys.__stdout__, flush=True)
            sys.stdin.readline()

    @contextlib.contextmanager
    def _open(self, folder: str) -> Iterator[Any]:
        made = self.make(Path(folder))
        try:
            yield made
        finally:
            self.close(made)

    @contextlib.contextmanager
    def _filled(self) -> Iterator[Any]:
        with TemporaryFolder("laws") as folder, self._open(folder) as made:
            self._fill(made)
            yield made

    def _fill(self, made: Any) -> None:
        for text in _TEXTS:
            self.add(made, "alice", text)
        self.add(made, "bob", "memory number 99 of bob")

    @staticmethod
    def _banked(made: Any, method: str) -> MemoryBank:
        """What is tested, if its methods are known; else the law is about nothing."""
        if not isinstance(made, MemoryBank):
            raise DoesNotApply(f"there is no {method}")
        return made

    def _tell_all(self, made: Any) -> dict[str, dict[str, str]]:
        """Let agents tell; what each of them then knows, and whose it was at first."""
        known = {agent: {f"{agent} saw {what}": agent for what in _SIGHTS} for agent in _AGENTS}
        for agent, own in known.items():
            for text in own:
                self.add(made, agent, text)
        for teller, listener, text in _TELLS:
            self.tell(made, teller, listener, text)
            known[listener].setdefault(text, known[teller][text])
        return known

    def _compare_known(self, made: Any, known: dict[str, dict[str, str]], when: str) -> None:
        for agent, own in known.items():
            wanted, texts = sorted(own), sorted(self.texts(made, agent))
            must(texts == wanted, f"{when}{agent} has {texts}, and not {wanted}")
            for text in own:
                found = self.search(made, agent, text, 99)
                must(text in found, f"{when}{agent} does not find {text!r}")
                must(own.keys() >= {*found}, f"{when}{agent} finds {found}, and not only {wanted}")

    def _compare(self, made: Any, added: Sequence[tuple[str, str]], when: str) -> None:
        for agent in _AGENTS:
            wanted = [text for whose, text in added if whose == agent]
            found = self.texts(made, agent)
            must(found == wanted, f"{when}{agent} has {found}, and not {wanted}")
