"""The `himecat` program and its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from himecat import __version__
from himecat.cli.examine import check, demo, explain, synthesize
from himecat.cli.learn import evaluate, fit
from himecat.cli.place import predict, score

app = typer.Typer(
    name="himecat",
    help="Sort a pile of documents into your own category tree from a handful of examples per category.",
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
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


# In the order in which a person needs them.
for command in (demo, check, fit, predict, explain, synthesize, evaluate, score):
    app.command()(command)
