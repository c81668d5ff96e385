"""No object reaches into the private attributes of another."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from banks import ROOT

SOURCE = ROOT / "src" / "agents"

# Public, whatever their names say: the methods of named tuples, two names of the standard library,
# and the one field of mem0's Memory that has to be set because its constructor is not run.
ALLOWED = {"_asdict", "_fields", "_make", "_replace", "os._exit", "hashlib._Hash"}
ALLOWED_IN = {"storage/mem0/models.py": {"memory._entity_store"}}

# To parse all files takes seconds: only those that may have a reach are parsed.
PERHAPS = re.compile(r"(?<!\bself)(?<!\bcls)\.\s*_[a-zA-Z]")


def reaches(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
            continue
        if node.attr.startswith("__"):
            continue
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            continue
        if node.attr not in ALLOWED and ast.unparse(node) not in ALLOWED:
            yield ast.unparse(node)


def found_in(path: Path) -> set[str]:
    allowed = ALLOWED_IN.get(path.relative_to(SOURCE).as_posix(), set())
    source = path.read_text(encoding="utf-8")
    return set(reaches(ast.parse(source))) - allowed if PERHAPS.search(source) else set()


def test_the_check_sees_a_reach() -> None:
    source = "other._secret = self._own + each.engine._x"
    assert list(reaches(ast.parse(source))) == ["other._secret", "each.engine._x"]


def test_only_files_without_a_reach_are_not_parsed() -> None:
    for reach in ("other._secret", "myself._x", "self.engine._x", "f(self)._x", "a[0]. _x"):
        assert PERHAPS.search(f"self._own + {reach}")
    assert not PERHAPS.search("self._own + cls._all + other.open + os.__name__")


def test_no_module_reaches_into_the_private_attributes_of_another_object() -> None:
    found = {path.relative_to(SOURCE).as_posix(): found_in(path) for path in SOURCE.rglob("*.py")}
    assert {name: names for name, names in found.items() if names} == {}
