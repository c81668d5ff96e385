"""What the source of a world says of itself, read as text: nothing of it is run."""

import ast
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..worlds import WORLDS

_ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")
"""A name in the markup of docstrings, such as ``:class:`~tiermem.InvalidAction```."""
_METHODS = ("setup", "observe", "apply", "end_tick", "metrics", "conversations", "may_tell")


class WorldSource(NamedTuple):
    """A world as its source describes it; empty where the source says nothing or is not there."""

    module: str = ""
    """What the module says of itself."""
    world: str = ""
    """What the class says of itself."""
    options: Mapping[str, Any] = {}
    """The options with their defaults, as far as these are plain values."""
    actions: Mapping[str, str] = {}
    """What agents can do, by name."""
    methods: Mapping[str, str] = {}
    """What the methods say of themselves."""
    policies: Mapping[str, str] = {}
    """What the other classes of the module say of themselves, by name."""


def source_of(world: str | None, code: Path | None) -> WorldSource:
    """What the source of the world ``market`` or ``module:Class`` says; ``code`` has copies."""
    if world is None:
        return WorldSource()
    place = WORLDS.get(world, world)
    module, _, name = place.partition(":")
    if world in WORLDS:
        found = importlib.util.find_spec(module)
        file = None if found is None or found.origin is None else Path(found.origin)
    elif code is None or not all(part.isidentifier() for part in module.split(".")):
        file = None
    else:
        file = code.joinpath(*module.split(".")).with_suffix(".py")
    try:
        is_there = file is not None and file.is_file()  # a pipe would wait for a writer
        tree = ast.parse(file.read_text("utf-8")) if file is not None and is_there else None
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        tree = None
    if tree is None:
        return WorldSource()
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    own = classes.pop(name, None)
    told = {each: _doc(node) for each, node in classes.items() if not each.startswith("_")}
    policies = {each: text for each, text in told.items() if text}
    if own is None:
        return WorldSource(_doc(tree), policies=policies)
    methods = {node.name: node for node in own.body if isinstance(node, ast.FunctionDef)}
    said = {each: _doc(methods[each]) for each in _METHODS if each in methods}
    return WorldSource(
        module=_doc(tree),
        world=_doc(own),
        options=_defaults(methods.get("__init__")),
        actions=_actions(own),
        methods={each: text for each, text in said.items() if text},
        policies=policies,
    )


def _doc(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> str:
    text = ast.get_docstring(node) or ""
    return _ROLE.sub(r"`\1`", text).replace("``", "`")


def _defaults(init: ast.FunctionDef | None) -> dict[str, Any]:
    if init is None:
        return {}
    pairs = zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True)
    return {name.arg: _plain(value) for name, value in pairs}


def _actions(world: ast.ClassDef) -> dict[str, str]:
    for node in world.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if names == ["actions"]:
            found = _plain(getattr(node, "value", None))
            return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}
    return {}


def _plain(node: ast.expr | None) -> Any:
    try:
        return None if node is None else ast.literal_eval(node)
    except ValueError:  # a value that only running the code would give
        return None
