"""Trust in runs, banks and checkpoints: which run is the user's own, and trusting what is not.

A run of this user has a file ``run.seal``. One seal in it covers the settings and the code, one
covers the place of the run's folder: the user may mend the code there.
"""

import contextlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from ...bank import history
from ...config.load import load_settings
from ...config.settings import LlmSettings, Settings
from ...errors import InvalidInput
from ...storage import checkpoint
from ...storage.files import replace_file
from ...storage.trust import (
    Trusted,
    claim_store,
    embedder_wish,
    file_seal,
    has_pickles,
    is_listed,
    listed,
    llm_wish,
    notes_wish,
    place_seal,
    refusal,
    sealed,
    store_wish,
    update_list,
)
from ..worlds import WORLDS
from .folder import calls_of, read_folder

_SEAL = "run.seal"


def seal_run(folder: Path, settings: Settings) -> None:
    """Say that a run is the user's own, unless nothing depends on that."""
    # A model that decides nothing may be asked in an interview.
    if any(_wishes_of(folder, settings)) or llm_wish(settings.llm):
        replace_file(folder / _SEAL, "".join(f"{seal}\n" for seal in _seals(folder)))


def is_trusted_run(folder: Path) -> bool:
    """Whether this user made the run, or trusts it."""
    right = _seals(folder)
    with contextlib.suppress(OSError, ValueError):
        if not {*right}.isdisjoint((folder / _SEAL).read_text().split()):
            return True
    return is_listed(*right)


def check_run(
    folder: Path, settings: Settings, *, replay: bool = False, is_parent: bool = False
) -> None:
    """Refuse what an untrusted run may not do; a replay asks no LLM, a parent is left as it is."""
    wanted = list(_wishes_of(folder, settings, replay=replay))
    if not wanted:
        return
    if not is_trusted_run(folder):
        raise refusal(folder, " and to ".join(wanted))
    if not (replay or is_parent):
        with contextlib.suppress(OSError):  # it stays trusted as it was
            seal_run(folder, settings)  # the code may have been mended, or the folder copied


def check_asking(folder: Path, own: Settings, llm: LlmSettings) -> None:
    """Refuse to ask a language model that the settings of an untrusted run name, or a part of it.

    ``own`` are the run's settings, and ``llm`` says who is asked.
    """
    wish = llm_wish(llm)
    if wish and (own.llm.is_set or own.llm.config) and not is_trusted_run(folder):
        raise refusal(folder, wish)


def trust(path: str | PathLike[str]) -> list[str]:
    """Trust a run, a bank or a checkpoint; what its settings want to do, as lines of text.

    The trust is kept in your own state folder, for what is there now: later changes to the settings
    or to a run's code elsewhere need to be trusted again. Trust what came from people whose code
    you would run.
    """
    place = Path(path)
    entry = _entry(place)
    wanted = list(wishes(place))
    update_list(lambda known: [*(each for each in known if each.path != entry.path), entry])
    for bank in (place, place / "bank"):
        if (bank / "journal.db").is_file() and has_pickles(_remembered(bank).store, bank):
            claim_store(bank)
    return wanted


def untrust(path: str | PathLike[str]) -> None:
    """Trust a run, a bank or a checkpoint no more; :class:`InvalidInput` if it was not trusted."""
    place = Path(path).absolute()
    known = listed()
    kept = [each for each in known if each.path != str(place)]
    if len(kept) == len(known):
        raise InvalidInput(
            f"{place} is not in the list of what you trust",
            hint="see it with: tiermem store trust --list",
        )
    update_list(lambda now: [each for each in now if each.path != str(place)])
    for file in (place / _SEAL, place / "store.seal", place / "bank" / "store.seal"):
        file.unlink(missing_ok=True)


def trusted() -> list[Trusted]:
    """What the user trusts besides what the user made."""
    return listed()


def wishes(path: Path) -> Iterator[str]:
    """What a run, a bank or a checkpoint wants to do that needs trust."""
    if (path / "run.json").is_file():
        return _wishes_of(path, read_folder(path)[0])
    return _settings_wishes(_remembered(path), path)


def _entry(path: Path) -> Trusted:
    place = str(path.absolute())
    if (path / "run.json").is_file():
        read_folder(path)
        return Trusted(place, "run", [*_seals(path), _bank_seal(path / "bank")])
    kind = "bank" if path.is_dir() else "checkpoint"
    return Trusted(place, kind, [_bank_seal(path)])


def _bank_seal(path: Path) -> str:
    return str(sealed(_identity(path))["seal"])


def _identity(path: Path) -> dict[str, object]:
    """The identity in a bank's folder, or in a checkpoint."""
    if path.is_file():
        return checkpoint.read(path).bank
    with contextlib.closing(history.past(path, None)) as journal:
        identity: dict[str, object] = journal.get("bank")
        return identity


def _remembered(path: Path) -> Settings:
    settings = _identity(path)["settings"]
    return load_settings(base=settings)  # type: ignore[arg-type]


def _seals(folder: Path) -> tuple[str, str]:
    code = folder / "code"
    files = [folder / "run.json", folder / "config.yaml", *sorted(code.rglob("*"))]
    if code.is_symlink():
        files.append(code)
    return (
        file_seal((str(path.relative_to(folder)), path) for path in files),
        place_seal(folder / "run.json"),
    )


def _wishes_of(folder: Path, settings: Settings, *, replay: bool = False) -> Iterator[str]:
    simulation = settings.simulation
    calls = calls_of(read_folder(folder)[1]) if (folder / "run.json").is_file() else ()
    for name in (simulation.world, simulation.model, simulation.policy, *calls):
        if name and ":" in name and name not in WORLDS:
            yield f"run the code of {name!r:.80}"
    asks = simulation.policy == "llm" and not replay
    yield from _settings_wishes(settings, folder / "bank", llm=asks)


def _settings_wishes(settings: Settings, folder: Path, *, llm: bool = True) -> Iterator[str]:
    wanted = (
        embedder_wish(settings.embedder),
        store_wish(settings.store, folder),
        llm_wish(settings.llm) if llm else None,
        notes_wish(settings.notes.extra_paths),
    )
    yield from (wish for wish in wanted if wish)
