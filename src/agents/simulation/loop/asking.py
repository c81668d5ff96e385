"""Questions of policies to their agents' memories, answered within a tick."""

from collections.abc import Sequence

from ...engine.agent_moves import recalled
from ...engine.open_bank import OpenBank
from ...errors import InvalidInput
from ...memory.records import Hits
from ...memory.requests import check_query
from ...search.request import SearchRequest
from ..protocols import Answer, Ask

__all__ = ["answers", "asked_in"]

_NOTHING = "a question needs some text; this one is blank"


def asked_in(decided: object) -> list[Ask]:
    """The questions in what a policy decided; none if it decided on actions."""
    if isinstance(decided, Ask):
        return [decided]
    if isinstance(decided, list | tuple):
        return [each for each in decided if isinstance(each, Ask)]
    return []


def answers(bank: OpenBank, asked: Sequence[tuple[str, Ask]]) -> list[Answer]:
    """What each question of an agent finds. One search answers all that want the same.

    Cold memories are searched in the journal, not in mem0's store: a replay finds the same ones.
    What is found counts as used, and with cold memories, as recalled: what is needed again becomes
    hot, if ``temperature.auto_promote`` is true.
    """
    found: list[Answer | None] = [None] * len(asked)
    batches: dict[tuple[int | None, bool], list[int]] = {}
    for place, (_, ask) in enumerate(asked):
        try:
            _check(bank, ask)
            batches.setdefault((ask.limit, ask.cold), []).append(place)
        except InvalidInput as error:
            found[place] = Answer(ask, Hits(), str(error))
    for (limit, cold), places in batches.items():
        request = SearchRequest(
            [asked[place][0] for place in places],
            [asked[place][1].query for place in places],
            *bank.limits_of(limit, None),
            with_cold=cold,
            pinned_first=False,
            exact=True,
        )
        given = bank.search.run(bank.search.read(request)).hits if cold else bank.find(request)
        for place, hits in zip(places, given, strict=True):
            agent, ask = asked[place]
            if cold:
                recalled(bank, agent, ask.query, hits)
            found[place] = Answer(ask, hits)
    return [each for each in found if each is not None]


def _check(bank: OpenBank, ask: Ask) -> None:
    """Raise InvalidInput for a question that can't be answered."""
    if not check_query(ask.query).strip():
        raise InvalidInput(_NOTHING)
    if not isinstance(ask.cold, bool):
        raise InvalidInput(f"cold is true or false, not {ask.cold!r:.40}")
    bank.limits_of(ask.limit, None)
