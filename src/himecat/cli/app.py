"""The `himecat` program and its commands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from himecat import __version__
from himecat.cli.compare import ablate, compare, sweep
from himecat.cli.correct import correct, review
from himecat.cli.evaluate import evaluate
from himecat.cli.examine import check, demo, explain, synthesize
from himecat.cli.learn import fit
from himecat.cli.map import map_
from himecat.cli.options import OUTPUT
from himecat.cli.place import predict
from himecat.cli.places import check_places
from himecat.cli.propose import propose
from himecat.cli.score import score
from himecat.cli.serve import serve
from himecat.cli.tree import tree
from himecat.errors import UsageError
from himecat.runtime.leftovers import clean_leftovers
from himecat.runtime.terminal import tell, write

# Names or places: what they name is read.
_MAY_BE_PATHS = ("encoder", "systems")


class _PlainHelpOption:
    """Shows `--help` as the other switches are shown, without a type."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


class _Command(_PlainHelpOption, TyperCommand):
    def invoke(self, ctx: Any) -> Any:
        """Run the command, once it is certain that none of its results takes the place of what it reads."""
        given = [(param, ctx.params.get(param.name)) for param in self.params]
        for param, value in given:
            _check_characters(param, value)
        outputs = {
            max(param.opts, key=len): value
            for param, value in given
            if isinstance(value, Path) and _panel(param) == OUTPUT
            # Where a file is asked for, a folder is refused when it is written.
            if param.metavar != "FILE" or not os.path.isdir(value)
        }
        check_places(
            outputs,
            [
                path
                for param, value in given
                if _panel(param) != OUTPUT
                for path in (value if isinstance(value, list) else [value])
                if isinstance(path, Path) or (isinstance(path, str) and param.name in _MAY_BE_PATHS)
            ],
        )
        for folder in {output.parent for output in outputs.values()}:
            if removed := clean_leftovers(folder):
                tell(
                    f"note: removed what an earlier run that was killed left in {folder}: {', '.join(removed)}."
                )
        return super().invoke(ctx)


def _check_characters(param: Any, value: Any) -> None:
    """Names of files may be of any bytes; whatever else is written on a command line is text."""
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, str | Path) and "\0" in str(part):
            raise UsageError(f"{param.opts[-1]}: a NUL character cannot be part of it.")
        if isinstance(part, str) and not part.isascii():
            try:
                part.encode()
            except UnicodeEncodeError:
                raise UsageError(f"{param.opts[-1]}: {part!r} is not UTF-8.") from None


def _panel(param: Any) -> str:
    return str(getattr(param, "rich_help_panel", ""))


class _Program(_PlainHelpOption, TyperGroup):
    pass


app = typer.Typer(
    name="himecat",
    cls=_Program,
    help="Sort a pile of documents into your own category tree from a handful of examples per category."
    "\n\nExample: `himecat demo`, then `himecat fit --help`",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        write(f"himecat {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_version, is_eager=True, metavar=""),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


# In the order in which a person needs them.
for command in (
    *(demo, check, fit, predict, review, correct, serve, tree, propose, map_, explain, synthesize),
    *(evaluate, score, compare, ablate, sweep),
):
    app.command(command.__name__.rstrip("_"), cls=_Command)(command)
