"""The `himecat` program and its commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from himecat import __version__
from himecat.cli.compare import ablate, compare, sweep
from himecat.cli.evaluate import evaluate
from himecat.cli.examine import check, demo, explain, synthesize
from himecat.cli.learn import fit
from himecat.cli.place import predict
from himecat.cli.score import score


class _PlainHelpOption:
    """Shows `--help` as the other switches are shown, without a type."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


class _Command(_PlainHelpOption, TyperCommand):
    pass


class _Program(_PlainHelpOption, TyperGroup):
    pass


app = typer.Typer(
    name="himecat",
    cls=_Program,
    help="Sort a pile of documents into your own category tree from a handful of examples per category."
    "\n\nExample: `himecat demo`, then `himecat fit --help`",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"himecat {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_version, is_eager=True, metavar=""),
    ] = False,
) -> None:
    pass


# In the order in which a person needs them.
for command in (demo, check, fit, predict, explain, synthesize, evaluate, score, compare, ablate, sweep):
    app.command(cls=_Command)(command)
