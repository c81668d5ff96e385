"""Another user of this machine, or another machine: its key is not ours."""

import contextlib
import json
import os
import pickle
import sqlite3
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def stranger(folder: Path) -> Iterator[None]:
    """Inside, banks and runs are made by somebody else, whose state is in ``folder``."""
    before = os.environ["XDG_STATE_HOME"]
    os.environ["XDG_STATE_HOME"] = str(folder / "stranger")
    try:
        yield
    finally:
        os.environ["XDG_STATE_HOME"] = before


class Touch:
    """When unpickled, it makes a file: code that a store's file brought along."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))


def poison(bank: Path, path: Path) -> None:
    """Put a pickle that makes the file ``path`` into the bank's local qdrant store."""
    (file,) = bank.glob("qdrant/**/storage.sqlite")
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute("INSERT INTO points VALUES ('x', ?)", (pickle.dumps(Touch(path)),))


STAND_IN = """
from pathlib import Path
class SentenceTransformer:
    def __init__(self, model_name_or_path, **options):
        Path(model_name_or_path).touch()
"""


def stand_in(folder: Path) -> str:
    """A folder of modules: one stands for a package that runs the code of the model it is given."""
    folder.mkdir()
    (folder / "sentence_transformers.py").write_text(STAND_IN)
    return str(folder)


def name_class(env: Path, modules: Path, path: Path) -> str:
    """Let a file .env name a class for Chroma, whose module makes the file ``path``."""
    modules.mkdir()
    (modules / "theirs.py").write_text(f"open({str(path)!r}, 'w')")
    env.write_text("CHROMA_PRODUCT_TELEMETRY_IMPL=theirs.Telemetry")
    return str(modules)


def name_function(chroma: Path, column: str, path: Path) -> None:
    """Let the collections of a Chroma name a function that makes the file ``path`` when built."""
    options = {"device": "cpu", "normalize_embeddings": False, "kwargs": {}}
    options["model_name"] = str(path)
    function = {"type": "known", "name": "sentence_transformer", "config": options}
    with contextlib.closing(sqlite3.connect(chroma / "chroma.sqlite3")) as database, database:
        for row, text in database.execute(f"SELECT id, {column} FROM collections").fetchall():
            found = json.loads(text)
            if column == "schema_str":
                vectors = found["keys"]["#embedding"]["float_list"]
                vectors["vector_index"]["config"]["embedding_function"] = function
            else:
                found["embedding_function"] = function
                database.execute("UPDATE collections SET schema_str = NULL")  # as older Chromas do
            written = (json.dumps(found), row)
            database.execute(f"UPDATE collections SET {column} = ? WHERE id = ?", written)
