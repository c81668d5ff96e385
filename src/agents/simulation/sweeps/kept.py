"""Whether the finished runs in a sweep's folder are those that the sweep would run now."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from ...config.load import load_settings
from ...config.settings import Settings
from ...config.yaml_files import read_yaml, show_path
from ...errors import ConfigError, RunError
from ..runs.folder import settings_of_before
from ..runs.placement import without_engine
from ..runs.scenario import code_of
from .sweep import Cell, Sweep

ANEW = "choose another folder with --out, or start anew with --force"
"""The hint for a folder whose runs are not those of the sweep."""
_SEED = re.compile(r"^seed: (-?\d+)\n", re.MULTILINE)
_MOST_NAMED = 3
_MISSING = ...


def check_kept(sweep: Sweep, kept: Iterable[tuple[Cell, Path]]) -> None:
    """Refuse to go on with runs whose settings or code are not what the sweep has now.

    The plan has the scenario and its code as they were; a variant may have other code, and another
    version of TierMem may make other settings of the same plan.
    """
    codes: dict[tuple[str | None, str], dict[str, bytes]] = {}
    for cell, folder in kept:
        settings = without_engine(sweep.settings(cell))
        made_of = settings.simulation.world, settings.simulation.policy
        if made_of not in codes:
            found = code_of(settings, sweep.scenario.parent)
            codes[made_of] = {name: file.read_bytes() for name, file in found.items()}
        for what, others in (
            ("settings", _other_settings(folder, settings)),
            ("code", _other_code(folder / "code", codes[made_of])),
        ):
            if named := list(islice(others, _MOST_NAMED)):
                raise RunError(
                    f"{folder} ran with other {what} than the sweep has now: {', '.join(named)}",
                    hint=ANEW,
                )


def _other_settings(folder: Path, settings: Settings) -> Iterator[str]:
    """The names of the settings that a run does not share with ``settings``, and their values.

    Checkpoints change no result: a sweep with ``--keep-runs`` has others than one without.
    """
    try:
        text = (folder / "config.yaml").read_text()
        seed = _SEED.search(text)
        was = {**_settings_in(_SEED.sub("", text, count=1)), "seed": seed and int(seed[1])}
    except (OSError, UnicodeDecodeError, ConfigError) as error:
        raise RunError(
            f"{folder} is finished, and its config.yaml can't be read, so nobody knows what it "
            f"ran: {error}",
            hint=f"delete {folder} to run it again, {ANEW}",
        ) from error
    now = settings.to_dict(redact=True)
    yield from _differing({**was, "checkpoint": None}, {**now, "checkpoint": None})


@lru_cache(maxsize=64)
def _settings_in(config: str) -> dict[str, object]:
    """The settings in the text of a run's file: runs of many seeds have the same but for these."""
    given: Any = read_yaml(config, "config.yaml").value
    return load_settings(given, overrides=settings_of_before(given)).to_dict(redact=True)


def _differing(was: object, now: object, *path: str) -> Iterator[str]:
    if isinstance(was, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*was, *now]):
            yield from _differing(was.get(key, _MISSING), now.get(key, _MISSING), *path, key)
    elif _as_text(was) != _as_text(now):
        yield f"{show_path(path)} was {_as_text(was):.60} and is {_as_text(now):.60}"


def _as_text(value: object) -> str:
    return "not set" if value is _MISSING else json.dumps(value, sort_keys=True)


def _other_code(copies: Path, code: Mapping[str, bytes]) -> Iterator[str]:
    """The names of the user's own modules of which a run has another copy, or none."""
    kept = {str(path.relative_to(copies)) for path in copies.rglob("*.py")}
    for name in sorted({*code, *kept}):
        copy = copies / name
        if not copy.is_file() or copy.read_bytes() != code.get(name):
            yield name
