"""The methods of a run or a sweep, in words: what was simulated, compared and tested, with what."""

import json
import sys
from collections.abc import Iterator
from importlib import metadata

from ...config.settings import Settings
from ...memory.words import counted, number
from ..statistics import WIDER
from ..sweeps.drawn import Drawn
from ..sweeps.record import SweepRecord
from .paper import Study

GAP = "**[To write: {}]**"
"""What the author has to say, because nothing recorded says it."""
_PACKAGES = ("numpy", "scipy", "mem0ai", "chromadb")
_SCORES = {
    "generative": "The others were ranked by recency, importance and relevance, each scaled to 0 "
    "to 1 over the agent's memories and weighted {weights} (Park et al. 2023)",
    "forgetting": "The others were ranked by relevance, less what time and few recalls took from "
    "it (Zhong et al. 2024)",
    "recency": "The others were ranked by age, the newest first, whatever was asked",
}
_REFERENCES = {
    "Park et al. 2023": "Park, J. S., O'Brien, J. C., Cai, C. J., Morris, M. R., Liang, P., & "
    "Bernstein, M. S. (2023). Generative agents: Interactive simulacra of human behavior. In UIST.",
    "Zhong et al. 2024": "Zhong, W., Guo, L., Gao, Q., Ye, H., & Wang, Y. (2024). MemoryBank: "
    "Enhancing large language models with long-term memory. AAAI-24.",
    "Grimm et al. 2020": "Grimm, V., Railsback, S. F., Vincenot, C. E., et al. (2020). The ODD "
    "protocol for describing agent-based and other simulation models: A second update to improve "
    "clarity, replication, and structural realism. Journal of Artificial Societies and Social "
    "Simulation, 23(2), 7.",
    "McKay et al. 1979": "McKay, M. D., Beckman, R. J., & Conover, W. J. (1979). A comparison of "
    "three methods for selecting values of input variables in the analysis of output from a "
    "computer code. Technometrics, 21(2), 239–245.",
    "Saltelli et al. 2010": "Saltelli, A., Annoni, P., Azzini, I., Campolongo, F., Ratto, M., & "
    "Tarantola, S. (2010). Variance based sensitivity analysis of model output. Computer Physics "
    "Communications, 181(2), 259–270.",
    "Talts et al. 2018": "Talts, S., Betancourt, M., Simpson, D., Vehtari, A., & Gelman, A. "
    "(2018). Validating Bayesian inference algorithms with simulation-based calibration. "
    "arXiv:1804.06788.",
    "Holm 1979": "Holm, S. (1979). A simple sequentially rejective multiple test procedure. "
    "Scandinavian Journal of Statistics, 6(2), 65–70.",
}


def methods(study: Study) -> str:
    """The page ``methods.md``."""
    paragraphs = [
        " ".join(_simulated(study)),
        " ".join(memory(study.settings)),
        " ".join(_compared(study)),
        " ".join(_reproduced(study)),
    ]
    body = "\n\n".join(each for each in paragraphs if each)
    return (
        f"# Methods: {study.name}\n\n"
        "Written by `tiermem paper` from what was recorded. What nothing recorded says is marked "
        f"{GAP.format('…')}.\n\n{body}\n\n{_settings(study)}\n## References\n\n{_cited(body)}"
    )


def references() -> str:
    """The reference of the protocol that ``odd.md`` follows."""
    return _REFERENCES["Grimm et al. 2020"]


def _simulated(study: Study) -> Iterator[str]:
    own = study.settings.simulation
    ticks = own.ticks if study.run is None else study.run["tick"]
    what = _first_sentence(study.source.module or study.source.world)
    yield (
        f"We simulated {counted(agents_of(study.settings), 'agent')} in the world `{own.world}` "
        f"for {counted(ticks, 'tick')} (discrete steps of time)."
    )
    yield what if what else GAP.format("what the world is")
    yield policy(study.settings)
    if study.sweep is not None:
        yield "Where a variant below changes a setting, its value holds in place of the one here."


def agents_of(settings: Settings) -> int:
    """How many agents there are, whether they are counted or named."""
    agents = settings.simulation.agents
    return agents if isinstance(agents, int) else len(agents)


def policy(settings: Settings) -> str:
    """How agents decide, in words."""
    own, llm = settings.simulation, settings.llm
    if own.policy == "rules":
        options = f" ({_options(own.policy_options)})" if own.policy_options else ""
        return f"Agents decided by the rules that come with the world{options}."
    if own.policy != "llm":
        return f"Agents decided by the policy `{own.policy}`: {GAP.format('what it does')}."
    model = llm.model or llm.path or GAP.format("which model")
    where = llm.provider or "a server of OpenAI's protocol"
    groups = f" {counted(len(llm.groups), 'group')} of agents had settings of their own." * bool(
        llm.groups
    )
    return (
        f"Agents decided by a language model, {model} ({where}), with temperature "
        f"{number(llm.temperature)}, top_p {number(llm.top_p)}, seed {llm.seed} and at most "
        f"{llm.max_tokens} tokens a reply; replies were bound to a JSON schema of the possible "
        f"actions where the server has that.{groups} All replies were recorded, so that they can "
        "be replayed without the model."
    )


def memory(settings: Settings) -> Iterator[str]:
    """How agents remember, in words."""
    own, search = settings.memory, settings.retrieval
    boosts = own.tier_boosts._asdict()
    by = {
        "hybrid": "vectors and words (BM25) together",
        "vector": "the similarity of vectors",
        "keyword": "words (BM25)",
    }[search.mode]
    yield (
        "Each agent kept memories of its own, texts in five tiers (pinned, critical, important, "
        "normal, low). Before it decided, it was given at most "
        f"{counted(own.default_limit, 'memory', 'memories')} that matched a query, compared by "
        f"{by}."
    )
    if search.pins_first:
        yield "Pinned memories came first."
    if search.score == "tiers":
        shown = ", ".join(f"{tier} {number(value)}" for tier, value in boosts.items() if value)
        if search.pins_first:
            shown = ", ".join(
                f"{tier} {number(value)}"
                for tier, value in boosts.items()
                if value and tier != "pinned"
            )
        yield (
            "The others were ranked by this similarity"
            + (f" plus a boost by tier ({shown})" if shown else "")
            + f" over {own.candidate_multiplier} times as many candidates."
        )
    else:
        weights = search.generative
        each = [weights.recency, weights.importance, weights.relevance]
        yield _SCORES[search.score].format(weights=", ".join(map(number, each))) + "."
    yield (
        f"An agent had at most {number(own.max_pinned)} pinned and {number(own.max_critical)} "
        "critical memories; "
        + (
            "one more demoted the oldest of them to the next tier."
            if own.on_tier_full == "demote"
            else "one more was refused."
        )
    )
    if settings.decay.enabled:
        yield "Memories faded with time, with a half-life for each tier."
    if settings.reflection.enabled:
        yield (
            "An agent reflected when its new memories came to an importance of "
            f"{number(settings.reflection.threshold)}."
        )


def _compared(study: Study) -> Iterator[str]:
    sweep, look = study.sweep, study.look
    if sweep is None or look is None:
        yield f"This is one run, of seed {study.settings.seed}: it tests nothing."
        return
    if sweep.question:
        yield f"The question was: {sweep.question}"
    if sweep.drawn is not None:
        yield from _drawn(sweep, sweep.drawn)
        return
    names = [f"`{name}` ({_changes(changes)})" for name, changes in sweep.variants.items()]
    yield f"We compared {counted(len(names), 'variant')}: {', '.join(names)}."
    for key, values in sweep.grid.items():
        yield f"`{key}` was {_listed(values)}."
    runs, seeds = len(sweep.rows), sweep.seeds
    span = f"{seeds[0]}–{seeds[-1]}" if seeds == list(range(seeds[0], seeds[-1] + 1)) else ""
    yield (
        f"Each was run with the same {counted(len(seeds), 'seed')} ({span or _listed(seeds)}), "
        f"{counted(runs, 'run')} in all."
    )
    if look.is_registered:
        primary = f"the primary metric, `{look.primary}`" if look.primary else "no primary metric"
        looks = "any number of looks" if look.looks is None else counted(look.looks, "look")
        yield (
            f"Before the first run, {primary}, and {looks} at the results were registered "
            f"(SHA-256 of the registration: {look.hash})."
        )
    else:
        yield "No primary metric and no number of looks were registered before the first run."
    for each in look.deviations:
        yield f"Deviation from the registration: {each}."
    tested = [row for row in sweep.statistics if _base(row) and row.get(_base(row)) is not None]
    if not tested:
        yield "Nothing was tested: there is no baseline, or there are fewer than three seeds."
        return
    level = number(100 * (1 - (look.alpha or 0.05)), 4)
    base = ", ".join(f"{key} {value}" for key, value in sweep.baseline.items())
    yield (
        f"Differences from the baseline ({base}) are between runs of the same seed, judged by "
        f"Student's paired t test; intervals have a level of {level} %. p values were corrected "
        f"for {counted(len(tested), 'comparison')} by Holm's method (Holm 1979)"
        + (", the primary metric's apart from the others'," if look.primary else "")
        + f" and for the looks ({look.spent}). A corrected p of at most 0.05 is called a "
        "difference."
    )
    if any(row.get(f"{_base(row)}_skewed") for row in tested):
        yield (
            "Where differences were skewed, or one side varied three times as much as the other, "
            f"a mean counts as different if it lies {WIDER} times as far from zero as Student's "
            "test asks, and else the median was judged by a sign test."
        )
    yield "Equal differences in all seeds have no interval and no p value."


def _drawn(sweep: SweepRecord, drawn: Drawn) -> Iterator[str]:
    """What a fit, or a sweep over ranges, did."""
    ranges = [f"`{name}` ({low} to {high})" for name, (low, high) in drawn.ranges.items()]
    yield (
        f"Settings were drawn from ranges, uniformly and independently: {_listed_words(ranges)}. "
        f"The {counted(drawn.points, 'point')} are a Latin hypercube (McKay et al. 1979)"
        + (
            ", twice, with all points that take one setting from the other hypercube"
            if drawn.is_mixed
            else ", each with a seed of its own"
        )
        + f": {counted(len(sweep.rows), 'run')} in all."
    )
    if "indices" in sweep.tables:
        yield (
            "What a metric depends on is told by Sobol's first-order and total indices (Saltelli "
            "et al. 2010), with 95 % intervals of a percentile bootstrap over the points."
        )
    for row in list(sweep.tables.get("posterior", ()))[:1]:
        yield (
            f"The settings were fitted to data by rejection: the {row['n']} runs whose summary "
            "statistics lay nearest to those of the data, each divided by how far apart runs "
            "usually are, are the posterior; its intervals have 90 %. Whether such intervals have "
            f"the settings that made the data was checked with {row['check_tried']} of the runs in "
            "the place of the data (Talts et al. 2018)."
        )


def _listed_words(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _base(row: object) -> str:
    """The column of a row's difference from the baseline; empty where there is none."""
    names = [key for key in dict(row) if key.endswith("_p_holm")]  # type: ignore[call-overload]
    return str(names[0]).removesuffix("_p_holm") if names else ""


def _reproduced(study: Study) -> Iterator[str]:
    here = [f"Python {'.'.join(map(str, sys.version_info[:3]))}"]
    for package in _PACKAGES:
        try:
            here.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    made = f"TierMem {study.version}" if study.version else "TierMem"
    yield f"The simulations ran on {made}; this text was written with {', '.join(here)}."
    what = "Each run" if study.sweep is not None else "The run"
    yield (
        f"{what} can be repeated bit for bit from its settings and its seed (`tiermem replay`); "
        "the hash of what its agents remember at the end is "
        + (
            "in `tables/results.csv`, column `state_hash`."
            if study.run is None
            else f"{study.run['state_hash']}."
        )
    )


def _settings(study: Study) -> str:
    rows = [
        f"| `{key}` | {_cell(was)} | {_cell(here)} |" for key, (was, here) in study.changed.items()
    ]
    shared = " that all runs share" if study.sweep is not None else ""
    head = f"## Settings{shared} that differ from the defaults\n\n"
    if not rows:
        return head + "None.\n"
    return head + "\n".join(["| setting | default | here |", "|---|---|---|", *rows]) + "\n"


def _cell(value: object) -> str:
    text = "–" if value is None else value if isinstance(value, str) else _json(value)
    return text.replace("|", "\\|").replace("\n", " ")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _changes(changes: object) -> str:
    values = dict(changes)  # type: ignore[call-overload]
    return _options(values) if values else "as the scenario says"


def _options(values: object) -> str:
    pairs = dict(values).items()  # type: ignore[call-overload]
    return ", ".join(f"{key} {_json(value)}" for key, value in pairs)


def _listed(values: object) -> str:
    return _listed_words([_json(value) for value in values])  # type: ignore[attr-defined]


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.split("\n\n")[0].split())
    return paragraph if not paragraph or paragraph.endswith(".") else paragraph + "."


def _cited(body: str) -> str:
    cited = [text for key, text in sorted(_REFERENCES.items()) if f"({key})" in body]
    ours = f"- {GAP.format('how to cite TierMem, mem0 and the packages above')}\n"
    return "".join(f"- {text}\n" for text in cited) + ours
