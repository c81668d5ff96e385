"""Replacing files, whole or not at all."""

import os
from pathlib import Path

__all__ = ["replace_file"]


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file of a few megabytes; the content is on disk before the file gets its name."""
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
