"""How near are a question and the memory that answers it? It chooses ``needed(near=…)``.

For pairs that were written for this, and for the questions and memories of the shipped worlds: the
cosine of the offline embedder between a question and its answer, and between a question and the
answers of others. The table says how many of each a threshold lets through.

    python benchmarks/nearness.py
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiermem.simulation.worlds import rumor, town
from tiermem.storage.embedding import OfflineEmbedder

PAIRS = {
    "Where does my sister live now?": "Anna moved to Lisbon last spring",
    "What should I not cook for Ben?": "Ben is allergic to peanuts",
    "When does the pharmacy close?": "The pharmacy on Hill Street is open until eight",
    "Who repaired the boiler?": "The plumber Ortega fixed the heating in January",
    "What is the password of the guest network?": "Visitors use the wifi code bluefinch22",
    "Can I trust the man with the red hat?": "The man with the red hat cheated me at cards",
    "Which bridge is out of order?": "The north bridge is closed since the flood",
    "How much do I owe Carla?": "I borrowed thirty coins from Carla",
    "Where did I leave the spare key?": "The second key lies under the flower pot",
    "What does the captain drink?": "The captain takes rum without ice",
    "When is the next council meeting?": "The council meets on the first Monday of each month",
    "Is the water in the old well safe?": "The old well was poisoned, nobody should drink from it",
    "Who won the race last year?": "Marta came first in the race of last summer",
    "What did the doctor tell me about my knee?": "The doctor said that I should rest the knee",
    "Which wine goes with fish?": "Our guests liked the white Riesling with the trout",
    "What is the name of the baker's daughter?": "The baker's daughter is called Ines",
    "Why was the train late?": "A tree had fallen on the rails near Weston",
    "Where do we meet tomorrow?": "We come together at the fountain at noon",
    "What did I promise to Tom?": "I told Tom that I would lend him my tent",
    "How do I get to the monastery?": "The path to the monastery begins behind the mill",
    "Which merchant sells good cloth?": "Idris has the finest linen at the market",
    "What is the dog afraid of?": "The dog hides when there is thunder",
    "What must I never say to the queen?": "Never mention the war in front of the queen",
    "Who knows how to play the organ?": "Father Paul plays the organ on Sundays",
    "What grows in the upper field?": "We planted barley in the upper field",
    "Where was the treasure found?": "They dug up the gold coins beside the chapel",
    "What is the deadline of the report?": "The report has to be handed in by Friday",
    "Who is the owner of the blue boat?": "The blue boat belongs to Sverre",
    "How did the play end?": "In the last act of the play the hero forgives his brother",
    "What did we decide about the roof?": "Decision: the roof gets slate, not straw",
}  # fmt: skip
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


def cosines(questions: list[str], memories: list[str]) -> NDArray[np.float64]:
    """The cosine of each question and each memory."""
    embedder = OfflineEmbedder()
    one, other = (np.asarray(embedder.embed(texts), float) for texts in (questions, memories))
    lengths = np.linalg.norm(one, axis=1)[:, None] * np.linalg.norm(other, axis=1)
    result: NDArray[np.float64] = one @ other.T / np.maximum(lengths, 1e-12)
    return result


def worlds() -> dict[str, tuple[list[str], list[str]]]:
    """Questions and the memories that answer them, place by place, of shipped worlds."""
    claims = list(rumor._CLAIMS)
    names = [f"agent_{number:02}" for number in range(20)]
    days = range(3, 3 + 2 * len(town._EVENTS), 2)
    venues = [*town._VENUES, *town._VENUES]
    return {
        "pairs written for this": (list(PAIRS), list(PAIRS.values())),
        "market": ([f"Should I accept the offer from {name}?" for name in names],
                   [f"Never accept an offer from {name}: {name} cheated me" for name in names]),
        "rumor": ([rumor._question(claim) for claim in claims],
                  [rumor._words(claim, True) for claim in claims]),
        "town": ([f"What is there on day {day}?" for day in days],
                 [f"There is a {event} at the {venue} on day {day}"
                  for event, venue, day in zip(town._EVENTS, venues, days, strict=False)]),
    }  # fmt: skip


def main() -> None:
    """Print a row for each set: how many answers, and how many others, pass each threshold."""
    heads: list[Any] = [f"≥ {each}" for each in THRESHOLDS]
    print(f"| texts | median | {' | '.join(heads)} |")
    print("|---|--:" + "|--:" * len(THRESHOLDS) + "|")
    for name, (questions, memories) in worlds().items():
        found = cosines(questions, memories)
        is_own = np.eye(len(questions), dtype=bool)
        for whose, own in (("its answer", found[is_own]), ("another's", found[~is_own])):
            shares = " | ".join(f"{(own >= each).mean():.1%}" for each in THRESHOLDS)
            print(f"| {name}: {whose} | {np.median(own):.2f} | {shares} |")


if __name__ == "__main__":
    main()
