"""Test functions of pytest that can't fail, found without running them."""

import ast
import posixpath
from collections.abc import Iterator, Sequence

from t1x.tasks.task import Task

HARMLESS = {
    "print",
    "len",
    "str",
    "repr",
    "bool",
    "Path",
    "exists",
    "is_file",
    "is_dir",
    "isfile",
    "isdir",
    "info",
    "debug",
    "warning",
}
"""Names of calls that report or look, and don't fail over what they find."""
CATCHING = {"Exception", "BaseException", "AssertionError"}

TestFunction = ast.FunctionDef | ast.AsyncFunctionDef


def assertless(task: Task) -> list[str]:
    """`file::function` of every test among the task's tests in which no assertion, `raise` or call can fail. A file that isn't
    Python can't be judged, and isn't."""
    found = []
    for file in task.tests:
        base = posixpath.basename(file.path)
        if base.endswith(".py") and (base.startswith("test_") or base.endswith("_test.py")):
            try:
                tree = ast.parse(file.content)
            except (SyntaxError, ValueError):
                continue
            found += [f"{file.path}::{name}" for name, test in _tests(tree.body) if not _can_fail(test.body)]
    return found


def _tests(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[tuple[str, TestFunction]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _tests(node.body, f"{prefix}{node.name}::")


def _can_fail(body: Sequence[ast.AST]) -> bool:
    return any(_node_can_fail(node) for node in body)


def _node_can_fail(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise):
        return True
    if isinstance(node, ast.Assert):
        return not _always_true(node.test)
    if isinstance(node, ast.Call) and _called(node) not in HARMLESS:
        return True
    if isinstance(node, ast.Try) and any(_swallows(handler) for handler in node.handlers):
        return _can_fail([*node.handlers, *node.orelse, *node.finalbody])
    return _can_fail(list(ast.iter_child_nodes(node)))


def _always_true(test: ast.expr) -> bool:
    return bool(test.value) if isinstance(test, ast.Constant) else isinstance(test, ast.Tuple) and bool(test.elts)


def _called(call: ast.Call) -> str:
    function = call.func
    return function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""


def _swallows(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in CATCHING) for kind in kinds)
