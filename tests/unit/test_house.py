"""What import contracts can't see: values and rules hold no state, and only one room knows mem0."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "agents"
PURE = sorted(path for room in ("memory", "rules") for path in (SOURCE / room).rglob("*.py"))

DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MAKERS = {
    "list", "dict", "set", "bytearray", "defaultdict", "OrderedDict", "Counter", "deque",
    "WeakKeyDictionary", "WeakValueDictionary",
}  # fmt: skip
CACHES = {"cache", "lru_cache", "cached"}
WRITING = {
    "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "insert",
    "intersection_update", "move_to_end", "pop", "popitem", "popleft", "remove", "reverse",
    "setdefault", "sort", "symmetric_difference_update", "update",
}  # fmt: skip


def state_in(source: str) -> list[str]:
    """What a module has that one call could leave for the next one."""
    tree = ast.parse(source)
    constants = dict(_mutable(tree))
    found = [f"{name} is not named as a constant" for name in constants if not name.isupper()]
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            found += [f"{name} is global" for name in node.names]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {_name(each) for each in node.decorator_list}
            found += [f"{node.name} has a {each}" for each in sorted(decorators & CACHES)]
        elif (name := _written(node)) in constants:
            found.append(f"{name} is written to in line {node.lineno}")  # type: ignore[attr-defined]
    return found


def _mutable(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Lists, dicts, sets and caches that a module or a class of it has."""
    bodies = [tree.body, *[each.body for each in tree.body if isinstance(each, ast.ClassDef)]]
    for node in [statement for body in bodies for statement in body]:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        if isinstance(value, DISPLAYS) or _name(value) in MAKERS | CACHES:
            for target in targets:
                if isinstance(target, ast.Name) and target.id != "__all__":
                    yield target.id, value


def _name(node: ast.expr) -> str:
    """What is called, or named: ``lru_cache`` of ``functools.lru_cache(maxsize=8)(function)``."""
    while isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _written(node: ast.AST) -> str:
    """The name of what a piece of code writes to."""
    target: ast.AST | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        target = node.func.value if node.func.attr in WRITING else None
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        target = node.value
    elif isinstance(node, ast.AugAssign):
        target = node.target
    return target.id if isinstance(target, ast.Name) else ""


@pytest.mark.parametrize("path", PURE, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_values_and_rules_hold_no_state(path: Path) -> None:
    assert state_in(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("_seen: dict[str, str] = {}", "_seen is not named as a constant"),
        ("_seen = dict[str, str]()", "_seen is not named as a constant"),
        ("SEEN = set()\ndef see(x):\n    SEEN.add(x)", "SEEN is written to in line 3"),
        ("SEEN = {}\ndef see(x):\n    SEEN[x] = x", "SEEN is written to in line 3"),
        ("SEEN = {}\ndef see(x):\n    del SEEN[x]", "SEEN is written to in line 3"),
        ("SEEN = [0]\ndef see(x):\n    SEEN[0] += x", "SEEN is written to in line 3"),
        ("class Seen:\n    all = []", "all is not named as a constant"),
        ("count = 0\ndef see():\n    global count\n    count += 1", "count is global"),
        ("@functools.lru_cache(maxsize=8)\ndef see(x): ...", "see has a lru_cache"),
        ("@cache\ndef see(x): ...", "see has a cache"),
        ("see = functools.lru_cache(see_once)", "see is not named as a constant"),
    ],
)
def test_state_is_found(source: str, found: str) -> None:
    assert found in state_in(source)


def test_constants_are_no_state() -> None:
    source = "__all__ = ['X']\nX = {1: 2}\n_Y = [3]\ndef f():\n    own = {}\n    own[X[1]] = _Y[0]"
    assert state_in(source) == []


# Only storage/mem0 knows mem0

MEM0 = {"mem0", "chromadb"}


def mem0_in(source: str) -> list[int]:
    """The lines that import mem0 or Chroma: by a statement, by a text, or by our own function."""
    if not any(name in source for name in MEM0):  # to parse all files takes seconds
        return []
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Import) and any(_is_mem0(each.name) for each in node.names))
        or (isinstance(node, ast.ImportFrom) and not node.level and _is_mem0(node.module))
        or (isinstance(node, ast.Call) and _imports_mem0(node))
    ]


def _imports_mem0(call: ast.Call) -> bool:
    name = _name(call.func)
    if name == "import_mem0":
        return True
    given = [*call.args, *[each.value for each in call.keywords]]
    texts = [node for value in given for node in ast.walk(value) if isinstance(node, ast.Constant)]
    return ("import" in name or name == "find_spec") and any(_is_mem0(each.value) for each in texts)


def _is_mem0(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in MEM0


def test_only_the_room_mem0_imports_mem0_or_chroma() -> None:
    files = {path: mem0_in(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}
    importers = {path.relative_to(SOURCE).parent for path, lines in files.items() if lines}
    assert importers == {Path("storage/mem0")}


@pytest.mark.parametrize(
    "line",
    [
        "import mem0.memory.main as main",
        "from chromadb import Settings",
        "importlib.import_module('mem0')",
        "import_module(name='chromadb.config')",
        "import_module(f'mem0.llms.{name}')",
        "__import__('mem0')",
        "importlib.util.find_spec('mem0')",
        "import_mem0(module)",
        "store.import_mem0('mem0.utils.factory')",
    ],
)
def test_an_import_of_mem0_is_found(line: str) -> None:
    assert mem0_in(f"def use():\n    {line}\n") == [2]


@pytest.mark.parametrize(
    "line",
    [
        "from .mem0 import Store",
        "import_module('json')",
        "Finding('ok', 'mem0', 'all is well')",
        "import mem0ai_tools",
    ],
)
def test_what_only_names_mem0_is_no_import_of_it(line: str) -> None:
    assert mem0_in(line) == []
