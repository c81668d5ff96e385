"""Presets: packaged settings for a way of working, beneath a file of one's own."""

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.config import packaged
from agents.config.load import load_settings
from agents.errors import ConfigError
from banks import ROOT
from default_rules import default_rules

FILES = sorted((ROOT / "config" / "presets").glob("*.yaml"))
PRESETS = [path.stem for path in FILES]


IN_USE = {
    "name": "in use",
    "when": {"temperature": ["hot", "warm"], "accesses": 3, "idle_below": "1d"},
    "to": "hot",
}
OF_TEMPERATURE = ["hot-cold-session", "hot-warm-cold", "lifetime", "tiers"]
OF_RETRIEVAL = ["hybrid", "quality", "vector", "weighted-sum"]
CLASSIC = ["generative-agents", "memorybank", "recency"]
NO_TIERS = {
    "memory.max_pinned": 1_000_000,
    "memory.max_critical": 1_000_000,
    **{f"memory.tier_boosts.{tier}": 0.0 for tier in ("pinned", "critical", "important", "low")},
    "retrieval.mode": "vector",
    "retrieval.pins_first": False,
}
NOTHING_BUT_SIMILARITY = {
    "retrieval.sif": 0.0,
    "retrieval.spread.question": 0.0,
    "retrieval.spread.neighbours": 0.0,
    "retrieval.spread.session": 0.0,
    "retrieval.spread.asked": 1.0,
    "retrieval.spread.speaker": 0.0,
}


def refusal(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(*args, **kwargs)
    return str(caught.value)


def leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, (*path, key))
    else:
        yield path, value


def test_the_presets_are_these() -> None:
    assert sorted(OF_TEMPERATURE + OF_RETRIEVAL + CLASSIC) == PRESETS


@pytest.mark.parametrize("path", FILES, ids=PRESETS)
def test_a_preset_says_in_a_few_lines_for_whom_it_is(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    comment = [line.startswith("# ") for line in lines].index(False)
    assert 3 <= comment <= 6
    assert "or " in lines[0]


@pytest.mark.parametrize("preset", ["tiers", "hybrid"])
def test_this_is_the_default(preset: str) -> None:
    assert load_settings(preset=preset) == load_settings()


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_about_memories_or_about_finding_them(preset: str) -> None:
    text = (ROOT / "config" / "presets" / f"{preset}.yaml").read_text(encoding="utf-8")
    expected = {"retrieval"} if preset in OF_RETRIEVAL else {"temperature", "decay"}
    if preset in CLASSIC:  # a design of its own for memories and for finding them
        expected = {"memory", "retrieval", "temperature", "reflection"}
    if preset == "quality":
        expected = {"retrieval", "embedder"}
    assert yaml.safe_load(text).keys() <= expected


@pytest.mark.parametrize(
    ("preset", "changed"),
    [
        (
            "hot-warm-cold",
            {
                "temperature.auto_prune": True,
                "temperature.compact_every": "1d",
                "temperature.compact_on_close": True,
                "temperature.rules": [*default_rules()[:3], IN_USE, *default_rules()[3:]],
            },
        ),
        (
            "hot-cold-session",
            {
                "temperature.initial": "hot",
                "temperature.hot_max_tokens": 4000,
                "temperature.hot_max_facts": None,
                "temperature.warm_access_threshold": 4,
            },
        ),
        (
            "lifetime",
            {
                "temperature.initial": "hot",
                "temperature.ttl_cold_below": "1d",
                "temperature.ttl_warm_below": "7d",
                "temperature.warm_access_threshold": 0,
                "temperature.compact_every": "1d",
                "temperature.rules": [IN_USE],
                "decay.enabled": True,
            },
        ),
        ("vector", {"retrieval.mode": "vector", **NOTHING_BUT_SIMILARITY}),
        (
            "memorybank",
            {
                **NO_TIERS,
                **NOTHING_BUT_SIMILARITY,
                "retrieval.score": "forgetting",
                "temperature.min_score": 0.0,
            },
        ),
        ("quality", {"embedder.provider": "both", "retrieval.read_closely": 30}),
        ("recency", {**NO_TIERS, **NOTHING_BUT_SIMILARITY, "retrieval.score": "recency"}),
        (
            "weighted-sum",
            {
                "retrieval.vector_weight": 0.7,
                "retrieval.text_weight": 0.3,
                "retrieval.bm25_k1": 1.2,
                "retrieval.bm25_b": 0.75,
                "retrieval.spelling": False,
                **NOTHING_BUT_SIMILARITY,
            },
        ),
    ],
)
def test_a_preset_differs_from_the_default_in_this(preset: str, changed: dict[str, object]) -> None:
    usual = dict(leaves(load_settings().to_dict()))
    loaded = leaves(load_settings(preset=preset).to_dict())
    assert {".".join(path): value for path, value in loaded if usual[path] != value} == changed


@pytest.mark.parametrize(
    ("preset", "keys"),
    [
        ("hot-warm-cold", ["rules", "compact_on_close", "compact_every", "auto_prune"]),
        (
            "hot-cold-session",
            ["auto_spill", "warm_access_threshold", "promote_threshold", "promote_accesses"],
        ),
    ],
)
def test_a_preset_writes_out_what_it_relies_on(preset: str, keys: list[str]) -> None:
    text = (ROOT / "config" / "presets" / f"{preset}.yaml").read_text(encoding="utf-8")
    assert set(keys) <= set(yaml.safe_load(text)["temperature"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *permutations(OF_TEMPERATURE, 2),
        *(
            pair
            for pair in permutations(OF_RETRIEVAL, 2)
            if pair != ("weighted-sum", "vector") and pair[0] != "quality"
        ),
    ],
)
def test_a_bank_made_with_one_preset_can_be_opened_with_another(before: str, after: str) -> None:
    made_with = load_settings(preset=before).to_dict()
    assert load_settings(preset=after, base=made_with) == load_settings(preset=after)


@pytest.mark.parametrize("after", ["hybrid", "vector", "weighted-sum"])
def test_a_bank_of_quality_reads_nothing_closely_with_another_preset(after: str) -> None:
    """Its embedder stays; how it is searched does not."""
    made_with = load_settings(preset="quality").to_dict()
    loaded = load_settings(preset=after, base=made_with)
    assert loaded.embedder.provider == "both"
    assert loaded.retrieval == load_settings(preset=after).retrieval


def test_the_preset_comes_after_the_banks_settings_and_before_all_others() -> None:
    def initial(**layers: Any) -> str:
        return load_settings(preset="lifetime", **layers).temperature.initial

    cold = {"temperature": {"initial": "cold"}}
    assert initial(base=cold) == "hot"
    assert initial(config=cold) == "cold"
    assert initial(assignments=["temperature.initial=warm"], config=cold) == "warm"
    assert initial(overrides=cold, assignments=["temperature.initial=warm"]) == "cold"


def test_an_unknown_preset_suggests_the_near_one_and_lists_all() -> None:
    known = f"known: {', '.join(PRESETS)}"
    assert refusal(preset="lifetme") == (
        f"there is no preset 'lifetme'; did you mean lifetime? ({known})"
    )
    assert refusal(preset="zzz") == f"there is no preset 'zzz'; {known}"


@pytest.mark.parametrize(
    "name", ["", ".", "../config", "presets/tiers", "tiers.yaml", "/etc/passwd", "a\0b", "\udcff"]
)
def test_the_name_of_a_preset_is_no_path(name: str) -> None:
    message = refusal(preset=name)
    assert message.startswith("there is no preset ")
    message.encode("utf-8")


@pytest.mark.parametrize("name", [3, ["tiers"], Path("tiers"), b"tiers"])
def test_a_preset_of_another_type_is_refused(name: Any) -> None:
    assert refusal(preset=name).startswith("there is no preset ")


def test_a_preset_beneath_whole_settings_is_refused_since_it_would_do_nothing() -> None:
    assert refusal(load_settings(), preset="lifetime") == (
        "preset 'lifetime' would change nothing: Settings name every value already; give the"
        " preset where these are loaded"
    )


def test_an_installed_package_reads_the_presets_inside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_settings({"seed": 1})  # the defaults, and what may be set, are read once
    (tmp_path / "defaults" / "presets").mkdir(parents=True)
    (tmp_path / "defaults" / "presets" / "mine.yaml").write_text("seed: 8\n")
    monkeypatch.setattr(packaged, "__file__", str(tmp_path / "config" / "packaged.py"))
    assert load_settings(preset="mine").seed == 8
    assert refusal(preset="tiers").endswith("; known: mine")


def test_the_option_names_every_preset() -> None:
    from agents.interfaces.cli.options import Preset

    (option,) = Preset.__metadata__  # type: ignore[attr-defined]
    assert all(name in option.help for name in PRESETS)
