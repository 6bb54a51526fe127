"""`himecat fit`."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

from himecat.cli import options as o
from himecat.cli.options import counted, method_arguments, name_or_names, names


def fit(
    documents: o.Documents,
    *,
    taxonomy: o.Tree = None,
    metadata: o.Metadata = None,
    text: o.Text = "text",
    labels: o.LabelField = "labels",
    id_field: o.IdField = "id",
    separator: o.Separator = None,
    sheet: o.Sheet = None,
    delimiter: o.Delimiter = None,
    labels_from_folders: o.FolderLabels = False,
    keywords: o.Keywords = None,
    skip_bad: o.SkipBad = False,
    bound: o.Bound = None,
    allow_empty_leaves: o.AllowEmpty = False,
    method: o.Method = None,
    encoder: o.Encoder = None,
    tokenizer: o.Tokenizer = "unicode",
    seed: o.Seed = 0,
    threads: o.Threads = None,
    no_hierarchy: o.NoHierarchy = False,
    no_metadata: o.NoMetadata = False,
    ignore_metadata: o.IgnoreMetadata = None,
    settings: o.Set = None,
    min_confidence: o.MinConfidence = None,
    output: Annotated[Path, o.option(o.OUTPUT, "Model folder to write.", "--output", "-o", metavar="MODEL")],
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Learn a model from documents of which a few carry labels.

    Example: `himecat fit papers.jsonl --taxonomy tree.yaml --metadata authors,tags -o model`
    """
    arguments = method_arguments(method, no_hierarchy, no_metadata, ignore_metadata, settings)
    from himecat.runtime.files import check_target

    check_target(output, overwrite, "The model")
    from himecat.estimator import HiMeCat
    from himecat.runtime.progress import Progress

    progress = Progress(quiet=quiet)
    model = HiMeCat(
        taxonomy=taxonomy,
        metadata=names(metadata),
        text=names(text),
        label_field=name_or_names(labels),
        id_field=id_field,
        separator=separator,
        sheet=sheet,
        delimiter=delimiter,
        labels_from_folders=labels_from_folders,
        keywords=keywords,
        encoder=encoder,
        skip_bad=skip_bad,
        allow_empty_leaves=allow_empty_leaves,
        min_confidence=min_confidence or 0.0,
        random_state=seed,
        threads=threads,
        tokenizer=tokenizer,
        **arguments,
    )
    model.fit(documents, progress=progress)
    model.save(output, overwrite=overwrite)
    progress.say(
        f"Learned {model.taxonomy_.n_leaves} leaves from {counted(len(model.space_.documents))}; "
        f"the model is in {output}. Next:\n"
        f"  himecat predict {quote(str(output))} {quote(str(documents))} -o predictions.jsonl"
    )
