"""`himecat demo`, `check`, `explain` and `synthesize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from himecat.cli import options as o
from himecat.cli.options import method_arguments, names, write_json
from himecat.errors import UsageError


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path("demo"),
    preset: o.Preset = None,
    seed: o.Seed = 0,
    threads: o.Threads = None,
    settings: o.Set = None,
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Train on a small made-up corpus, print the scores, and write a model and a report to look at.

    Example: `himecat demo -o demo`
    """
    arguments = method_arguments(preset, False, False, None, settings)
    from himecat.experiments.demo import run_demo
    from himecat.progress import Progress

    progress = Progress(quiet=quiet)
    scores = run_demo(output, arguments, seed=seed, threads=threads, overwrite=overwrite, progress=progress)
    from himecat.cli.place import show_scores

    show_scores(scores)
    progress.say(f"Look at {output / 'report.html'}; the model is in {output / 'model'}.")
    progress.say(
        f"Try: himecat explain {output / 'model'} bees, or "
        f"himecat fit {output / 'documents.jsonl'} --taxonomy {output / 'taxonomy.yaml'} -o my-model"
    )


def check(
    documents: Annotated[Path, typer.Argument(help="A file of documents, or a dataset folder.")],
    taxonomy: o.Tree = None,
    metadata: o.Metadata = None,
    text: o.Text = "text",
    labels: o.LabelField = "labels",
    id_field: o.IdField = "id",
    min_count: Annotated[int, typer.Option(min=1, help="Words seen less often are left out.")] = 5,
    skip_bad: o.SkipBad = False,
    json: o.Json = None,
) -> None:
    """Look over documents, tree and labels before any training. Exit code 2 if something has to change.

    Example: `himecat check papers.jsonl --taxonomy tree.yaml --metadata authors,tags`
    """
    from himecat.corpus.check import check as look_over
    from himecat.corpus.documents import Fields

    fields = Fields(tuple(names(text)), tuple(names(metadata)), labels, id_field)
    report = look_over(documents, taxonomy, fields, min_count=min_count, skip_bad=skip_bad)
    if json is not None:
        write_json(json, report.as_dict())
    if json is None or str(json) != "-":
        from rich.console import Console

        from himecat.corpus.check import render

        render(report, Console())
    if report.problems.has_errors:
        raise typer.Exit(2)


def explain(
    model: o.Model,
    label: Annotated[str | None, typer.Argument(help="A category: its name, or its path a/b/c.")] = None,
    documents: Annotated[Path | None, typer.Option(help="Explain where these documents were placed.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many of each.")] = 10,
    json: o.Json = None,
) -> None:
    """Show what lies nearest to a category, or what in documents speaks for theirs.

    Example: `himecat explain model physics.optics --top 15`
    """
    if label is None and documents is None:
        raise UsageError("Name a category, or documents with --documents.")
    from himecat.estimator import HiMeCat
    from himecat.explain import LabelExplanation

    found = HiMeCat.load(model).explain(label, documents=documents, top=top)
    if json is not None:
        plain = found.as_dict() if isinstance(found, LabelExplanation) else [one.as_dict() for one in found]
        write_json(json, plain)
    if json is None or str(json) != "-":
        _show(found)


def _show(found: object) -> None:
    from rich.console import Console
    from rich.markup import escape

    from himecat.explain import LabelExplanation

    console = Console(highlight=False)
    if isinstance(found, LabelExplanation):
        console.print(f"[bold]{escape('/'.join(found.path))}[/bold]")
        rows = [("words", found.words), *found.metadata.items(), ("categories", found.labels)]
        for title, neighbours in rows:
            listed = ", ".join(f"{one.name} {one.cosine:.2f}" for one in neighbours)
            console.print(f"[bold]{escape(title)}[/bold]  {escape(listed)}", soft_wrap=False)
        return
    assert isinstance(found, list)
    for position, one in enumerate(found):
        sure = ", ".join(f"{value:.2f}" for value in one.confidence)
        console.print(
            f"[bold]document {position}[/bold]  {escape('/'.join(one.path) or '(not placed)')}  ({sure})"
        )
        listed = ", ".join(f"{e.name} {e.weight:.2f}" for e in one.evidence)
        console.print(f"  {escape(listed or 'nothing in it speaks for this category')}")


def synthesize(
    model: o.Model,
    label: o.Label,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many documents.")] = 5,
    seed: Annotated[int | None, typer.Option(min=0, help="Another seed, other documents.")] = None,
    json: o.Json = None,
) -> None:
    """Show training documents made for a category, as fitting makes them.

    Example: `himecat synthesize model physics.optics -n 3`
    """
    from himecat.estimator import HiMeCat

    fitted = HiMeCat.load(model)
    made = fitted.synthesize(label, count, seed)
    if json is not None:
        title = list(fitted.taxonomy_.path(fitted.taxonomy_.find(label)))
        write_json(json, {"path": title, "documents": [" ".join(words) for words in made]})
    if json is None or str(json) != "-":
        for words in made:
            typer.echo(" ".join(words) + "\n")
