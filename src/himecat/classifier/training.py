"""The way from what was read to a fitted model, one room after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from himecat.classifier.fit import DefaultClassifier, fit_default, random_stream, used_metadata
from himecat.classifier.protocol import Round
from himecat.errors import DataError, UsageError
from himecat.input.validate import Material
from himecat.methods import MIXTURE, Default, Settings, hyperparameters
from himecat.paper.flat_classifier import FlatClassifier
from himecat.paper.pairs import Relations, relate
from himecat.paper.registry import classifier_class
from himecat.paper.sampled_space import Trained, count_steps, learn_vectors, space_from
from himecat.paper.synthesis import synthesize
from himecat.paper.topdown import TopDownClassifier, fit_top_down
from himecat.runtime.progress import Progress
from himecat.views.base import View
from himecat.views.space import JointSpace

# Streams of randomness, one per room.
_SPACE, _SYNTHESIS, _CLASSIFIER = 1, 2, 3

Classifier = DefaultClassifier | TopDownClassifier


@dataclass(frozen=True)
class Fitted:
    """What training gives."""

    space: JointSpace
    classifier: Classifier
    history: list[Round]


def check_method(settings: Settings, *, keywords: bool, encoder: bool, views: bool = False) -> None:
    """Say before any work what the chosen classifier lacks or cannot use.

    Examples
    --------
    >>> check_method(Settings(classifier="mean-logistic"), keywords=True, encoder=False)
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: The classifier 'mean-logistic' cannot use keywords: leave them out, or take the
    default classifier.
    """
    if settings.classifier == MIXTURE:
        return
    classifier_class(settings.classifier)
    for given, what in (
        (keywords, "keywords: leave them out"),
        (encoder, "an encoder: leave it out"),
        (views, "views: leave them out"),
    ):
        if given:
            raise UsageError(
                f"The classifier {settings.classifier!r} cannot use {what}, or take the default classifier."
            )


def train(
    material: Material,
    settings: Settings,
    *,
    views: Sequence[View] = (),
    ignore_metadata: Collection[str],
    seed: int,
    threads: int,
    progress: Progress,
) -> Fitted:
    """Learn the space and the classifiers."""
    make = None if settings.classifier == MIXTURE else _maker(settings)
    kinds = used_metadata(material.corpus, ignore_metadata) if settings.use_metadata else []
    sampled: JointSpace | None = None
    history: list[Round] = []
    if settings.space == "sampled":
        sampled, history = _sampled_space(material, settings, kinds, seed, threads, progress)
    if make is not None and sampled is not None:
        return Fitted(sampled, _top_down(material, settings, sampled, make, seed, threads, progress), history)
    method = Default(**{name: getattr(settings, name) for name in hyperparameters(Default)})
    fitted = fit_default(
        material,
        method if make is None else replace(method, self_training=0, calibrate=False),
        views=views,
        ignore_metadata=ignore_metadata,
        seed=seed,
        threads=threads,
        progress=progress,
        space=sampled,
    )
    space = fitted.space
    if make is None:
        assert isinstance(fitted.classifier, DefaultClassifier)
        return Fitted(space, fitted.classifier, history)
    return Fitted(space, _top_down(material, settings, space, make, seed, threads, progress), history)


def _sampled_space(
    material: Material, settings: Settings, kinds: list[str], seed: int, threads: int, progress: Progress
) -> tuple[JointSpace, list[Round]]:
    """The paper's joint representation learning."""
    relations = relate(
        material.corpus,
        material.taxonomy,
        material.supervision,
        hierarchy=settings.use_hierarchy,
        metadata=kinds,
    )
    trained = _learn(relations, settings, seed, threads, progress)
    return space_from(trained, relations, material.corpus, material.taxonomy), trained.rounds


def _learn(relations: Relations, settings: Settings, seed: int, threads: int, progress: Progress) -> Trained:
    with progress.stage("Learning the joint space", total=count_steps(relations, settings.samples)) as stage:

        def told(done: Round) -> None:
            # Short, so that the bar keeps its place on a narrow terminal; `history_` has every relation's.
            objective = sum(done.objective.values())
            stage.advance(
                0, note=f"{done.pairs / done.seconds / 1e6:.1f} M pairs/s, objective {objective:.3f}"
            )

        return learn_vectors(
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
            seed=random_stream(seed, _SPACE),
            threads=threads,
            advance=stage.advance,
            report=told,
        )


def _top_down(
    material: Material,
    settings: Settings,
    space: JointSpace,
    make: Callable[[], FlatClassifier],
    seed: int,
    threads: int,
    progress: Progress,
) -> TopDownClassifier:
    """The paper's classifiers: one per inner node, trained on real and synthetic documents."""
    corpus, taxonomy, supervision = material.corpus, material.taxonomy, material.supervision
    with progress.stage("Writing synthetic documents", total=taxonomy.n_leaves) as stage:
        synthetic = synthesize(
            taxonomy,
            space.labels,
            space.words,
            beta=settings.beta,
            length=material.mean_length,
            concentration=settings.concentration,
            neighbours=_neighbours(settings, space),
            seed=random_stream(seed, _SYNTHESIS),
            threads=threads,
            advance=stage.advance,
        )
    choosing = sum(1 for node in taxonomy.inner if len(taxonomy.children[node]) > 1)
    with progress.stage("Training the classifiers", total=choosing * settings.epochs) as stage:
        return fit_top_down(
            taxonomy,
            corpus.tokens.take(supervision.rows),
            supervision,
            synthetic,
            space.words,
            make,
            real_share=settings.real_share,
            seed=random_stream(seed, _CLASSIFIER),
            threads=threads,
            advance=stage.advance,
        )


def _neighbours(settings: Settings, space: JointSpace) -> int:
    """How many words a synthetic document is made of: of a tiny vocabulary a tenth, or all documents look alike."""
    return settings.neighbours or min(50, max(5, len(space.words) // 10))


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
    nowhere = np.linalg.norm(space.labels, axis=1) == 0
    if nowhere[list(space.taxonomy.leaves_under(node))].any() or nowhere[node]:
        raise DataError(
            f"Nothing in the documents tells {space.taxonomy.title(node)} from the other categories, so no words "
            "can be drawn for it."
        )
    labels = np.where(nowhere[:, None], np.eye(1, space.labels.shape[1], dtype=np.float32), space.labels)
    made = synthesize(
        space.taxonomy,
        labels,
        space.words,
        beta=count,
        length=length,
        concentration=settings.concentration,
        neighbours=_neighbours(settings, space),
        seed=random_stream(seed, _SYNTHESIS),
    )
    names = space.vocabulary.names
    return [[names[word] for word in made.of(node)[row].tolist()] for row in range(count)]
