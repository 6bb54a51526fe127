"""From raw input to what a fit learns from: documents, tree, labels and keywords, checked.

`validate` is the one judge of input. A fit stops at the first stage with errors; a check goes through all stages
and lists everything, because its `Problems` do not stop. So whatever passes a check, a fit accepts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from himecat.errors import DataError, UsageError, spelled
from himecat.input.builder import LoadedCorpus, load_corpus
from himecat.input.columns import ColumnReader
from himecat.input.corpus import Corpus, Supervision
from himecat.input.documents import Fields
from himecat.input.enough import check_leaves, check_words
from himecat.input.folders import Draw, opened
from himecat.input.formats import parts_of
from himecat.input.intake import Each
from himecat.input.keywords import keyword_labels, known_keywords, read_keywords
from himecat.input.labels import (
    NOWHERE,
    is_nowhere,
    labels_by_row,
    readable_labels,
)
from himecat.input.pile import Pile, sample_of, states_of
from himecat.input.prepare import prepare
from himecat.input.problems import Problems, quoted, shortened
from himecat.input.ready import check_supervision, check_tokenizer, with_columns_of
from himecat.input.sampling import Room
from himecat.input.separators import SLASH, checked, split_labels
from himecat.input.several import Parted, check_several, parted, resolved, turned
from himecat.input.spellings import alike
from himecat.input.taxonomy.readers import infer_taxonomy, read_taxonomy
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.tokenizer import UNICODE, Tokenizer
from himecat.input.values import nearest
from himecat.runtime.progress import Progress
from himecat.runtime.threads import release_memory


@dataclass(frozen=True)
class Material:
    """Everything a fit learns from.

    Examples
    --------
    >>> import numpy as np
    >>> from himecat import Taxonomy, read_corpus
    >>> few = Supervision(np.array([0]), np.array([1]))
    >>> Material(read_corpus(["a fox"]), Taxonomy.from_paths([("x",), ("y",)]), few, Problems()).mean_length
    2
    """

    corpus: Corpus
    taxonomy: Taxonomy
    supervision: Supervision
    problems: Problems
    keywords: Mapping[int, tuple[str, ...]] | None = None
    separator: str = SLASH
    fields: Fields = field(default_factory=Fields)
    several: bool = False
    pile: Pile | None = None
    texts: list[Corpus] = field(default_factory=list)

    @property
    def mean_length(self) -> int:
        """Known words of an average document, at least 1."""
        return max(1, round(float(self.corpus.tokens.lengths.mean())))


@dataclass
class Validated:
    """What validation found; a part is None where errors leave it open.

    Examples
    --------
    >>> Validated(Problems()).taxonomy is None
    True
    """

    problems: Problems
    loaded: LoadedCorpus | None = None
    taxonomy: Taxonomy | None = None
    supervision: Supervision | None = None
    keywords: Mapping[int, tuple[str, ...]] | None = None
    separator: str = SLASH
    fields: Fields = field(default_factory=Fields)
    names: Sequence[str] = ()
    several: bool = False
    pile: Pile | None = None


def read_material(X: Any, y: Any, *, progress: Progress, **options: Any) -> Material:
    """Read documents, tree and labels; warnings are shown, and errors stop here.

    Takes the options of `validate`.
    """
    problems = Problems()
    given = opened(X, options.pop("taxonomy"), options.pop("fields"), problems)
    found = validate(
        given.source,
        y,
        taxonomy=given.taxonomy,
        fields=given.fields,
        problems=problems,
        progress=progress,
        draw=given.draw if y is None else None,
        shown=given.shown,
        **options,
    )
    problems.raise_errors()
    for problem in problems:
        progress.say(f"{problem.severity}: {problem}")
    if problems.hidden("warning"):
        progress.say(f"warning: ... and {problems.hidden('warning')} more.")
    assert found.loaded is not None
    assert found.taxonomy is not None
    assert found.supervision is not None
    return Material(
        found.loaded.corpus,
        found.taxonomy,
        found.supervision,
        problems,
        found.keywords,
        found.separator,
        found.fields,
        found.several,
        found.pile,
        found.loaded.drawn.texts if found.loaded.drawn else [],
    )


def validate(
    X: Any,
    y: Any = None,
    *,
    taxonomy: Any,
    fields: Fields,
    problems: Problems,
    keywords: Any = None,
    tokenizer: str | Tokenizer = UNICODE,
    readers: Sequence[ColumnReader] = (),
    min_count: int,
    max_tokens: int,
    allow_empty_leaves: bool = False,
    skip_bad: bool = False,
    progress: Progress | None = None,
    threads: int | None = None,
    whole_texts: bool = False,
    draw: Draw | None = None,
    separator: str | None = None,
    several: bool | None = None,
    room: Room | None = None,
    shown: Collection[int] | None = None,
    seed: int = 0,
    each: Each | None = None,
) -> Validated:
    """Read documents, tree, labels and keywords, and judge whether a fit can learn from them.

    Parameters
    ----------
    X : path, table, iterable or Corpus
        The documents.
    y : sequence or Supervision, optional
        The labels; by default those in the documents.
    taxonomy : path, mapping or Taxonomy, optional
        The tree; by default the one that the labels and the labels of keywords span.
    fields : Fields
        Which field plays which part.
    problems : Problems
        Receives what is found.
    keywords : mapping or path, optional
        Words that stand for categories.
    tokenizer, readers, min_count, max_tokens, skip_bad, progress, threads
        As for `load_corpus`.
    allow_empty_leaves : bool
        Whether leaves without labelled documents and keywords are a warning instead of an error.
    whole_texts : bool
        Keep all words in `LoadedCorpus.all_words`, for statistics.
    draw : callable, optional
        Chooses the labelled documents, where not all that have labels are to be shown to a model.
    separator : str, optional
        What separates levels in a label; "none" for names without levels. By default it is found.
    several : bool, optional
        Whether a document may belong to several categories. By default it is found from the labels.
    room : Room, optional
        How many documents a fit may learn from at once: of a larger source a sample is taken, which `seed` decides.
    each : callable, optional
        Reads the parts of the source elsewhere.
    shown : collection of int, optional
        Positions of the documents that a `draw` would choose, where they are known before anything is read.

    Raises
    ------
    DataError
        There are errors, and `problems` stop at them.

    Examples
    --------
    >>> documents = [{"text": "a red fox", "labels": "animals"}, {"text": "an old oak", "labels": "plants"}]
    >>> found = validate(documents, taxonomy=None, fields=Fields(), problems=Problems(), min_count=1, max_tokens=300)
    >>> found.taxonomy.n_leaves, found.supervision.nodes.tolist()
    (2, [1, 2])
    """
    found = Validated(problems, fields=fields)
    separator = checked(separator)
    # Before the documents: the tree is small, and a fault in it should not wait for them.
    if taxonomy is not None:
        with problems.recorded():
            found.taxonomy = read_taxonomy(taxonomy, problems)
    if isinstance(X, Corpus):
        check_tokenizer(X, tokenizer)
        found.loaded = LoadedCorpus(with_columns_of(X, readers), {}, [], [], problems)
    else:
        X, fields, found.names = prepare(X, fields, y is None, problems)
        found.fields = fields
        try:
            sample = sample_of(X, room, found.taxonomy, draw, shown, seed) if y is None else None
            states = states_of(X)
            found.loaded = load_corpus(
                X,
                fields,
                min_count=min_count,
                max_tokens=max_tokens,
                tokenizer=tokenizer,
                problems=problems,
                skip_bad=skip_bad,
                readers=readers,
                progress=progress,
                threads=threads,
                whole_texts=whole_texts,
                sample=sample,
                each=each if sample is not None and not sample.knows_positions else None,
            )
        except DataError as error:
            # Errors that are known already say why no document is left; further lines repeat warnings.
            if problems.stops:
                raise
            if not problems.has_errors:
                problems.error("", str(error).split("\n", 1)[0])
            return found
        if (drawn := found.loaded.drawn) is not None:
            draw, count = None, len(found.loaded.corpus)
            found.pile = Pile(parts_of(X), fields, max_tokens, tuple(readers), drawn.n_documents, states)
            problems.note("", found.pile.said(count, len(drawn.texts[0])))
            release_memory()
    if taxonomy is None or found.taxonomy is not None:
        _read_labels(found, y, keywords, draw, separator, several)
    tree, labelled, corpus = found.taxonomy, found.supervision, found.loaded.corpus
    if labelled is not None:
        found.several = check_several(labelled, several, found.loaded.place, problems)
        problems.raise_errors()
    if tree is not None and labelled is not None:
        if keywords is not None:
            found.keywords = read_keywords(keywords, tree, problems, corpus.words.tokenizer, found.separator)
            problems.raise_errors()
            known = known_keywords(found.keywords, corpus.words, tree, problems)
            labelled = replace(labelled, keywords={node: found.keywords[node] for node in known})
            found.supervision = labelled
        check_leaves(tree, labelled, keywords is not None, allow_empty_leaves, problems)
        if not problems.has_errors:
            check_words(corpus, labelled, min_count, problems)
    if not corpus.metadata:
        problems.note("", "No metadata fields were named: text alone is used.")
    return found


def _read_labels(
    found: Validated, y: Any, keywords: Any, draw: Draw | None, separator: str | None, several: bool | None
) -> None:
    """Set the tree, where none was given, and the labelled documents."""
    problems, loaded, tree = found.problems, found.loaded, found.taxonomy
    assert loaded is not None
    if isinstance(y, Supervision):
        found.separator = separator or SLASH
        if tree is None:
            raise UsageError("A Supervision names nodes of a tree: pass the taxonomy too.")
        if loaded.skipped:
            raise UsageError(
                f"A Supervision counts rows, and {len(loaded.skipped)} documents were left out: pass the labels "
                "as a list, or a Corpus."
            )
        check_supervision(y, len(loaded.corpus), tree)
        found.supervision = y
        return
    labels = loaded.labels if y is None else labels_by_row(y, len(loaded.corpus), loaded.skipped)
    nowhere = sorted(row for row, label in labels.items() if is_nowhere(label))
    labels = {row: label for row, label in labels.items() if not is_nowhere(label)}
    if not labels and not keywords:
        problems.error("", _no_labels(found))
        problems.raise_errors()
        return
    taken, given = None, Parted(labels)
    with problems.recorded():
        given = parted(labels, separator, tree, several or None)
        labels = dict(given.labels)
        names = None if tree is None else tree.nodes_by_name
        apart, taken = split_labels(labels, separator, names)
        found.separator = taken.text
        if said := taken.said():
            problems.note("", said)
    if taken is None:
        return  # in doubt, and asked for
    if found.separator != SLASH:
        labels = dict(apart)
        if y is None and given.rows is None:
            found.loaded = loaded = replace(loaded, labels=labels)

    def place_of(number: int) -> str:
        return loaded.place(given.row(number))

    if tree is None:
        readable = readable_labels(labels, place_of, problems)
        problems.raise_errors()
        try:
            named = [] if keywords is None else keyword_labels(keywords, found.separator)
            tree = found.taxonomy = infer_taxonomy(
                [*readable.values(), *named], slashed=found.separator == SLASH
            )
        except DataError as error:
            if problems.stops:
                raise
            # Where labels could not be read, that too few are left for a tree is no news.
            if len(readable) == len(labels):
                problems.error("", str(error))
            return
        labels = readable
        if warned := turned(labels.values()):
            problems.warning("", warned)
        if pairs := alike(map(tree.path, tree.leaves)):
            shown = ", ".join(f"{quoted(one)} and {quoted(other)}" for one, other in pairs)
            problems.warning("", f"labels that are nearly the same: {shown}; are they one category each?")
    if NOWHERE in tree.nodes_by_name:
        problems.error(
            "",
            f"the tree has a category {NOWHERE!r}, which is the label of documents that belong to no category: "
            "give the category another name.",
        )
        problems.raise_errors()
        return
    with problems.recorded():
        if draw is not None:
            found.supervision = draw(tree, loaded, problems)
        else:
            known = resolved(tree, replace(given, labels=labels), loaded.place, problems)
            found.supervision = replace(
                known, nowhere=np.union1d(known.nowhere, np.array(nowhere, dtype=np.int64))
            )
    problems.raise_errors()


def _no_labels(found: Validated) -> str:
    names = found.fields.label_fields
    where = f"the field{'s' * (len(names) > 1)} {', '.join(map(quoted, names))}"
    if found.names and not set(names) & set(found.names):
        meant = nearest(names[0], found.names) or ";"
        listed = shortened([quoted(name) for name in found.names], 8)
        return (
            f"no document has {where}{meant} fields found: {listed}. Name the labels' field with "
            f"{spelled('--labels', 'label_field=')}, or label about five documents of each category."
        )
    return f"No document carries labels in {where}: label about five documents of each category."
