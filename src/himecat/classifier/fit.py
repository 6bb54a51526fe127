"""The default method: from documents, a tree and a few labels to a fitted classifier."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from himecat.classifier.assess import assess
from himecat.classifier.assignments import rows_at_once
from himecat.classifier.calibration import Calibration, uncalibrated
from himecat.classifier.cross_validation import Plan, cross_validate, plan_folds
from himecat.classifier.fit_memory import memory_of_fit, random_stream
from himecat.classifier.learned import Learned
from himecat.classifier.locate import Seeds
from himecat.classifier.name_seeds import name_seeds
from himecat.classifier.nowhere import Nowhere, familiarity, learn_nowhere
from himecat.classifier.pile_passes import directions_of_pile, with_votes_of_pile
from himecat.classifier.protocol import Fitted, SeeingClassifier
from himecat.classifier.quality import Quality
from himecat.classifier.scorer import APART, FEATURES, Scorer, fit_scorer
from himecat.classifier.several import SeveralClassifier, fit_several
from himecat.classifier.spectral_space import spectral_space
from himecat.classifier.stacking import told, view_weights
from himecat.classifier.staged_fit import fit_wide, largest_stage
from himecat.classifier.stages import cut, is_wide
from himecat.classifier.walk import Plan as Stages
from himecat.input.corpus import Corpus, Supervision, used_metadata
from himecat.input.intake import Each
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.validate import Material
from himecat.methods import Default
from himecat.runtime.memory import refuse_beyond_memory
from himecat.runtime.progress import Progress
from himecat.runtime.threads import one_blas_thread, release_memory, run_parallel
from himecat.views.base import State, View
from himecat.views.combined import DocumentVectors, Views, learn_views
from himecat.views.matrices import FloatArray, check_shapes, unit
from himecat.views.metadata import MetadataView
from himecat.views.ngrams import MOST_CELLS, NgramsView
from himecat.views.space import JointSpace
from himecat.views.topics import TopicsView
from himecat.views.value_sums import here
from himecat.views.words import WordsView

# Random streams, one for each step.
_VIEWS, _CLASSIFIER = 1, 3
_BATCH = 2048


@dataclass(frozen=True)
class DefaultClassifier(SeeingClassifier):
    """A fitted default classifier.

    Attributes
    ----------
    taxonomy : Taxonomy
        The tree.
    views : Views
        How documents are seen.
    scorer : Scorer
        How the leaves are scored.
    calibration : Calibration
        How scores become probabilities.
    quality : Quality or None
        How good the fit probably is; None where it is not known.
    nowhere : Nowhere or None
        What is known of documents that belong to no category; None in models of earlier versions.
    """

    name: ClassVar[str] = "default"

    taxonomy: Taxonomy
    views: Views
    scorer: Scorer
    calibration: Calibration
    quality: Quality | None = None
    nowhere: Nowhere | None = None

    def leaf_probabilities(self, corpus: Corpus, threads: int = 1) -> FloatArray:
        """Probability of every leaf, one row per document; rows sum to 1."""
        return self._probabilities(corpus, threads, None)[0]

    def all_probabilities(self, corpus: Corpus, threads: int = 1) -> tuple[FloatArray, FloatArray | None]:
        """The same, and the probability of belonging to none of them; None where the model does not know it."""
        return self._probabilities(corpus, threads, self.nowhere)

    def _probabilities(
        self, corpus: Corpus, threads: int, nowhere: Nowhere | None
    ) -> tuple[FloatArray, FloatArray | None]:
        size = rows_at_once(len(self.taxonomy), _BATCH)
        starts = range(0, len(corpus), size)

        def batch_job(start: int) -> Callable[[], tuple[FloatArray, FloatArray]]:
            def job() -> tuple[FloatArray, FloatArray]:
                documents = corpus.between(start, start + size)
                vectors = self.views.see(documents, n_batches=len(starts))
                leaves = self.calibration.probabilities(self.taxonomy, self.scorer.scores(vectors))
                if nowhere is None:
                    return leaves, np.zeros(0, dtype=np.float32)
                return leaves, nowhere.probabilities(vectors.smoothed, familiarity(self.views, documents))

            return job

        parts = run_parallel([batch_job(start) for start in starts], threads)
        empty = np.zeros((0, self.taxonomy.n_leaves), dtype=np.float32)
        leaves = np.concatenate([empty, *(part for part, _ in parts)])
        none = np.concatenate([empty[:, 0], *(part for _, part in parts)])
        return leaves, None if nowhere is None else none

    @one_blas_thread()
    def directions(self, corpus: Corpus) -> FloatArray:
        """Unit vectors of documents among those of words and labels: the words' part of their directions."""
        return unit(self.views.see(corpus).smoothed[:, self.views.part("words")])

    @one_blas_thread()
    def evidence(self, corpus: Corpus, row: int, node: int) -> list[tuple[str, str, int, float]]:
        """What the views of one's own say for a node against its siblings: view, name, count and weight."""
        return self.evidence_by(self.scorer.directions, self.taxonomy, corpus, row, node)

    def state(self) -> State:
        """The states of the views, the scorer and the calibration; the vectors of the words are the space's."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        settings: dict[str, Any] = {"calibration": self.calibration.state()}
        learned: dict[str, Any] = {"views": self.views, "scorer": self.scorer}
        if self.nowhere is not None:
            learned["nowhere"] = self.nowhere
        for name, part in learned.items():
            settings[name], own = part.state()
            arrays.update({f"{name}/{key}": value for key, value in own.items()})
        if self.quality is not None:
            settings["quality"] = self.quality.as_dict()
        del arrays["views/words/vectors"]
        return settings, arrays

    @classmethod
    def from_state(
        cls, space: JointSpace, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Rebuild a fitted classifier."""

        def own(part: str) -> dict[str, npt.NDArray[Any]]:
            return {key[len(part) :]: value for key, value in arrays.items() if key.startswith(part)}

        views = Views.from_state(settings["views"], own("views/") | {"words/vectors": space.words})
        scorer = Scorer.from_state(settings["scorer"], own("scorer/"))
        calibration = Calibration.from_state(space.taxonomy, settings["calibration"])
        expected: dict[str, tuple[npt.NDArray[Any], tuple[int, ...]]] = {}
        for kind, one in views["metadata"].types.items():
            expected[f"metadata/{kind}/rows"] = (one.rows, (len(space.values[kind]),))
            expected[f"metadata/{kind}/sums"] = (one.sums, (len(one.sums), views.dimension))
        if "topics" in settings["views"]:
            expected["topics/idf"] = (views["topics"].idf, (len(space.words),))
        check_shapes(expected)
        scorer.check(space.taxonomy, views)
        # Folders of earlier versions have none.
        quality = Quality.from_dict(settings["quality"]) if "quality" in settings else None
        nowhere = None
        if "nowhere" in settings:
            nowhere = Nowhere.from_state(settings["nowhere"], own("nowhere/"), views.dimension)
        return cls(space.taxonomy, views, scorer, calibration, quality, nowhere)


# Sums are taken in the same order for any number of threads, and in any thread.
@one_blas_thread()
def fit_default(
    material: Material,
    method: Default,
    *,
    views: Sequence[View] = (),
    ignore_metadata: Collection[str] = (),
    seed: int = 0,
    threads: int = 1,
    progress: Progress,
    space: JointSpace | None = None,
    known: Mapping[str, View] | None = None,
    decides: Sequence[str] = (),
    carried: Learned | None = None,
    each: Each | None = None,
) -> Fitted:
    """Fit the default method.

    Parameters
    ----------
    views : sequence of View
        Views beside words, topics and metadata.
    ignore_metadata : collection of str
        Metadata types to leave out.
    space : JointSpace, optional
        A space learned elsewhere, whose word vectors are used.
    known, carried : mapping of str to View and Learned, optional
        Of an earlier fit: views of the same documents, which labels do not change, and what cross-validation gave.
    decides : sequence of str
        Metadata types whose values decide the category.
    each : callable, optional
        Runs the parts of a pile; in this process by default.
    """
    corpus, taxonomy, supervision, pile = (
        material.corpus,
        material.taxonomy,
        material.supervision,
        material.pile,
    )
    each = each or here(threads)
    kinds = used_metadata(corpus.metadata, ignore_metadata) if method.use_metadata else []
    own_seed = random_stream(seed, _CLASSIFIER)
    wide = Stages(taxonomy, cut(taxonomy)) if is_wide(taxonomy) and not material.several else None
    # Of a wide tree, its first stage stands for the whole.
    top, labels = (taxonomy, supervision) if wide is None else wide.top(supervision, len(corpus))
    plan = plan_folds(top, labels, len(corpus), method, own_seed, carried)
    n_features = len(corpus.words) + sum(len(corpus.metadata[kind].vocabulary) for kind in kinds)
    n_documents, n_leaves = (
        (len(corpus), taxonomy.n_leaves) if wide is None else largest_stage(wide, len(corpus), len(labels))
    )
    refuse_beyond_memory(
        memory_of_fit(
            n_documents,
            len(labels),
            n_leaves,
            dimension=method.dimension + method.topics,
            n_features=n_features,
            threads=threads,
            n_fits=plan.n_fits,
        ),
        f"{n_documents:,} documents x {n_leaves:,} leaves, with {n_features:,} different words and metadata "
        "values, need",
    )
    words = WordsView(
        method.dimension,
        method.contexts,
        method.weigh_words,
        kinds,
        None if space is None else space.words,
        first_words=None if method.first_words else (),
    )
    topics = [TopicsView(method.topics)] if method.topics else []
    ngrams = [NgramsView(MOST_CELLS // top.n_leaves)] if method.ngrams and not material.several else []
    chosen = [words, *topics, *ngrams, *views, MetadataView(kinds, method.learn_trust, decides=decides)]
    with progress.stage("Learning the space", total=1) as stage:
        learned, vectors = learn_views(
            chosen,
            corpus,
            seed=random_stream(seed, _VIEWS),
            run=lambda jobs: run_parallel(jobs, threads),
            known=known,
            weigh=partial(view_weights, top, labels) if method.learn_weights else None,
            learn_from=material.texts,
            over_pile=None if pile is None else partial(directions_of_pile, pile, corpus, kinds, each),
        )
        if not method.votes:
            vectors = replace(vectors, groups={})
        release_memory()
        weights = {"metadata": learned["metadata"].weights, "view": learned.weights if views else {}}
        notes = [f"{kind} weights: {told(own)}" for kind, own in weights.items() if own]
        if first := learned["words"].first_words:
            counted = ", ".join(f"{weight:.1f}" for weight in first)
            notes.append(f"the first words of a text count {counted} times")
        stage.advance(1, note="; ".join(notes) or None)
    classifier: DefaultClassifier | SeveralClassifier
    if material.several:
        with progress.stage("Placing the documents", total=1):
            classifier = fit_several(
                taxonomy, learned, vectors, corpus, supervision, method, seed=own_seed, threads=threads
            )
        directions = classifier.directions_of_leaves
        return Fitted(space or spectral_space(material, learned, directions, vectors), classifier)
    seeds = name_seeds(taxonomy, learned, corpus.words, supervision.keywords, use_names=method.use_names)
    if wide is not None:
        return fit_wide(
            wide, material, learned, vectors, seeds, method, own_seed, threads, progress, labels, space
        )
    with progress.stage("Placing the documents", total=plan.n_fits) as stage:
        classifier = fit_classifier(
            taxonomy,
            learned,
            vectors,
            supervision,
            seeds,
            method,
            plan,
            ids=corpus.ids,
            seed=own_seed,
            threads=threads,
            advance=stage.advance,
            one_by_one=pile is not None,
        )
    if plan.folds:
        progress.say(f"weights of the opinions: {told(classifier.scorer.weights)}")
    familiar = familiarity(learned, corpus)
    nowhere = learn_nowhere(taxonomy, vectors.smoothed, familiar, supervision, seeds, seed=own_seed)
    scorer = with_votes_of_pile(classifier.scorer, learned, vectors, material, each)
    classifier = replace(classifier, nowhere=nowhere, scorer=scorer)
    if space is None:
        space = spectral_space(material, learned, classifier.scorer.directions, vectors)
    release_memory()
    return Fitted(space, classifier)


def fit_classifier(
    taxonomy: Taxonomy,
    views: Views,
    vectors: DocumentVectors,
    supervision: Supervision,
    seeds: Seeds,
    method: Default,
    plan: Plan,
    *,
    ids: Sequence[str] = (),
    seed: int = 0,
    threads: int = 1,
    advance: Callable[[int], None] | None = None,
    one_by_one: bool = False,
) -> DefaultClassifier:
    """Train the classifier; its calibration and the label prior are learned by cross-validation.

    With them comes an estimate of how good it is, which names doubtful labels by the `ids` of documents.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus(["red fox den", "red fox", "old car wheel", "old car"])
    >>> views, vectors = learn_views([WordsView(dimension=3), MetadataView()], corpus)
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> few = Supervision(np.array([0, 2]), np.array([1, 2]))
    >>> none = np.zeros((2, 3), np.float32), np.zeros(2, np.float32)
    >>> model = fit_classifier(tree, views, vectors, few, none, Default(), Plan([], False))
    >>> model.leaf_probabilities(corpus).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    found = None
    if plan.folds or plan.carried:
        shared = (taxonomy, vectors, supervision, seeds, method, plan, seed, threads, advance)
        # What features are worth beside an encoder is known less well than what they are worth beside words.
        loose = (FEATURES, APART) if set(views.weights) - {WordsView.name, TopicsView.name} else ()
        found = cross_validate(*shared, one_by_one=one_by_one, loose=loose)
        release_memory()
    calibration = uncalibrated(taxonomy) if found is None else found.calibration

    def scorer_by(known: Learned | None) -> Scorer:
        return fit_scorer(
            taxonomy,
            vectors,
            supervision,
            seeds,
            method,
            seed=seed,
            learn_prior=method.learn_prior and known is None,
            correction=None if known is None else known.correction,
            weights=None if known is None else known.weights,
            votes_teach=known is not None and known.votes_teach,
            threads=threads,
        )

    # One product of matrices after the other, in the same order for any number of threads.
    with one_blas_thread():
        scorer = scorer_by(found)
        if found is not None and method.use_hierarchy and not plan.carried:
            refined = found.refined(
                taxonomy, lambda rows: scorer.scores(vectors.take(rows)), supervision, len(vectors), seed
            )
            if refined is not None:
                del scorer
                found = refined
                scorer = scorer_by(found)
        if found is not None:
            calibration = found.balanced(
                lambda rows: scorer.scores(vectors.take(rows)), supervision, len(vectors), seed
            )
    if advance is not None:
        advance(1)
    quality = None
    if found is not None and found.held_out is not None:
        assert found.correction.log_prior is not None
        quality = assess(
            taxonomy,
            calibration,
            lambda rows: scorer.scores(vectors.take(rows)),
            len(vectors),
            supervision,
            found.held_out,
            found.correction.log_prior,
            ids or [str(row) for row in range(len(vectors))],
            seed,
        )
    elif method.calibrate and found is None:
        quality = Quality(n_labelled=len(supervision), n_held_out=0, n_looked_at=0)
    return DefaultClassifier(taxonomy, views, scorer, calibration, quality)
