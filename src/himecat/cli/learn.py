"""`himecat fit`."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

from himecat.cli import options as o
from himecat.cli.options import counted, metadata_names, method_arguments, name_or_names, names, write_json
from himecat.cli.parts import Address, source_to_fit
from himecat.cli.report import check_report, place_all, write_page
from himecat.errors import UsageError

# With an engine, documents stay where they are: no more of them come here than this has room for.
_MEMORY_OF_DRIVER = "2GB"


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
    several: o.Several = None,
    method: o.Method = None,
    encoder: o.Encoder = None,
    tokenizer: o.Tokenizer = "unicode",
    seed: o.Seed = 0,
    threads: o.Threads = None,
    memory: Annotated[
        str | None,
        o.option(
            o.METHOD,
            "What a fit may take, e.g. 2GB; half of what is there by default. Of more documents a sample is taken.",
            metavar="SIZE",
        ),
    ] = None,
    no_hierarchy: o.NoHierarchy = False,
    no_metadata: o.NoMetadata = False,
    ignore_metadata: o.IgnoreMetadata = None,
    decides: o.Decides = None,
    settings: o.Set = None,
    min_confidence: o.MinConfidence = None,
    output: Annotated[Path, o.option(o.OUTPUT, "Model folder to write.", "--output", "-o", metavar="MODEL")],
    engine: Annotated[
        str,
        o.option(o.RUNS, "Where files are read and summed: local, or ray.", metavar="NAME"),
    ] = "local",
    address: Address = None,
    report: o.Page = None,
    json: o.Json = None,
    overwrite: o.Overwrite = False,
    no_corpus: Annotated[
        bool,
        o.option(
            o.OUTPUT,
            "Do not keep the documents (as ids of words) with the model: `correct` then cannot fit it again.",
            "--no-corpus",
        ),
    ] = False,
    quiet: o.Quiet = False,
) -> None:
    """Learn a model from documents of which a few carry labels, and say how good it probably is.

    With --json the estimate as JSON: levels, leaves, likely confusions, labels to look at again.

    Example: `himecat fit papers.jsonl --taxonomy tree.yaml --metadata authors,tags -o model`
    """
    arguments = method_arguments(method, no_hierarchy, no_metadata, ignore_metadata, settings, decides)
    from himecat.runtime.files import check_target

    check_target(output, overwrite, "The model")
    source = source_to_fit(documents, engine, address)
    if report is not None and isinstance(source, list):
        raise UsageError("--report goes with one file of documents.")
    check_report(report, documents)
    from himecat.estimator import HiMeCat
    from himecat.output.tables import is_table
    from himecat.runtime.progress import Progress

    progress = Progress(quiet=quiet)
    model = HiMeCat(
        taxonomy=taxonomy,
        metadata=metadata_names(metadata),
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
        several=several,
        min_confidence=min_confidence or 0.0,
        random_state=seed,
        threads=threads,
        memory=memory or (_MEMORY_OF_DRIVER if engine != "local" else None),
        tokenizer=tokenizer,
        **arguments,
    )
    if engine == "local":
        model.fit(source, progress=progress)
    else:
        from himecat.runtime.engines import open_engine

        with open_engine(engine, address, threads) as opened:
            model.fit(source, progress=progress, engine=opened)
    model.save(output, corpus=not no_corpus, overwrite=overwrite)
    quality = model.quality_
    if json is not None:
        write_json(json, None if quality is None else quality.as_dict())
    for line in () if quality is None else quality.lines():
        progress.say(line)
    if report is not None:
        write_page(report, model, documents, place_all(model, documents), fitted=True, progress=progress)
    result = f"sorted{documents.suffix}" if is_table(documents) else "predictions.jsonl"
    kind = "categories" if model.gives_sets else "leaves"
    progress.say(
        f"Learned {len(model.paths_)} {kind} from {counted(len(model.space_.documents))}; "
        f"the model is in {output}. Next:\n"
        f"  himecat predict {quote(str(output))} {quote(str(documents))} -o {quote(result)}"
    )
