"""The memories of the agents of a Mesa model, as a run."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final
from weakref import finalize, ref

from ..adapting import agent_id_of
from ..bank.memory_bank import MemoryBank
from ..bank.opening import Config
from ..config.load import load_settings
from ..errors import InvalidInput
from ..memory.tiers import TIER_NAMES
from ..packages import needed
from ..simulation.runs.driven_run import OutsideRun, Tick
from ..simulation.runs.model_memory import ModelMemory, refuse_copies
from ..simulation.runs.outputs import TICK
from ..simulation.runs.run import finish_outside
from ..simulation.worlds.outside import OUTSIDE

if TYPE_CHECKING:
    from mesa import Agent, Model

Place = str | PathLike[str]
Metric = str | Callable[[Any], object]
"""A function of the model, or the name of one of its attributes."""
Query = str | Callable[[Any], str | None]
"""What agents ask: the same text for all, or a function of the agent; None asks nothing."""

_LARGEST_SEED = 2**63 - 1


@final
class Memories:
    """The memories of a model's agents. Each agent of the model gets ``agent.memory``.

    Make it in the model's ``__init__``, after ``super().__init__()``. Each step of the model is a
    block, which is one tick of the run, and one commit::

        def step(self):
            with self.memories.step():
                self.memories.recall(lambda agent: agent.question())
                self.agents.shuffle_do("step")
            self.datacollector.collect(self)

    Without a ``folder``, the memories are in this process alone.
    """

    def __init__(
        self,
        model: "Model",
        folder: Place | Callable[[int], Place] | None = None,
        config: Config = None,
        *,
        metrics: Mapping[str, Metric] | None = None,
        name: Callable[[Any], str] | None = None,
        replace: bool = False,
        preset: str | None = None,
        **overrides: object,
    ) -> None:
        """``folder`` is the run's folder, or a function of the seed that gives it.

        ``metrics`` are recorded with each step, and are in the report of the run: functions of the
        model, or names of its attributes. None of them is called ``tick``. ``name`` gives an
        agent's name; by default it is ``MoneyAgent_7``, after its class and ``unique_id``. With
        ``replace``, the new run replaces a run that has this folder. ``config``, ``preset`` and
        ``overrides`` are the settings, as in :meth:`MemoryBank.open`; the seed is the model's,
        unless one is given.
        """
        _check_model(model)
        self._model = model
        self._name = name or _class_and_number
        self._metrics = dict(metrics or {})
        if TICK in self._metrics:
            raise InvalidInput(
                f"{TICK!r} is a column of metrics.parquet itself", hint="call the metric otherwise"
            )
        self._new: list[tuple[ref[Agent], ModelMemory]] = []
        """The agents that the run may not know yet."""
        own = {"seed": _seed_of(model), **overrides, "simulation": _scenario(model)}
        settings = load_settings(config, preset=preset, overrides=own)
        self.seed = settings.seed
        """The seed of the run: the model's own, or a number made of its random state."""
        place = folder(self.seed) if callable(folder) else folder
        path = None if place is None else Path(place)
        self._run = OutsideRun.create(path, settings, self._numbers, replace=replace)
        if not self._run.is_lent:
            # With the run, the finalizer would keep the model alive.
            finalize(self, MemoryBank.close, self._run.bank, sync=False)
        self._register = model.register_agent
        model.register_agent = self._registered
        model.__getstate__ = refuse_copies  # copy.copy() copies no attribute: none refuses it
        for agent in model.agents:
            self._attach(agent)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        refuse_copies()

    def __repr__(self) -> str:
        return f"<Memories {self.folder or 'in memory'}: tick {self.tick}>"

    @property
    def folder(self) -> Path | None:
        """The run's folder; None if the memories are in this process alone."""
        return self._run.folder

    @property
    def bank(self) -> MemoryBank:
        """The bank of the run. Its own searches count as uses, and no record tells of its changes.

        To look at memories, use ``agent.memory.kept``.
        """
        return self._run.bank

    @property
    def tick(self) -> int:
        """How many steps were recorded."""
        return self.bank.tick

    @property
    def record(self) -> Mapping[str, Any]:
        """The record of the last step, as in ``ticks.parquet``; empty before the first step.

        Its ``agents`` counts all agents that the run has had, also those that left the model.
        """
        return self._run.record

    def step(self) -> Tick:
        """One step of the model, as a block: ``with memories.step(): …``.

        What the agents remember in it is committed at its end. After an error, nothing of the step
        is kept, and the model can't go on.
        """
        self._welcome()
        return self._run.tick()

    def recall(self, query: Query, agents: "Iterable[Agent] | None" = None) -> None:
        """Give agents what they should have in mind: ``agent.memory.recalled``.

        It is one search for all of them: all agents of the model, unless ``agents`` are given.
        They are given their pinned and hot memories, and those that match the query best.
        """
        self._welcome()
        asked: list[tuple[str, str]] = []
        for agent in self._model.agents if agents is None else agents:
            text = query(agent) if callable(query) else query
            if text is not None:
                asked.append((self.of(agent).agent_id, text))
        self._run.recall(asked)

    def of(self, agent: "Agent") -> ModelMemory:
        """The memory of an agent: ``agent.memory``."""
        memory = getattr(agent, "memory", None)
        if not isinstance(memory, ModelMemory):
            raise InvalidInput(
                f"{agent!r:.80} has no memory here",
                hint="it is of another model, or its own code sets the attribute memory",
            )
        return memory

    def reporters(self) -> dict[str, Callable[["Model"], object]]:
        """Model reporters for Mesa's ``DataCollector``: the last step's numbers of memory."""
        names = ("memories", "pinned", "recalled", "hit_rate", "state_hash")
        return {name: self._reporter(name) for name in names}

    def close(self, *, report: bool = True) -> dict[str, Any]:
        """End the run: write its tables and its report, and give its summary.

        Without it, the run has all its steps, and ``tiermem report RUN`` writes the rest.
        """
        self._welcome()
        return finish_outside(self._run, report=report)

    # Inside

    def _registered(self, agent: "Agent") -> None:
        """In the place of :meth:`Model.register_agent`, which each new agent calls."""
        self._register(agent)
        self._attach(agent)

    def _attach(self, agent: "Agent") -> None:
        former = getattr(agent, "memory", None)
        if isinstance(former, ModelMemory) and former.is_of(self._run):
            return  # Mesa registers some agents again
        if hasattr(agent, "memory"):
            raise InvalidInput(
                f"{type(agent).__name__} has an attribute memory already",
                hint="give it another name: TierMem sets agent.memory",
            )
        # Mesa steps removed agents, too, as long as something refers to them.
        weakly = ref(agent)
        memory = ModelMemory(self._run, lambda: self._named(weakly()))
        agent.memory = memory
        self._new.append((weakly, memory))

    def _named(self, agent: "Agent | None") -> str:
        if agent is None:
            raise InvalidInput(
                "the agent of this memory is gone", hint="use agent.memory while the agent is there"
            )
        return agent_id_of(self._name(agent))

    def _welcome(self) -> None:
        """Let the run know all agents of the model, also those that do not use their memory."""
        while self._new:
            weakly, memory = self._new[0]
            agent = weakly()
            if agent is not None and agent in self._model.agents:
                _ = memory.agent_id
            del self._new[0]

    def _numbers(self) -> dict[str, object]:
        """The metrics; the run asks for them at the end of a step."""
        self._welcome()
        model = self._model
        return {name: _measured(model, name, metric) for name, metric in self._metrics.items()}

    def _reporter(self, name: str) -> Callable[["Model"], object]:
        """A plain function: some versions of Mesa call anything else without the model."""

        def report(model: "Model") -> object:
            record = self.record
            if name == "memories":
                return sum(record.get(tier, 0) for tier in TIER_NAMES.values())
            if name == "state_hash":
                return record.get(name, "")
            return record.get("retrieved" if name == "recalled" else name, 0)

        return report


def _check_model(model: object) -> None:
    with needed("Memories", "mesa"):
        from mesa import Model
    if not isinstance(model, Model):
        raise InvalidInput(f"Memories takes a Mesa model; got {model!r:.80}")
    if not hasattr(model, "random"):
        raise InvalidInput(
            f"{type(model).__name__} is not a whole model yet",
            hint="call super().__init__() first in its __init__",
        )
    if isinstance(getattr(model.register_agent, "__self__", None), Memories):
        raise InvalidInput(
            f"{type(model).__name__} has memories already", hint="a model has one Memories"
        )


def _seed_of(model: "Model") -> int:
    """The seed that the model was given, where Mesa keeps it; else one of its random state."""
    seed = getattr(model, "_seed", None)
    if isinstance(seed, Integral) and 0 <= int(seed) <= _LARGEST_SEED:
        return int(seed)
    state = hashlib.sha256(repr(model.random.getstate()).encode())
    return int.from_bytes(state.digest()[:8], "big") & _LARGEST_SEED


def _scenario(model: "Model") -> dict[str, object]:
    options = {"program": f"Mesa {version('mesa')}", "model": type(model).__name__}
    # The program decides how long it runs, and which agents there are.
    return {"world": OUTSIDE, "world_options": options, "agents": 1, "ticks": 1}


def _class_and_number(agent: "Agent") -> str:
    return f"{type(agent).__name__}_{agent.unique_id}"


def _measured(model: "Model", name: str, metric: Any) -> object:
    if callable(metric):
        return metric(model)
    try:
        return getattr(model, metric)
    except AttributeError as error:
        if error.obj is not model or error.name != metric:  # of a property of the model
            raise
    raise InvalidInput(
        f"the metric {name!r:.60} is the attribute {metric!r:.60}, which the model does not have",
        hint="name an attribute, or give a function of the model",
    )
