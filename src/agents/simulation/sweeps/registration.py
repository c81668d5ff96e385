"""What a sweep was to test, written before its first run, and each look at its results since.

Seeds that are added after a look give chance another turn. So each look is kept, and spends a part
of the 5 % (docs/architecture/statistics.md).
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...config.yaml_files import read_file, to_yaml
from ...errors import ConfigError, RunError
from ...memory.words import counted
from ...storage.files import replace_file
from ..reports.sweep_report import Look
from ..statistics import FEWEST_SEEDS, share_of_look
from .sweep import Sweep

FILE = "registration.yaml"
_HEAD = (
    "# What this sweep was to test, written before its first run; then each look at its results.\n"
)


def register(sweep: Sweep, folder: Path, *, after_runs: int = 0) -> None:
    """Write what the sweep is to test, if the folder does not have it.

    A sweep over ranges and a fit test nothing.
    """
    if (folder / FILE).exists() or sweep.drawn is not None:
        return
    registered = _to_test(sweep)
    kept: dict[str, Any] = {"registered": registered, "hash": _hash(registered), "looks": []}
    if after_runs:
        kept["after_runs"] = after_runs
    _write(folder, kept)


def look_at(sweep: Sweep, folder: Path, rows: Sequence[Mapping[str, Any]]) -> Look:
    """The look at these runs: a new one is kept, and the same runs looked at again are no new one.

    With fewer than three seeds nothing is tested, so that no look is spent.
    """
    register(sweep, folder, after_runs=len(rows))
    kept = _read(folder)
    registered, now = kept["registered"], _to_test(sweep)
    runs = [[row["cell"], row["state_hash"]] for row in rows]
    seen = _hash({"runs": runs, "metrics": now["metrics"], "baseline": now["baseline"]})
    known = [each["seen"] for each in kept["looks"]]
    seeds = len({row["seed"] for row in rows})
    if seen not in known and seeds >= FEWEST_SEEDS:
        kept["looks"].append({"seeds": seeds, "runs": len(rows), "seen": seen})
        known.append(seen)
        _write(folder, kept)
    number = known.index(seen) + 1 if seen in known else len(known) + 1
    looks = registered["looks"]
    deviations = list(_deviations(kept, now, number, len(sweep.runs()) - len(rows)))
    if deviations != kept.get("deviations", []):
        _write(folder, {**kept, "deviations": deviations})
    return Look(
        number=number,
        looks=looks,
        alpha=share_of_look(number, looks),
        alpha_next=share_of_look(max(number, len(known)) + 1, looks),
        primary=registered["primary"],
        seeds=[each["seeds"] for each in kept["looks"]],
        hash=kept["hash"],
        is_registered=registered["primary"] is not None or looks is not None,
        deviations=deviations,
    )


def last_look(folder: Path) -> tuple[Look, dict[str, Any]]:
    """The last look at a finished sweep as its file has it, and the baseline it registered."""
    kept = _read(folder)
    registered, looks = kept["registered"], kept["looks"]
    number = max(1, len(looks))
    look = Look(
        number=number,
        looks=registered["looks"],
        alpha=share_of_look(number, registered["looks"]),
        alpha_next=share_of_look(number + 1, registered["looks"]),
        primary=registered["primary"],
        seeds=[each["seeds"] for each in looks],
        hash=kept["hash"],
        is_registered=registered["primary"] is not None or registered["looks"] is not None,
        deviations=kept.get("deviations", []),
    )
    return look, dict(registered["baseline"])


def _to_test(sweep: Sweep) -> dict[str, Any]:
    return {
        "primary": sweep.primary,
        "looks": sweep.looks,
        "metrics": list(sweep.metrics) or None,
        "baseline": dict(sweep.baseline),
        "variants": list(sweep.variants),
        "grid": {name: list(values) for name, values in sweep.grid.items()},
        "seeds": list(sweep.seeds),
        "plan": _hash(sweep.to_dict()),
    }


_NAMES = {"primary": "primary metric", "looks": "number of looks"}


def _deviations(
    kept: Mapping[str, Any], now: Mapping[str, Any], number: int, missing: int
) -> Iterator[str]:
    """What is otherwise than registered, in words."""
    registered = kept["registered"]
    if _hash(registered) != kept["hash"]:
        yield "the registration was changed after it was written: its hash is different"
    if kept.get("after_runs"):
        yield f"it was registered after {counted(kept['after_runs'], 'run')}"
    for key in ("primary", "looks", "metrics", "baseline", "variants", "grid"):
        if registered[key] != now[key]:
            was, is_now = (_shown(each[key]) for each in (registered, now))
            yield f"the {_NAMES.get(key, key)} was {was} and is {is_now}"
    if registered["plan"] != now["plan"]:
        yield "the settings or the code of the runs are different"
    if left_out := set(registered["seeds"]) - set(now["seeds"]):
        yield f"{counted(len(left_out), 'registered seed')} left out"
    if missing:
        yield f"{counted(missing, 'run')} missing"
    looks = registered["looks"]
    if looks is not None and number > looks:
        added = len(set(now["seeds"]) - set(registered["seeds"]))
        yield (
            f"this is look {number}, {counted(added, 'seed')} added, and "
            f"{counted(looks, 'look')} registered: nothing counts as a difference any more"
        )


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _read(folder: Path) -> dict[str, Any]:
    try:
        kept: Any = read_file(folder / FILE).value
        _ = kept["registered"]["seeds"], kept["hash"], [each["seen"] for each in kept["looks"]]
    except (ConfigError, LookupError, TypeError) as error:
        raise RunError(
            f"{folder / FILE} can't be read, so nobody knows what was registered: {error!s:.200}",
            hint="bring the file back, or start anew with --force",
        ) from None
    return dict(kept)


def _write(folder: Path, kept: Mapping[str, Any]) -> None:
    replace_file(folder / FILE, _HEAD + to_yaml(dict(kept)))
