"""A model by the ODD protocol (Grimm et al. 2020): what is recorded, and gaps for the author."""

import json
from collections.abc import Iterator

from ...config.settings import thawed
from ...memory.words import counted, number
from .methods import GAP, agents_of, memory, policy, references
from .paper import Study


def odd(study: Study) -> str:
    """The page ``odd.md``."""
    parts = [
        ("1 Purpose and patterns", _purpose(study)),
        ("2 Entities, state variables, and scales", _entities(study)),
        ("3 Process overview and scheduling", _process(study)),
        ("4 Design concepts", _concepts(study)),
        ("5 Initialization", _beginning(study)),
        ("6 Input data", _input(study)),
        ("7 Submodels", _submodels(study)),
    ]
    body = "\n".join(f"## {title}\n\n" + "\n\n".join(told) + "\n" for title, told in parts)
    return (
        f"# {study.name}: an ODD description\n\n"
        "The description follows the ODD protocol (Overview, Design concepts, Details). It was "
        "written by `tiermem paper` from the scenario, the settings and what the world says of "
        f"itself. What nothing recorded says is marked {GAP.format('…')}.\n\n{body}\n"
        f"## References\n\n- {references()}\n"
    )


def _gap(what: str) -> str:
    return GAP.format(what)


def _purpose(study: Study) -> Iterator[str]:
    question = study.sweep.question if study.sweep is not None else ""
    yield question or _gap("the question that the model is to answer")
    if study.source.module:
        yield study.source.module
    yield f"Patterns by which the model is judged: {_gap('which, and where they were observed')}"
    yield f"The runs record {_names(study.metrics)} after each tick."


def _entities(study: Study) -> Iterator[str]:
    own = study.settings.simulation
    agents, source = number(agents_of(study.settings)), study.source
    yield (
        f"**Agents** ({agents}). Each has memories, which no other agent reads. A "
        "memory has a text, a tier (pinned, critical, important, normal, low), a temperature (hot, "
        "warm, cold), the tick in which it began and, where it was told, who told it."
        + (" Each agent has a persona, given in the scenario." if own.personas else "")
        + f" Other state of agents: {_gap('what the world keeps of each agent')}"
    )
    yield f"**The world** (`{own.world}`). " + (source.world or _gap("what the world is"))
    yield (
        f"**Scales.** Time goes in ticks, {counted(own.ticks, 'tick')} a run. What a tick stands "
        f"for: {_gap('such as a day')}. Space: {_gap('whether there is any, and of what size')}."
    )


def _process(study: Study) -> Iterator[str]:
    asks = study.settings.simulation.asks
    yield "In each tick, in this order:"
    steps = [
        "each agent observes the world, and what it perceives becomes a memory",
        "each agent is given the memories that match what it asks"
        + (f", and may ask {counted(asks, 'more question')}" if asks else ""),
        "each agent decides by its policy, from what it observes and what it is given",
        "the world applies the actions of agent after agent, in an order drawn for each tick; "
        "what comes of them becomes memories",
        "the world moves on, and its metrics are recorded",
    ]
    society = study.settings.simulation.society or {}
    if study.source.methods.get("conversations") or society.get("talk"):
        steps.insert(2, "agents that the world brings together talk")
    yield "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
    yield (
        "Agents decide on what they knew at the beginning of the tick: nobody reads what others "
        "did in the same tick. Why in this order: " + _gap("the rationale")
    )


def _concepts(study: Study) -> Iterator[str]:
    own = study.settings.simulation
    llm = own.policy == "llm"
    yield f"**Basic principles.** {_gap('the theories and hypotheses behind the model')}"
    yield (
        f"**Emergence.** {_names(study.metrics)} come out of what agents do; which of them are "
        f"imposed by rules: {_gap('which')}"
    )
    yield f"**Adaptation.** {policy(study.settings)}"
    yield f"**Objectives.** {_gap('what agents try to reach, if they do')}"
    yield (
        "**Learning.** Agents change what they do by what they remember: "
        + " ".join(memory(study.settings))
    )
    yield f"**Prediction.** {_gap('how agents foresee what their actions bring')}"
    yield (
        "**Sensing.** An agent senses what the world tells it in a tick, and its own memories. "
        + (study.source.methods.get("observe") or _gap("what the world tells it"))
    )
    yield (
        "**Interaction.** Agents act on each other through the world, and tell each other memories "
        "where the world lets them. " + _gap("which interactions there are")
    )
    yield (
        "**Stochasticity.** All chance comes from generators that the run's seed determines: the "
        "order of agents in a tick, the world's own draws, and those of rules."
        + (
            " The language model's replies are chance too, where its temperature is not 0; they "
            "are recorded."
            if llm
            else ""
        )
    )
    yield f"**Collectives.** {_gap('groups of agents, if there are any')}"
    yield (
        f"**Observation.** After each tick {_names(study.metrics)}, the number of memories by tier "
        "and a hash of all memories are recorded; for each decision, what the agent asked, the "
        "memories that it was given with their scores, and its actions."
    )


def _beginning(study: Study) -> Iterator[str]:
    own, sweep = study.settings.simulation, study.sweep
    seeds = f"{counted(len(sweep.seeds), 'seed')}" if sweep else f"the seed {study.settings.seed}"
    begins = counted(len(own.memories), "memory", "memories") if own.memories else "no memories"
    agents = counted(agents_of(study.settings), "agent")
    yield (f"A run begins with {agents} and {begins} from the scenario. It is drawn from {seeds}.")
    if said := study.source.methods.get("setup"):
        yield said
    options = {**study.source.options, **own.world_options}
    if options:
        rows = "\n".join(f"| `{name}` | {value} |" for name, value in options.items())
        yield f"| option of the world | value |\n|---|---|\n{rows}"
    yield f"Why these values: {_gap('where they come from')}"


def _input(study: Study) -> Iterator[str]:
    own = study.settings.simulation
    table = (own.society or {}).get("file")
    if own.personas and isinstance(own.personas, str):
        yield f"The personas of the agents are read from the file `{own.personas}`."
    if table:
        yield f"Who can hear whom is read from the file `{table}`."
    if not table and not isinstance(own.personas, str):
        yield "The model reads no data from outside while it runs."


def _submodels(study: Study) -> Iterator[str]:
    source = study.source
    if source.actions:
        rows = "\n".join(f"| `{name}` | {what} |" for name, what in source.actions.items())
        yield f"**Actions.**\n\n| action | what it does |\n|---|---|\n{rows}"
    for name in ("apply", "end_tick", "conversations", "may_tell"):
        if text := source.methods.get(name):
            yield f"**{name.replace('_', ' ').capitalize()}.** {text}"
    if study.settings.simulation.society is not None:
        given = json.dumps(thawed(study.settings.simulation.society), sort_keys=True)
        yield f"**Society.** Who can hear whom is drawn or read as the scenario says: `{given}`."
    for name, text in source.policies.items():
        yield f"**{name}.** {text}"
    yield f"**Memory.** {' '.join(memory(study.settings))}"
    yield _gap("the rules of the world that its source does not describe, with their equations")


def _names(metrics: object) -> str:
    shown = [f"`{name}`" for name in metrics]  # type: ignore[attr-defined]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
