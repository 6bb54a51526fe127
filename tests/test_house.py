"""Rules of the package's structure that neither ruff nor import-linter knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import himecat
from himecat.cli.app import app

PACKAGE = Path(himecat.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))


def dotted(path: Path) -> str:
    """The module's name in imports."""
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def imports(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, module and name (or nothing) of everything imported from the package, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "himecat":
            yield from ((node.lineno, node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (
                (node.lineno, alias.name, "") for alias in node.names if alias.name.split(".")[0] == "himecat"
            )


def test_no_private_name_is_imported_from_another_module() -> None:
    known = {dotted(path) for path in MODULES}
    found = []
    for path in MODULES:
        for line, module, name in imports(path):
            # `from himecat.room import _module` imports a module, not a name.
            target = f"{module}.{name}" if f"{module}.{name}" in known else module
            package, _, last = target.rpartition(".")
            at_home = dotted(path).startswith(f"{package}.")
            if (target == module and is_private(name)) or (is_private(last) and not at_home):
                found.append(f"{path.relative_to(PACKAGE)}:{line} imports {target} {name}")
    assert found == []


def test_every_module_can_be_read_in_one_sitting() -> None:
    lengths = {
        str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES
    }
    assert {name: length for name, length in lengths.items() if length >= 400} == {}


def test_few_modules_lie_at_the_root() -> None:
    at_the_root = [path.name for path in PACKAGE.glob("*.py")]
    assert len(at_the_root) < 8, at_the_root


def test_every_compiled_loop_is_a_kernel() -> None:
    outside = [
        str(path.relative_to(PACKAGE))
        for path in MODULES
        if path.parent.name != "kernels"
        and any(
            module == "himecat.kernels.compiled" and name == "compiled" for _, module, name in imports(path)
        )
    ]
    assert outside == []


def test_whatever_is_shown_passes_the_module_that_makes_it_printable() -> None:
    """Nobody else opens a console of Rich, makes a text for it, or prints."""
    found = []
    for path in MODULES:
        name = str(path.relative_to(PACKAGE))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            # The help has no data in it, and colours.
            if name in ("runtime/terminal.py", "cli/app.py"):
                continue
            if isinstance(node, ast.ImportFrom) and node.module in ("rich.console", "rich.text"):
                # The type of a console may be named.
                if [alias.name for alias in node.names] != ["Console"] or node.col_offset != 4:
                    found.append(f"{name}:{node.lineno} imports from {node.module}")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                found.append(f"{name}:{node.lineno} prints")
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "echo"
            ):
                found.append(f"{name}:{node.lineno} echoes")
    assert found == []


def test_only_the_command_line_speaks_of_its_options() -> None:
    """A message of another room names an option by `errors.spelled`, which has the argument of Python beside it."""
    program: Any = typer.main.get_command(app)
    known = {
        name
        for command in program.commands.values()
        for param in command.params
        for name in (*param.opts, *param.secondary_opts)
        if name.startswith("--")
    }
    found = []
    for path in MODULES:
        if dotted(path).startswith("himecat.cli"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        spared = {
            id(inner)
            for node in ast.walk(tree)
            if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "spelled")
            # Docstrings, those of attributes among them.
            or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in spared:
                # Whoever is told a whole command may type it.
                text = re.sub(r"himecat \w+ --[a-z-]+", "", node.value)
                named = known.intersection(re.findall(r"--[a-z][a-z-]*", text))
                found += [f"{path.relative_to(PACKAGE)}: {one}" for one in named]
    assert found == []
