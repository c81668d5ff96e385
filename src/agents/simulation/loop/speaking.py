"""What agents tell each other in a tick: copied before the world acts, heard when it has acted."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from ...bank.memory_bank import MemoryBank
from ...engine import telling
from ...engine.retracting import correction_of, said_before
from ...errors import InvalidAction
from ...memory.sources import Telling
from ...memory.tiers import Tier
from ..protocols import Action
from .actions import REFUSED, checked, refusal


class Speech(NamedTuple):
    """An action that tells, with what it says as data."""

    action: Action
    to: Sequence[str] | None
    """The agents that are meant; None for all that can hear."""
    said: Telling | None
    """What each of them is told, without a receiver; None if the action is refused."""
    refusal: str = ""


def speech_of(bank: MemoryBank, agent: str, action: Action) -> Speech:
    """An action that tells, with the memory as it was before the tick."""
    try:
        arguments = checked(action)
        to = _meant(arguments.get("to"), is_one=action.name == "tell")
        memory = bank.agent(agent).get(arguments["memory_id"])
        if action.name == "retract":
            correction = correction_of(bank.engine, memory)
            said = telling.copied(bank.engine, correction)
            earlier = said_before(bank.engine, memory, correction)
            return Speech(action, None, telling.correcting(said, memory, earlier))
        telling.check_is_not_superseded(bank.engine, memory)
        said = telling.copied(bank.engine, memory, arguments.get("as_tier"), arguments.get("note"))
        own = bank.settings.memory
        if said.tier == Tier.CRITICAL and (own.on_tier_full == "reject" or not own.max_critical):
            raise InvalidAction(
                "as_tier critical may be full for a listener", hint="use important, normal or low"
            )
        return Speech(action, to, said)
    except REFUSED as error:
        return Speech(action, None, None, refusal(action.name, error))


def _meant(to: Any, *, is_one: bool) -> Sequence[str] | None:
    if is_one and isinstance(to, str):
        return [to]
    if not is_one and to is None:
        return None
    if not is_one and isinstance(to, list | tuple) and all(isinstance(each, str) for each in to):
        return list(dict.fromkeys(to))
    raise InvalidAction(f"to is {'the id of an agent' if is_one else 'a list of ids'}")


def heard_by(
    speech: Speech, agent: str, agents: Collection[str], may_tell: Callable[[str, str], object]
) -> list[Telling]:
    """What each listener is told, or :class:`InvalidAction`; ``agents`` are those of the run."""
    if speech.said is None:
        return []
    listeners: Iterable[str]
    if speech.to is None:
        listeners = [each for each in agents if each != agent and may_tell(agent, each)]
    else:
        for each in speech.to:
            _check_listener(each, agent, agents, may_tell)
        listeners = speech.to
    return [speech.said._replace(receiver=each) for each in listeners]


def _check_listener(
    listener: str, agent: str, agents: Collection[str], may_tell: Callable[[str, str], object]
) -> None:
    if listener == agent:
        raise InvalidAction("you can't tell yourself", hint="use store_memory")
    if listener not in agents:
        raise InvalidAction(f"there is no agent {listener!r:.60}")
    if not may_tell(agent, listener):
        raise InvalidAction(f"{listener} can't hear you now")
