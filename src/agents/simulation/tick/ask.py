"""Questions of policies to their agents' memories, answered within a tick."""

from collections.abc import Sequence
from operator import itemgetter

from ...engine.engine import Engine
from ...engine.move import recalled
from ...errors import InvalidInput
from ...memory.filters import ANY, Filter, none_of
from ...memory.records import Hits
from ...memory.requests import check_query
from ...search.request import SearchRequest
from ...telling import groups
from ..protocols import Answer, Ask
from .branch_rules import NO_RULES, Standing

_Kind = tuple[int | None, bool, bool]
"""The limit of a question, and whether it is about cold memories or about groups."""
_NOTHING = "a question needs some text; this one is blank"


def asked_in(decided: object) -> list[Ask]:
    """The questions in what a policy decided; none if it decided on actions."""
    if isinstance(decided, Ask):
        return [decided]
    if isinstance(decided, list | tuple):
        return [each for each in decided if isinstance(each, Ask)]
    return []


def answers(
    bank: Engine, asked: Sequence[tuple[str, Ask]], rules: Standing = NO_RULES
) -> list[Answer]:
    """What each question of an agent finds. One search answers all that want the same.

    Cold memories are searched in the journal, not in mem0's store: a replay finds the same ones.
    What is found counts as used, and with cold memories, as recalled: what is needed again becomes
    hot, if ``temperature.auto_promote`` is true. What is found on boards is not counted here: all
    agents read a board as it was before the tick. ``rules`` say whose posts an agent does not find.

    The kinds of an agent's questions are answered in the order in which this agent first asked
    them, so what counts as used first does not depend on which other agents the bank has.
    """
    found: list[Answer | None] = [None] * len(asked)
    batches: dict[tuple[int, _Kind], list[int]] = {}
    kinds_of: dict[str, dict[_Kind, int]] = {}
    for place, (agent, ask) in enumerate(asked):
        try:
            _check(bank, ask)
        except InvalidInput as error:
            found[place] = Answer(ask, Hits(), str(error))
            continue
        kind = ask.limit, ask.cold, ask.groups
        kinds = kinds_of.setdefault(agent, {})
        batches.setdefault((kinds.setdefault(kind, len(kinds)), kind), []).append(place)
    for key in sorted(batches, key=itemgetter(0)):
        (limit, cold, with_groups), places = key[1], batches[key]
        request = SearchRequest(
            [asked[place][0] for place in places],
            [asked[place][1].query for place in places],
            *bank.limits_of(limit, None),
            with_cold=cold,
            pinned_first=False,
            exact=True,
        )
        given = _on_boards(bank, request, rules) if with_groups else _own(bank, request)
        for place, hits in zip(places, given, strict=True):
            agent, ask = asked[place]
            if cold:
                recalled(bank, agent, ask.query, hits)
            found[place] = Answer(ask, hits)
    return [each for each in found if each is not None]


def _own(bank: Engine, request: SearchRequest) -> Sequence[Hits]:
    if request.with_cold:
        return bank.search.run(bank.search.read(request)).hits
    return bank.find(request)


def _on_boards(bank: Engine, request: SearchRequest, rules: Standing) -> list[Hits]:
    """What each agent finds among its own memories and on the boards of its groups."""
    return [
        groups.search(
            bank,
            request._replace(agents=[agent], queries=[query]),
            counts_boards=False,
            on_boards=_heard(rules.unheard(agent, bank.tick)),
        )
        for agent, query in zip(request.agents, request.queries, strict=True)
    ]


def _heard(unheard: Sequence[str]) -> Filter:
    """What was written by others than these."""
    return Filter(metadata=none_of("speaker", unheard)) if unheard else ANY


def _check(bank: Engine, ask: Ask) -> None:
    """Raise InvalidInput for a question that can't be answered."""
    if not check_query(ask.query).strip():
        raise InvalidInput(_NOTHING)
    if not isinstance(ask.cold, bool):
        raise InvalidInput(f"cold is true or false, not {ask.cold!r:.40}")
    if not isinstance(ask.groups, bool):
        raise InvalidInput(f"groups is true or false, not {ask.groups!r:.40}")
    if ask.cold and ask.groups:
        raise InvalidInput("a question is about cold memories or about groups, not about both")
    bank.limits_of(ask.limit, None)
