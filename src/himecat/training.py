"""The way from raw input to a fitted model, one room after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from himecat.classify import FlatClassifier, TopDownClassifier, classifier_class, fit_top_down
from himecat.corpus import Corpus, Problems, Supervision, Taxonomy
from himecat.corpus.builder import load_corpus
from himecat.corpus.documents import Fields
from himecat.corpus.labels import label_names, leaves_without_labels, supervise
from himecat.corpus.taxonomy_readers import infer_taxonomy, read_taxonomy
from himecat.embedding import JointSpace, Round, count_steps, learn_vectors, space_from
from himecat.errors import DataError, UsageError
from himecat.parameters import Settings
from himecat.progress import Progress
from himecat.relations import relate
from himecat.synthesis import synthesize

# Streams of randomness, one per room.
_SPACE, _SYNTHESIS, _CLASSIFIER = 1, 2, 3


@dataclass(frozen=True)
class Material:
    """Everything a fit learns from.

    Examples
    --------
    >>> from himecat import Taxonomy, read_corpus
    >>> few = Supervision(np.array([0]), np.array([1]))
    >>> Material(read_corpus(["a fox"]), Taxonomy.from_paths([("x",), ("y",)]), few, Problems()).mean_length
    2
    """

    corpus: Corpus
    taxonomy: Taxonomy
    supervision: Supervision
    problems: Problems

    @property
    def mean_length(self) -> int:
        """Known words of an average document, at least 1."""
        return max(1, round(float(self.corpus.tokens.lengths.mean())))


@dataclass(frozen=True)
class Fitted:
    """What training gives."""

    space: JointSpace
    classifier: TopDownClassifier
    history: list[Round]


def read_material(
    X: Any,
    y: Any,
    *,
    taxonomy: Any,
    fields: Fields,
    min_count: int,
    max_tokens: int,
    allow_empty_leaves: bool,
    skip_bad: bool,
    progress: Progress,
) -> Material:
    """Read documents, tree and labels; every problem found is said, and errors stop here."""
    problems = Problems()
    # Before the documents: the tree is small, and a fault in it should not wait for them.
    given_tree = None if taxonomy is None else read_taxonomy(taxonomy, problems)
    labels: Mapping[int, object] = {}
    if isinstance(X, Corpus):
        corpus = X
        place_of: Callable[[int], str] = _place_in_memory
    else:
        loaded = load_corpus(
            X, fields, min_count=min_count, max_tokens=max_tokens, problems=problems, skip_bad=skip_bad
        )
        corpus, labels = loaded.corpus, loaded.labels

        def place_of(row: int) -> str:
            return loaded.places[row]

        if isinstance(y, Supervision) and loaded.skipped:
            raise UsageError(
                f"A Supervision counts rows, and {len(loaded.skipped)} documents were left out: pass the labels "
                "as a list, or a Corpus."
            )
        if y is not None and not isinstance(y, Supervision):
            y = _without_skipped(y, len(corpus), loaded.skipped)
    if isinstance(y, Supervision):
        if given_tree is None:
            raise UsageError("A Supervision names nodes of a tree: pass the taxonomy too.")
        tree, supervision = given_tree, y
        _check_supervision(supervision, len(corpus), tree)
    else:
        if y is not None:
            labels = _labels_by_row(y, len(corpus))
        if not labels:
            raise DataError(
                f"No document carries labels in the field {fields.labels!r}: label about five documents of "
                "each category."
            )
        tree = given_tree or _spanned_tree(labels, place_of, problems)
        supervision = supervise(tree, labels, place_of, problems)
        problems.raise_errors()
    if tree.n_leaves < 2:
        raise DataError(f"The tree has {tree.n_leaves} leaf: with fewer than 2 there is nothing to choose.")
    _check_leaves(tree, supervision, allow_empty_leaves, problems)
    if len(corpus.words) == 0:
        raise DataError(
            f"No word occurs {min_count} times or more in the {len(corpus)} documents: add documents, or lower "
            f"min_count (--set min_count={max(1, min_count // 2)})."
        )
    _check_labelled_words(corpus, supervision, problems)
    if not corpus.metadata:
        problems.note("", "No metadata fields were named: text alone is used.")
    for problem in problems:
        progress.say(f"{problem.severity}: {problem}")
    if problems.hidden("warning"):
        progress.say(f"warning: ... and {problems.hidden('warning')} more.")
    return Material(corpus, tree, supervision, problems)


def _spanned_tree(
    labels: Mapping[int, object], place_of: Callable[[int], str], problems: Problems
) -> Taxonomy:
    """The tree that the labels span; what is no label at all is told with its place."""
    for row, label in labels.items():
        try:
            label_names(label)
        except DataError as error:
            problems.error(place_of(row), str(error))
    problems.raise_errors()
    return infer_taxonomy(labels.values())


def _place_in_memory(row: int) -> str:
    return f"document {row}"


def _without_skipped(y: Any, n_rows: int, skipped: Sequence[int]) -> list[object]:
    given = list(y)
    if len(given) != n_rows + len(skipped):
        raise UsageError(f"There are {n_rows + len(skipped)} documents but {len(given)} labels.")
    left_out = set(skipped)
    return [label for position, label in enumerate(given) if position not in left_out]


def _labels_by_row(y: Any, n_rows: int) -> dict[int, object]:
    given = list(y)
    if len(given) != n_rows:
        raise UsageError(f"There are {n_rows} documents but {len(given)} labels.")

    return {row: label for row, label in enumerate(given) if not _is_missing(label)}


def _is_missing(label: object) -> bool:
    # NaN and NA are what a DataFrame puts where nothing was; pandas need not be imported to know them.
    if label is None or type(label).__name__ == "NAType":
        return True
    if isinstance(label, (float, np.floating)):
        return bool(np.isnan(label))
    if isinstance(label, str):
        return not label.strip()
    return isinstance(label, (list, tuple, np.ndarray)) and len(label) == 0


def _check_supervision(supervision: Supervision, n_rows: int, tree: Taxonomy) -> None:
    rows, nodes = supervision.rows, supervision.nodes
    if len(rows) != len(nodes):
        raise UsageError(f"The Supervision names {len(rows)} documents but {len(nodes)} nodes.")
    for found, first, end, what in ((rows, 0, n_rows, "document"), (nodes, 1, len(tree), "node")):
        outside = found[(found < first) | (found >= end)]
        if len(outside):
            raise UsageError(
                f"The Supervision names the {what} {outside[0]}, but they go from {first} to {end - 1}."
            )


def _check_leaves(
    tree: Taxonomy, supervision: Supervision, allow_empty_leaves: bool, problems: Problems
) -> None:
    without = leaves_without_labels(tree, supervision)
    if not without:
        return
    names = ", ".join(tree.title(leaf) for leaf in without[:10]) + (", ..." if len(without) > 10 else "")
    count = f"{len(without)} of {tree.n_leaves} leaves have" if len(without) > 1 else "One leaf has"
    if len(without) == tree.n_leaves:
        raise DataError("No leaf has a labelled document: label about five documents of each.")
    if not allow_empty_leaves:
        raise DataError(
            f"{count} no labelled document: {names}. Label some, or allow it (allow_empty_leaves=True, "
            "--allow-empty-leaves)."
        )
    problems.warning("", f"{count} no labelled document and will rarely be chosen: {names}.")


def _check_labelled_words(corpus: Corpus, supervision: Supervision, problems: Problems) -> None:
    """Words are what a labelled document teaches with."""
    silent = int((corpus.tokens.lengths[supervision.rows] == 0).sum())
    if silent == len(supervision):
        raise DataError(
            "No labelled document has a word that occurs often enough: label others, or lower min_count "
            "(--set min_count=1)."
        )
    if silent:
        count = "One labelled document has" if silent == 1 else f"{silent} labelled documents have"
        problems.warning("", f"{count} no word that occurs often enough to learn from.")


def train(
    material: Material,
    settings: Settings,
    *,
    ignore_metadata: Collection[str],
    seed: int,
    threads: int,
    progress: Progress,
) -> Fitted:
    """Learn the space, make documents, train the classifiers."""
    corpus, taxonomy, supervision = material.corpus, material.taxonomy, material.supervision
    unknown = [kind for kind in ignore_metadata if kind not in corpus.metadata]
    if unknown:
        raise UsageError(f"ignore_metadata names {unknown[0]!r}, which is not among the metadata fields.")
    used = [kind for kind in corpus.metadata if kind not in ignore_metadata] if settings.use_metadata else []
    relations = relate(corpus, taxonomy, supervision, hierarchy=settings.use_hierarchy, metadata=used)
    make = _maker(settings)
    with progress.stage("Learning the joint space", total=count_steps(relations, settings.samples)) as stage:

        def told(done: Round) -> None:
            # Short, so that the bar keeps its place on a narrow terminal; `history_` has every relation's.
            objective = sum(done.objective.values())
            stage.advance(
                0, note=f"{done.pairs / done.seconds / 1e6:.1f} M pairs/s, objective {objective:.3f}"
            )

        trained = learn_vectors(
            relations,
            dimension=settings.dimension,
            samples=settings.samples,
            negatives=settings.negatives,
            margins={
                "hierarchy": settings.margin_hierarchy,
                "label": settings.margin_metadata,
                "metadata": settings.margin_metadata,
                "word": settings.margin_words,
            },
            rate=settings.rate,
            scaled_steps=settings.scaled_steps,
            seed=_stream(seed, _SPACE),
            threads=threads,
            advance=stage.advance,
            report=told,
        )
    space = space_from(trained, relations, corpus, taxonomy)
    with progress.stage("Writing synthetic documents", total=taxonomy.n_leaves) as stage:
        synthetic = synthesize(
            taxonomy,
            space.labels,
            space.words,
            beta=settings.beta,
            length=material.mean_length,
            concentration=settings.concentration,
            neighbours=_neighbours(settings, space),
            seed=_stream(seed, _SYNTHESIS),
            threads=threads,
            advance=stage.advance,
        )
    choosing = sum(1 for node in taxonomy.inner if len(taxonomy.children[node]) > 1)
    with progress.stage("Training the classifiers", total=choosing * settings.epochs) as stage:
        classifier = fit_top_down(
            taxonomy,
            corpus.tokens.take(supervision.rows),
            supervision,
            synthetic,
            space.words,
            make,
            real_share=settings.real_share,
            seed=_stream(seed, _CLASSIFIER),
            threads=threads,
            advance=stage.advance,
        )
    return Fitted(space, classifier, trained.rounds)


def _neighbours(settings: Settings, space: JointSpace) -> int:
    """How many words a synthetic document is made of: of a tiny vocabulary a tenth, or all documents look alike."""
    return settings.neighbours or min(50, max(5, len(space.words) // 10))


def _stream(seed: int, purpose: int) -> int:
    return int(np.random.SeedSequence([seed, purpose]).generate_state(1)[0])


def _maker(settings: Settings) -> Callable[[], FlatClassifier]:
    kind = classifier_class(settings.classifier)
    if settings.classifier != "kim-cnn":
        return kind
    return lambda: kind(  # type: ignore[call-arg]
        widths=settings.filter_widths,
        maps=settings.filter_maps,
        hidden=settings.hidden,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        min_steps=settings.min_steps,
        rate=settings.learning_rate,
        momentum=settings.momentum,
    )


def example_documents(
    space: JointSpace, node: int, settings: Settings, count: int, seed: int, length: int = 40
) -> list[list[str]]:
    """Words of `count` documents made for a category: from its leaves in turn, as Algorithm 1 mixes them."""
    if count < 0:
        raise UsageError(f"count must be at least 0, not {count}.")
    if seed < 0:
        raise UsageError(f"seed must be at least 0, not {seed}.")
    made = synthesize(
        space.taxonomy,
        space.labels,
        space.words,
        beta=count,
        length=length,
        concentration=settings.concentration,
        neighbours=_neighbours(settings, space),
        seed=_stream(seed, _SYNTHESIS),
    )
    names = space.vocabulary.names
    return [[names[word] for word in made.of(node)[row].tolist()] for row in range(count)]
