"""The published method from documents, tree and labels to a fitted classifier, one section after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from himecat.classifier.fit import fit_default
from himecat.classifier.fit_memory import random_stream
from himecat.classifier.protocol import Fitted, Round
from himecat.errors import DataError, UsageError, spelled
from himecat.input.corpus import used_metadata
from himecat.input.validate import Material
from himecat.methods import MIXTURE, Default, Method, Paper
from himecat.paper.flat_classifier import FlatClassifier
from himecat.paper.pairs import relate
from himecat.paper.registry import classifier_class
from himecat.paper.sampled_space import count_steps, learn_vectors, space_from
from himecat.paper.synthesis import synthesize
from himecat.paper.topdown import TopDownClassifier, fit_top_down
from himecat.runtime.memory import refuse_beyond_memory
from himecat.runtime.progress import Progress
from himecat.runtime.threads import one_blas_thread
from himecat.views.base import View
from himecat.views.space import JointSpace

# Random streams, one for each step; 1 and 3 are also those of the default method's space and classifier.
_SPACE, _SYNTHESIS, _CLASSIFIER = 1, 2, 3


def check_paper(
    method: Paper, *, keywords: bool, encoder: bool, views: bool = False, decides: bool = False
) -> None:
    """Say before any work what the chosen classifier lacks or cannot use.

    Examples
    --------
    >>> check_paper(Paper(classifier="mean-logistic"), keywords=True, encoder=False)
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: The classifier 'mean-logistic' cannot use keywords: leave them out, or take the
    default classifier.
    """
    if method.classifier == MIXTURE:
        return
    classifier_class(method.classifier)
    for given, what in (
        (keywords, "keywords: leave them out"),
        (encoder, "an encoder: leave it out"),
        (views, "views: leave them out"),
        (decides, f"{spelled('--decides', 'decides')}: leave it out"),
    ):
        if given:
            raise UsageError(
                f"The classifier {method.classifier!r} cannot use {what}, or take the default classifier."
            )


@one_blas_thread()
def fit_paper(
    material: Material,
    method: Paper,
    *,
    views: Sequence[View] = (),
    ignore_metadata: Collection[str] = (),
    seed: int = 0,
    threads: int = 1,
    progress: Progress,
) -> Fitted:
    """Fit the published method, or one half of it with the other half of the default method.

    Parameters
    ----------
    views : sequence of View
        Views beside words, topics and metadata; only for the classifier `mixture`.
    ignore_metadata : collection of str
        Metadata types to leave out.
    """

    def by_default(default: Default, space: JointSpace | None = None) -> Fitted:
        return fit_default(
            material,
            replace(
                default,
                dimension=method.dimension,
                use_hierarchy=method.use_hierarchy,
                use_metadata=method.use_metadata,
            ),
            views=views,
            ignore_metadata=ignore_metadata,
            seed=seed,
            threads=threads,
            progress=progress,
            space=space,
        )

    if method.classifier != MIXTURE:
        n_leaves, length = material.taxonomy.n_leaves, material.mean_length
        refuse_beyond_memory(
            # The documents of all leaves, the same in one piece, and a copy while a node high up learns from them.
            3 * n_leaves * method.beta * length * np.dtype(np.int32).itemsize,
            f"{method.beta:,} synthetic documents of {length:,} words for each of {n_leaves:,} leaves need",
        )
    history: Sequence[Round] = ()
    if method.space == "sampled":
        kinds = used_metadata(material.corpus.metadata, ignore_metadata)
        space, history = _learn_space(material, method, kinds, seed, threads, progress)
    else:
        # The mixture gives the labels their vectors; nothing else of the classifier is needed.
        space = by_default(Default(self_training=0, calibrate=False)).space
    if method.classifier == MIXTURE:
        return replace(by_default(Default(), space), history=history)
    return Fitted(space, _train_classifiers(material, method, space, seed, threads, progress), history)


def _learn_space(
    material: Material, method: Paper, kinds: list[str], seed: int, threads: int, progress: Progress
) -> tuple[JointSpace, Sequence[Round]]:
    """Joint representation learning."""
    relations = relate(
        material.corpus,
        material.taxonomy,
        material.supervision,
        hierarchy=method.use_hierarchy,
        metadata=kinds if method.use_metadata else (),
    )
    with progress.stage("Learning the joint space", total=count_steps(relations, method.samples)) as stage:

        def report(done: Round) -> None:
            # Short, so that the bar keeps its place on a narrow terminal; `history_` has every relation's.
            objective = sum(done.objective.values())
            speed = done.pairs / done.seconds / 1e6
            stage.advance(0, note=f"{speed:.1f} M pairs/s, objective {objective:.3f}")

        trained = learn_vectors(
            relations,
            method,
            seed=random_stream(seed, _SPACE),
            threads=threads,
            advance=stage.advance,
            report=report,
        )
    return space_from(trained, relations, material.corpus, material.taxonomy), trained.rounds


def _train_classifiers(
    material: Material, method: Paper, space: JointSpace, seed: int, threads: int, progress: Progress
) -> TopDownClassifier:
    """Hierarchical data augmentation, and a flat classifier for every inner node."""
    corpus, taxonomy, supervision = material.corpus, material.taxonomy, material.supervision
    with progress.stage("Writing synthetic documents", total=taxonomy.n_leaves) as stage:
        synthetic = synthesize(
            taxonomy,
            space.labels,
            space.words,
            beta=method.beta,
            length=material.mean_length,
            concentration=method.concentration,
            neighbours=_neighbours(method, space),
            seed=random_stream(seed, _SYNTHESIS),
            threads=threads,
            advance=stage.advance,
        )
    choosing = sum(1 for node in taxonomy.inner if len(taxonomy.children[node]) > 1)
    with progress.stage("Training the classifiers", total=choosing * method.epochs) as stage:
        walk = fit_top_down(
            taxonomy,
            corpus.tokens.take(supervision.rows),
            supervision,
            synthetic,
            space.words,
            _maker(method),
            real_share=method.real_share,
            seed=random_stream(seed, _CLASSIFIER),
            threads=threads,
            advance=stage.advance,
        )
    return TopDownClassifier(space, walk)


def _neighbours(method: Paper, space: JointSpace) -> int:
    """How many words a synthetic document is made of: of a tiny vocabulary a tenth, or all documents look alike."""
    return method.neighbours or min(50, max(5, len(space.words) // 10))


def _maker(method: Paper) -> Callable[[], FlatClassifier]:
    kind = classifier_class(method.classifier)
    if method.classifier != "kim-cnn":
        return kind
    return lambda: kind(  # type: ignore[call-arg]
        widths=method.filter_widths,
        maps=method.filter_maps,
        hidden=method.hidden,
        epochs=method.epochs,
        batch_size=method.batch_size,
        min_steps=method.min_steps,
        epoch_documents=method.epoch_documents,
        rate=method.learning_rate,
        momentum=method.momentum,
    )


def example_documents(
    space: JointSpace, node: int, method: Method, count: int, seed: int, length: int = 40
) -> list[list[str]]:
    """Words of `count` documents made for a category: from its leaves in turn, as Algorithm 1 mixes them."""
    if count < 0:
        raise UsageError(f"count must be at least 0, not {count}.")
    if seed < 0:
        raise UsageError(f"seed must be at least 0, not {seed}.")
    nowhere = np.linalg.norm(space.labels, axis=1) == 0
    if nowhere[list(space.taxonomy.leaves_under(node))].any() or nowhere[node]:
        raise DataError(
            f"Nothing in the documents tells {space.taxonomy.title(node)} from the other categories, so no words "
            "can be drawn for it."
        )
    # The default method makes no such documents, and so says nothing about them.
    paper = method if isinstance(method, Paper) else Paper(neighbours=None)
    made = synthesize(
        space.taxonomy,
        np.where(nowhere[:, None], np.eye(1, space.labels.shape[1], dtype=np.float32), space.labels),
        space.words,
        beta=count,
        length=length,
        concentration=paper.concentration,
        neighbours=_neighbours(paper, space),
        seed=random_stream(seed, _SYNTHESIS),
        top=node,
    )
    names, documents = space.vocabulary.names, made.of(node)
    return [[names[word] for word in documents[row].tolist()] for row in range(count)]
