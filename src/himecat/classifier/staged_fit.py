"""Fitting a wide tree stage by stage: every stage learns from the documents that belong to it, or probably do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from himecat.classifier.assess import Judged, Looked, judge, pile_rows, summed_up
from himecat.classifier.calibration import IDENTITY, Calibration, uncalibrated
from himecat.classifier.cross_validation import Plan as Folds
from himecat.classifier.cross_validation import cross_validate, even_log_prior, plan_folds
from himecat.classifier.learned import Learned
from himecat.classifier.locate import Correction, Seeds
from himecat.classifier.narrowed import Narrowed
from himecat.classifier.nowhere import familiarity, learn_nowhere
from himecat.classifier.parts import PART, group_leaves
from himecat.classifier.protocol import Fitted
from himecat.classifier.quality import Quality, Suspect
from himecat.classifier.scorer import fit_scorer
from himecat.classifier.spectral_space import spectral_space
from himecat.classifier.staged import FittedStage, StagedClassifier
from himecat.classifier.stages import FloatArray, IntArray, stage_seeds
from himecat.classifier.walk import ROWS, Plan, given, place, walk
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.validate import Material
from himecat.methods import Default
from himecat.runtime.progress import Progress
from himecat.runtime.threads import release_memory, run_parallel
from himecat.views.combined import DocumentVectors, Views
from himecat.views.space import JointSpace

# Unlabelled documents teach the stage that they are most probably in, if that is at least so probable.
_SENT = 0.1
# Documents x terminals of a stage after the first; of more documents, the most probable ones teach.
_MOST_CELLS = 25_000_000
# With more labels in all, a stage after the first holds out no more folds than give it so many documents.
_MANY_LABELS, _ENOUGH = 3_000, 40
# Leaves that a document is thought to be confused with.
_ALTERNATIVES = 5


class _Done(NamedTuple):
    """A fitted stage, what held-out documents say about it, and what the stages after it may start from."""

    fitted: FittedStage
    judged: Judged | None
    learned: Learned | None
    sent: dict[int, tuple[IntArray, IntArray]]


def fit_wide(
    plan: Plan,
    material: Material,
    views: Views,
    vectors: DocumentVectors,
    seeds: Seeds,
    method: Default,
    seed: int,
    threads: int,
    progress: Progress,
    labels: Supervision,
    space: JointSpace | None,
) -> Fitted:
    """Fit a wide tree whose documents are seen already.

    Parameters
    ----------
    labels : Supervision
        The labels in the nodes of the first stage, as `plan.top` gives them.
    space : JointSpace, optional
        A space learned elsewhere.
    """
    corpus, first = material.corpus, plan.stages[0]
    with progress.stage("Placing the documents", total=len(plan.stages)) as stage:
        staged = fit_staged(
            plan,
            views,
            vectors,
            material.supervision,
            seeds,
            method,
            ids=corpus.ids,
            seed=seed,
            threads=threads,
            advance=stage.advance,
        )
    # What the tree lacks is asked of the terminals of the first stage.
    nowhere = learn_nowhere(
        first.tree,
        vectors.smoothed,
        familiarity(views, corpus),
        labels,
        stage_seeds(plan.taxonomy, first, seeds),
        seed=seed,
    )
    found = space or spectral_space(material, views, staged.leaf_directions, vectors)
    release_memory()
    return Fitted(found, replace(staged, nowhere=nowhere))


def fit_staged(
    plan: Plan,
    views: Views,
    vectors: DocumentVectors,
    supervision: Supervision,
    seeds: Seeds,
    method: Default,
    *,
    ids: Sequence[str],
    seed: int = 0,
    threads: int = 1,
    advance: Callable[[int], None] | None = None,
) -> StagedClassifier:
    """Train the classifiers of all stages.

    The first stage learns from all documents. Each one after it learns from the labelled documents below its first
    node, and from the unlabelled ones that the stage above is surest of.

    Parameters
    ----------
    plan : Plan
        The stages of the tree.
    seeds : tuple of array
        What names and keywords say of each leaf of the whole tree.
    """
    taxonomy = plan.taxonomy
    known = np.zeros(len(vectors), dtype=np.int64)
    known[supervision.rows] = supervision.nodes
    anchors = seeds[0].copy()
    leaves = taxonomy.leaf_position[supervision.nodes]
    np.add.at(anchors, leaves[leaves >= 0], vectors.smoothed[supervision.rows[leaves >= 0]])
    fit = partial(_fit_stage, plan, vectors, supervision, known, seeds, anchors, method, ids, seed)
    done: dict[int, _Done] = {0: fit(0, np.arange(len(vectors)), None, threads)}
    first = done[0]
    waiting = _sent(plan, [first])
    if advance is not None:
        advance(1)
    while waiting:
        numbers = sorted(waiting)
        # Small stages side by side; the result is the same for any number of threads.
        inside = max(1, threads // len(numbers))

        def job(number: int, inside: int = inside, rows: dict[int, IntArray] = waiting) -> _Done:
            found = fit(number, rows[number], first.learned, inside)
            if advance is not None:
                advance(1)
            return found

        found = run_parallel([partial(job, number) for number in numbers], threads)
        done |= dict(zip(numbers, found, strict=True))
        waiting = _sent(plan, found)
    stages = tuple(done[number].fitted for number in range(len(plan.stages)))
    classifier = StagedClassifier(taxonomy, views, stages)
    quality = None
    if method.calibrate:
        quality = _quality(
            classifier, vectors, supervision, [done[n] for n in range(len(stages))], seed, threads
        )
    return replace(classifier, quality=quality)


def largest_stage(plan: Plan, n_documents: int, n_labelled: int) -> tuple[int, int]:
    """Documents and terminals of the stage that needs the most memory, the first or the widest one after it.

    Examples
    --------
    >>> from himecat.classifier.stages import cut
    >>> whole = Taxonomy.from_paths([(a, a + b) for a in "ab" for b in "xyz"])
    >>> largest_stage(Plan(whole, cut(whole, most=3, few=1)), 1000, 50)
    (1000, 3)
    """
    first, *others = (stage.tree.n_leaves for stage in plan.stages)
    widest = max(others, default=1)
    later = min(n_documents, _MOST_CELLS // widest + n_labelled), widest
    return max((n_documents, first), later, key=lambda sizes: sizes[0] * sizes[1])


def _sent(plan: Plan, found: Sequence[_Done]) -> dict[int, IntArray]:
    """The documents of each stage after those that are fitted; the surest ones where they are very many."""
    waiting: dict[int, IntArray] = {}
    for one in found:
        for number, (sure, others) in one.sent.items():
            most = max(1, _MOST_CELLS // plan.stages[number].tree.n_leaves - len(sure))
            waiting[number] = np.union1d(sure, others[:most])
    return waiting


def _fit_stage(
    plan: Plan,
    vectors: DocumentVectors,
    supervision: Supervision,
    known: IntArray,
    seeds: Seeds,
    anchors: FloatArray,
    method: Default,
    ids: Sequence[str],
    seed: int,
    number: int,
    rows: IntArray,
    above: Learned | None,
    threads: int,
) -> _Done:
    stage = plan.stages[number]
    grouping = group_leaves(plan.taxonomy, stage, anchors, seed=seed)
    tree = grouping.parted.tree
    everything = len(rows) == len(vectors)
    own = vectors if everything else vectors.take(rows)
    narrowed = Narrowed.not_at_all(own) if everything else Narrowed.to(own)
    own = narrowed.of(own)
    labels = grouping.supervision(plan.taxonomy, stage, supervision, rows)
    own_seeds = grouping.sums(seeds[0]), grouping.sums(seeds[1])
    found: Learned | None = None
    scorer, calibration = None, uncalibrated(tree)
    if len(rows):
        sizes = grouping.sums(np.ones(plan.taxonomy.n_leaves, dtype=np.float32)).astype(np.int64)
        folds = plan_folds(tree, labels, len(rows), method, seed)._replace(sizes=sizes)
        if number and len(supervision) > _MANY_LABELS:
            folds = _fewer(folds)
        if not folds.folds and above is not None:
            folds = folds._replace(carried=_carried(tree, above, sizes))
        if folds.folds or folds.carried:
            found = cross_validate(tree, own, labels, own_seeds, method, folds, seed, threads, None)
            calibration = found.calibration
        scorer = fit_scorer(
            tree,
            own,
            labels,
            own_seeds,
            method,
            seed=seed,
            learn_prior=method.learn_prior and found is None,
            correction=None if found is None else found.correction,
            weights=None if found is None else found.weights,
            votes_teach=found is not None and found.votes_teach,
            threads=threads,
        )
        if found is not None:
            final = scorer
            calibration = found.balanced(lambda some: final.scores(own.take(some)), labels, len(rows), seed)
    judged = None
    if scorer is not None and found is not None and found.held_out is not None:
        assert found.correction.log_prior is not None
        names = [ids[row] for row in rows.tolist()]
        judged = judge(
            tree,
            calibration,
            lambda some: scorer.scores(own.take(some)),
            labels,
            found.held_out,
            found.correction.log_prior,
            names,
        )
        judged = judged._replace(rows=rows[judged.rows])
    fitted = FittedStage(stage, narrowed, scorer, calibration, grouping.counts)
    return _Done(fitted, judged, found, _to_next(plan, number, fitted, own, rows, known, threads))


def _fewer(folds: Folds) -> Folds:
    """The first folds that have enough documents, at least two: every fold is two more fits of every stage."""
    held_out = np.cumsum([len(fold) for fold in folds.folds])
    count = max(2, int(np.searchsorted(held_out, _ENOUGH)) + 1)
    return folds._replace(folds=folds.folds[:count], further=())


def _carried(tree: Taxonomy, above: Learned, sizes: IntArray) -> Learned:
    """What a stage with too few labels for cross-validation takes over from the first one: no more than scales."""
    temperature = above.calibration.inverse_temperature
    return Learned(
        Correction(above.correction.inverse_temperature, None, even_log_prior(tree, sizes)),
        above.weights,
        above.votes_teach,
        Calibration(temperature, (IDENTITY,) * max(1, tree.depth)),
        None,
    )


def _to_next(
    plan: Plan,
    number: int,
    fitted: FittedStage,
    own: DocumentVectors,
    rows: IntArray,
    known: IntArray,
    threads: int,
) -> dict[int, tuple[IntArray, IntArray]]:
    """For each stage after this one the documents that are surely in it, and others, the most probable first."""
    after = plan.after[number]
    inner = np.flatnonzero(after >= 0)
    if not len(inner):
        return {}
    sizes = plan.taxonomy.leaf_counts[fitted.stage.terminals]

    def job(first: int) -> tuple[IntArray, np.ndarray]:
        some = np.arange(first, min(first + ROWS, len(rows)))
        reached = fitted.probabilities_of(own.take(some), sizes)
        labelled = np.flatnonzero(known[rows[some]])
        allowed = plan.allowed(number, known[rows[some[labelled]]])
        reached[labelled] = given(reached[labelled], allowed)
        best = reached.argmax(axis=1)
        return best, reached[np.arange(len(best)), best]

    parts = run_parallel([partial(job, first) for first in range(0, len(rows), ROWS)], threads)
    best = np.concatenate([np.zeros(0, np.int64), *(part for part, _ in parts)])
    sure = np.concatenate([np.zeros(0, np.float32), *(part for _, part in parts)])
    labelled = known[rows] > 0
    found = {}
    for terminal in inner.tolist():
        here = np.flatnonzero((best == terminal) & ((sure >= _SENT) | labelled))
        below = labelled[here]
        others = here[~below]
        others = others[np.argsort(-sure[others], kind="stable")]
        found[int(after[terminal])] = rows[here[below]], rows[others]
    return found


def _quality(
    classifier: StagedClassifier,
    vectors: DocumentVectors,
    supervision: Supervision,
    done: Sequence[_Done],
    seed: int,
    threads: int,
) -> Quality:
    """How good the whole probably is; see `assess`."""
    taxonomy, plan = classifier.taxonomy, classifier.plan
    if done[0].judged is None:
        return Quality(n_labelled=len(supervision), n_held_out=0, n_looked_at=0)
    pile = pile_rows(supervision, len(vectors), seed)
    some = vectors.take(pile)
    visits = walk(
        plan, len(pile), partial(classifier.reached, some), lambda jobs: run_parallel(jobs, threads)
    )
    placed = place(plan, len(pile), visits, best=_ALTERNATIVES + 1)
    assert placed.best is not None
    assert placed.best_confidence is not None
    # Where there are fewer, the chosen leaf stands for the others.
    others = taxonomy.leaf_position[np.where(placed.best > 0, placed.best, placed.nodes[:, None])]
    shares = placed.best_confidence.copy()
    chosen = taxonomy.leaf_position[placed.nodes]
    shares[others == chosen[:, None]] = 0.0
    looked = Looked(chosen, placed.confidence, placed.best_confidence[:, 0], others, shares)
    none = np.zeros(0, dtype=np.int64)
    rows = np.unique(np.concatenate([none, *(one.judged.rows for one in done if one.judged is not None)]))
    judged = Judged(rows, none, none, [], done[0].judged.strength, _all_suspects(taxonomy, supervision, done))
    leaves = taxonomy.leaf_position[supervision.nodes]
    return summed_up(taxonomy, looked, leaves, judged, _accuracy(plan, done))


def _accuracy(plan: Plan, done: Sequence[_Done]) -> list[float]:
    """The held-out accuracy at each level: that within a stage times that of the way to it."""
    tree = plan.taxonomy
    before, totals, counts = np.ones(len(done)), np.zeros(tree.depth), np.zeros(tree.depth)
    for number, one in enumerate(done):
        stage, judged = plan.stages[number], one.judged
        within = [1.0] * stage.tree.depth if judged is None else judged.reached[: stage.tree.depth]
        reached = before[number] * np.array(within)
        depth = tree.depths[int(stage.nodes[0])]
        if judged is not None:
            levels = slice(depth, depth + stage.tree.depth)
            totals[levels] += len(judged.rows) * reached
            counts[levels] += len(judged.rows)
        for terminal, after in zip(stage.tree.leaves, plan.after[number].tolist(), strict=True):
            if after >= 0:
                before[after] = reached[stage.tree.depths[terminal] - 1]
    found: list[float] = (totals / np.maximum(counts, 1)).tolist()
    return found


def _named(path: tuple[str, ...]) -> tuple[str, ...]:
    """A path without the part at its end."""
    return path[:-1] if path[-1].startswith(PART) else path


def _all_suspects(taxonomy: Taxonomy, supervision: Supervision, done: Sequence[_Done]) -> tuple[Suspect, ...]:
    """Labels in doubt in any stage, by their paths in the whole tree; a document is named once."""
    found: dict[str, Suspect] = {}
    for one in done:
        if one.judged is not None:
            above = taxonomy.path(int(one.fitted.stage.nodes[0]))
            for suspect in one.judged.suspects:
                label, suggested = (above + _named(path) for path in (suspect.label, suspect.suggested))
                if label != suggested:
                    found.setdefault(suspect.id, replace(suspect, label=label, suggested=suggested))
    doubt = {name: suspect.probability - suspect.of_label for name, suspect in found.items()}
    return tuple(found[name] for name in sorted(found, key=lambda name: (-doubt[name], name)))
