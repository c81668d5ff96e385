"""The files that come with the package: defaults, the schema, presets and profiles."""

import difflib
import functools
from pathlib import Path
from typing import Literal

from ..errors import ConfigError
from .plain import Document


def packaged(name: str) -> Path:
    """The file or folder of this name."""
    # An installed wheel carries config/ inside the package; a checkout has it beside src/.
    here = Path(__file__).parent.parent
    folder = here / "defaults"
    return (folder if folder.exists() else here.parents[1] / "config") / name


def named(kind: Literal["preset", "profile"], name: object) -> Document:
    """The packaged preset or profile of this name, or :class:`ConfigError`."""
    # Only a known name becomes part of a path: no name leads to another folder.
    known = sorted(path.stem for path in packaged(f"{kind}s").glob("*.yaml"))
    if isinstance(name, str) and name in known:
        return _read(f"{kind}s/{name}.yaml")
    near = difflib.get_close_matches(name.lower(), known, 1) if isinstance(name, str) else ()
    names = f"known: {', '.join(known)}"
    hint = f"did you mean {near[0]}? ({names})" if near else names
    raise ConfigError(f"there is no {kind} {name!r:.60}", hint=hint)


@functools.cache
def _read(name: str) -> Document:
    from .yaml_files import read_file

    document = read_file(packaged(name))
    # An empty file changes nothing.
    return document if document.value is not None else Document(document.source, {})
