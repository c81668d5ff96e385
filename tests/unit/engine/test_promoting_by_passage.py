"""A recall promotes by the best passage of a text: temperature.promote_by."""

import pytest

from agents import AgentMemory, MemoryBank
from agents.memory.records import Recall

CONVERSATION = """\
We are putting together a proposal for a new customer portal; the client wants it live before
the end of the year and asked us for a plan by Friday, with a list of the people who would work
on it.

Before we go on: finance has approved a $50K budget for the whole proposal, design, development
and the first year of hosting included, and they will not raise it whatever happens later in the
project.

The portal should let customers see their invoices, change their address and open tickets;
everything else is nice to have and can wait for a second phase after the launch.

For the design we thought of Maria, who did the last two sites for us; she is free from the
tenth and would need about three weeks for the first drafts and the style guide.

The old system keeps customers in an Oracle database that nobody dares to touch; we would read
from a nightly export at first and talk about a real interface later on.

Security wants single sign-on from the beginning, with the same provider that the intranet has,
and a penetration test by somebody from outside before anything goes live.

Let me summarise where we are: invoices, address and tickets in phase one, Maria for the drafts,
a nightly export for the data, and single sign-on with the intranet's provider.

About hosting, operations would prefer our own cluster in Frankfurt over the public cloud,
because the contract with the client says that data must not leave Germany.

The client's contact is Mr Tanaka; he prefers short mails to calls, and he is on holiday in the
second half of August, so nothing should wait for him then.

Two developers could start in July: Lena on the front end with React, and Omar on the services
in Go; both have done something like this for the insurance project.

Testing was a weak spot last time, so this time every story gets acceptance tests before it is
called done, and the nightly build runs them all against the export of the day.

The legal department needs the draft of the data processing agreement at least four weeks ahead
of the launch, and they want to see the list of subcontractors with it.

For the logo and the colours the client sent a brand book of eighty pages; Maria says that the
blue in it has too little contrast for small text on white.

We agreed to meet on Tuesdays at ten, half an hour, cameras off if you like; whoever cannot come
writes three lines into the channel the evening before.

Performance: the invoice list should appear within a second for customers with up to ten
thousand invoices, which means paging on the server and an index on the date.

Omar found that the nightly export lacks the currency of older invoices; before 2019 everything
was in euros, so we can fill that in without asking anybody.

Accessibility came up again: the portal has to meet WCAG double A, which our component library
does except for the date picker, so that one has to be replaced.

The ticket form should ask for a category, a text and up to five attachments; virus scanning is
done by the mail gateway's scanner, which has an interface for it.

Lena proposes to drop Internet Explorer entirely; the client's statistics show that less than
half a percent of their customers still use it, falling every month.

Marketing would like a newsletter sign-up on the start page; we told them phase two, and they
were not happy but can live with a link to the existing form.

The risk list has three entries so far: the export might be late, Maria might get ill, and the
identity provider is due for an upgrade in September.

Training for the service desk is planned as two afternoons in the week before the launch, with a
recording for those who are on shift at that time.

Monitoring goes into the same dashboards that operations already watch, with an alarm for failed
logins above a hundred an hour and one for a missing export.

The client asked whether there will be an app; we said that the portal works on a phone, and
that an app would be a project of its own next year at the earliest.

Documentation lives in the wiki; every service has a page with its owner, its configuration and
what to do when it does not start in the morning.

We tried the paging with a copy of the largest customer: four hundred milliseconds for the first
page, and the same for page nine hundred, so the index does its work.

The addresses need a check against the postal register, which has a rate limit of ten requests a
second; that is enough if we only ask when somebody changes one.

Mr Tanaka wrote that the board liked the drafts, but wants the menu on the left, as in their
other systems; Maria will change it by Thursday.

The penetration testers can come in the last week of October, three days, and their report takes
another week; that leaves eight days for what they find.

For the launch itself we choose a Wednesday morning, with the old site still reachable under
another address for a month in case something goes wrong.
"""
TURNS = [" ".join(turn.split()) for turn in CONVERSATION.split("\n\n")]
"""Thirty turns of a conversation about a proposal."""

ANSWERED = {
    "budget discussed": 2,
    "What was the budget we discussed earlier?": 2,
    "how much money do we have": 2,
    "what was the budget?": 2,
    "who does the design": 4,
    "Maria design drafts": 4,
    "where is it hosted": 8,
    "hosting Frankfurt cluster": 8,
    "client contact": 9,
    "when is Mr Tanaka on holiday": 9,
    "weekly meeting time": 14,
    "when do we meet": 14,
    "penetration test date": 29,
    "which browsers do we drop": 19,
    "Internet Explorer": 19,
    "accessibility requirements": 17,
    "newsletter sign-up": 20,
    "training service desk": 22,
    "mobile app": 24,
    "postal register rate limit": 27,
    "launch day": 30,
    "risks": 21,
    "currency of older invoices": 16,
    "single sign-on": 6,
    "brand book colours": 13,
    "data processing agreement": 12,
    "oracle database": 5,
    "monitoring alarms": 23,
    "attachments ticket form": 18,
    "who are the developers": 10,
}
"""Questions, with the number of the turn that answers each."""

UNRELATED = [
    "favourite pizza topping",
    "weather in Lisbon tomorrow",
    "how to train a puppy",
    "recipe for apple pie",
    "capital of Mongolia",
    "guitar chords for beginners",
    "flight to New York",
    "vaccination schedule for babies",
    "football world cup winner",
    "quantum entanglement explained",
    "my sister's birthday",
    "dentist appointment",
    "car insurance renewal",
    "best hiking boots",
    "chess opening theory",
    "gym membership fee",
    "what did grandma say about the garden",
    "password of the wifi",
    "did we discuss the salary of the intern",
    "discussed yesterday",
    "budget airline tickets",
    "board games for children",
    "tickets for the opera",
    "menu of the restaurant",
    "project of the school",
]
"""Questions that no turn answers; some share a word with a turn."""


def cold_turns(bank: MemoryBank) -> tuple[AgentMemory, list[str]]:
    """An agent that had the conversation, all of which is cold, and the ids of the turns."""
    agent = bank.agent("alice")
    turns = [f"Turn {number}: {text}" for number, text in enumerate(TURNS, 1)]
    ids = [memory.id for memory in agent.add_many(turns)]
    agent.spill(count=len(ids))
    return agent, ids


def recalled(query: str, promote_by: str = "passage") -> tuple[Recall, list[int]]:
    """A recall in the cold conversation, and the numbers of the turns that it promoted."""
    settings = {"promote_by": promote_by}
    with MemoryBank.ephemeral(preset="hot-cold-session", temperature=settings) as bank:
        agent, ids = cold_turns(bank)
        found = agent.recall(query)
    return found, [ids.index(each) + 1 for each in found.promoted]


def test_the_turn_that_says_it_is_promoted_by_the_first_recall() -> None:
    found, promoted = recalled("budget discussed")
    assert "$50K budget" in found.items[0].content
    assert found.likenesses[0] == pytest.approx(0.893, abs=0.005)
    assert promoted == [2]
    whole, promoted = recalled("budget discussed", "text")
    assert whole.likenesses[0] == pytest.approx(0.507, abs=0.001)
    assert promoted == []


@pytest.mark.slow
def test_what_is_promoted_is_mostly_the_answer_and_never_for_an_unrelated_question() -> None:
    right = others = 0
    for query, answer in ANSWERED.items():
        found, promoted = recalled(query)
        assert any(item.content.startswith(f"Turn {answer}:") for item in found.items), query
        right += answer in promoted
        others += len(set(promoted) - {answer})
    assert (right, others) == (15, 5)
    assert [query for query in UNRELATED if recalled(query)[1]] == []


def test_other_embedders_compare_the_whole_text() -> None:
    class Letters:
        name, dims, reproducible = "test/letters", 26, True

        def embed(self, texts: list[str], /) -> list[list[int]]:
            return [[text.lower().count(chr(97 + place)) for place in range(26)] for text in texts]

    with MemoryBank.ephemeral(embedder=Letters(), temperature={"promote_by": "passage"}) as bank:
        alice = bank.agent("alice")
        alice.add("Turn 2: finance approved a budget", temperature="cold")
        assert alice.recall("budget").promoted == ()
        alice.add("budget", temperature="cold")
        assert len(alice.recall("budget").promoted) == 1


@pytest.mark.parametrize(
    ("query", "text", "likeness"),
    [
        ("what was the budget?", "The budget is $50K", 1.0),
        ("Important fact", "an IMPORTANT fact", 1.0),
        ("the", "the well", 0.0),
        ("well", "of the", 0.0),
    ],
)
def test_words_that_say_little_and_capitals_do_not_count(
    query: str, text: str, likeness: float
) -> None:
    settings = {"promote_by": "passage", "promote_threshold": 1.0}
    with MemoryBank.ephemeral(temperature=settings) as bank:
        alice = bank.agent("alice")
        alice.add(text)
        found = alice.recall(query)
        if likeness == 1.0:
            assert found.likenesses == (1.0,)
        assert bool(found.promoted) == (likeness == 1.0)
