"""Changes of the tree of a fitted model: what they do is said first, and old labels stay readable."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from himecat.classifier.carried import carried_over
from himecat.classifier.fit import DefaultClassifier
from himecat.classifier.protocol import Classifier, Fitted
from himecat.classifier.regrouped import (
    RegroupedClassifier,
    leaf_positions,
    only_regroups,
    regrouped_labels,
    requalified,
)
from himecat.classifier.several import SeveralClassifier
from himecat.errors import DataError, UsageError, spelled
from himecat.input.corpus import Corpus
from himecat.input.corrections import extended
from himecat.input.problems import Problems, quoted
from himecat.input.several import most_specific
from himecat.input.taxonomy.earlier import carried_nodes
from himecat.input.taxonomy.nodes import Earlier
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.tree_editing import Draft, change_of
from himecat.methods import Default, Method
from himecat.model_folder.kept import KeptCorpus, LearnedFrom
from himecat.runtime.progress import Progress, silent
from himecat.teaching.corrector import Corrector
from himecat.teaching.tree_plan import TreePlan, drafted
from himecat.teaching.tree_wording import Counts, told

Changes = Sequence[Mapping[str, Any]] | Mapping[str, Any]
Model = TypeVar("Model", bound="TreeEditor")


class TreeEditor(Corrector):
    """An estimator whose tree can be changed; :class:`himecat.HiMeCat` fits it."""

    taxonomy: Any

    @abstractmethod
    def _set_fitted(
        self,
        method: Method,
        fitted: Fitted,
        keywords: dict[str, list[str]] | None,
        problems: Problems,
        learned_from: LearnedFrom | KeptCorpus | None,
    ) -> None: ...

    def plan_tree(
        self,
        changes: Changes,
        documents: Any = None,
        *,
        placed: npt.NDArray[np.int64] | bool = False,
    ) -> TreePlan:
        """Say what changes of the tree will do; nothing is changed yet.

        Parameters
        ----------
        changes : mapping or sequence of mapping
            One or several changes, in order: `{"op": "rename", "path": ["a", "b"], "name": "c"}`,
            `{"op": "move", "path": ..., "to": ...}` (`[]` is the top level),
            `{"op": "merge", "path": ..., "into": ...}` (with a new `name`, if it is to have one),
            `{"op": "split", "path": ..., "children": {name: [ids]}}`,
            `{"op": "add", "parent": ..., "name": ..., "keywords": [...], "documents": [ids]}` and
            `{"op": "delete", "path": ..., "labels": "parent" or "drop"}`. Paths are lists of names, or labels.
        documents : path, DataFrame or list of dicts, optional
            Documents, where examples are not among those that are kept with the model.
        placed : array of int, or bool
            The nodes of documents, to say how many of them a change concerns; True: those of the kept documents, which
            are placed to find out.

        Examples
        --------
        >>> from himecat import Default, HiMeCat
        >>> model = HiMeCat(method=Default(min_count=1), threads=1).fit(["red fox", "old car"], ["animals", "things"])
        >>> print(*model.plan_tree({"op": "rename", "path": ["things"], "name": "objects"}).said, sep="\\n")
        things is called objects now; its label stays with it.
        No refit is needed.
        """
        self._check_fitted()
        kept = None if self._learned_from is None else self._kept()
        if isinstance(placed, bool):
            placed_at = self._leaves_of(kept.corpus) if placed and kept and not self.gives_sets else None
        else:
            placed_at = np.asarray(placed, dtype=np.int64)
        counts = Counts(len(self.taxonomy_), None if kept is None else kept.supervision.nodes, placed_at)
        draft, said = Draft(self.taxonomy_), []
        examples: dict[int, tuple[str, ...]] = {}
        keywords: dict[int, tuple[str, ...]] = {}
        for given in [changes] if isinstance(changes, Mapping) else changes:
            said.append(drafted(draft, change_of(given), counts, examples, keywords, self.separator_))
        tree, place = draft.finished()
        if tree.n_leaves < 2:
            raise UsageError("A tree needs at least two leaves.")
        nodes = tuple(place[node] for node in range(len(self.taxonomy_)))
        refit = not self._can_regroup(tree, nodes) or bool(examples or keywords)
        if refit and kept is None:
            raise UsageError(
                "This change needs a fit, and the model does not keep the documents that it was fitted on: fit it "
                f"again with the new tree, {spelled('without --no-corpus', 'and save it with corpus=True')}."
            )
        if kept is not None:
            said += self._about_examples(examples, kept, documents)
        if refit and kept is not None:
            said.append(f"The model is fitted again, on the {len(kept.corpus):,} documents kept with it.")
        else:
            said.append("No refit is needed.")
        return TreePlan(
            tuple(said),
            refit,
            tree.since(Earlier(self.taxonomy_, nodes, tuple(said[:-1]))),
            nodes,
            {place[key]: ids for key, ids in examples.items() if place[key] > 0},
            {place[key]: words for key, words in keywords.items() if place[key] > 0},
            documents,
        )

    def _about_examples(
        self, examples: Mapping[int, tuple[str, ...]], kept: LearnedFrom, documents: Any
    ) -> list[str]:
        """What happens to the examples; those that nobody knows are an error."""
        row_of = {name: row for row, name in enumerate(kept.corpus.ids)}
        asked = [name for ids in examples.values() for name in ids]
        for name in asked:
            if asked.count(name) > 1 and not self.gives_sets:
                raise DataError(
                    f"the document {quoted(name)} is an example of two categories: leave one of them."
                )
        new = [name for name in asked if name not in row_of]
        if new and documents is None:
            raise DataError(
                f"there is no document {quoted(new[0])} among those kept with the model"
                f"{f', nor are {len(new) - 1:,} other examples' if len(new) > 1 else ''}: name a file that has it "
                f"({spelled('--documents DOCS', 'documents=')})."
            )
        labelled = set(kept.supervision.rows.tolist())
        again = 0 if self.gives_sets else sum(row_of.get(name) in labelled for name in asked)
        return told.examples(len(new), again)

    def _can_regroup(self, tree: Taxonomy, nodes: Sequence[int]) -> bool:
        """Whether the classifier serves the new tree as it is."""
        before, classifier = self.taxonomy_, self.classifier_
        if same_shape(before, tree, nodes):
            return True
        if not only_regroups(before, tree, nodes):
            return False
        if isinstance(classifier, SeveralClassifier):
            return sorted(nodes) == list(range(len(tree)))
        return isinstance(classifier, DefaultClassifier | RegroupedClassifier)

    def change_tree(
        self,
        changes: Changes | TreePlan,
        documents: Any = None,
        *,
        whole: bool = False,
        progress: Progress | None = None,
    ) -> TreePlan:
        """Change the tree, and fit again where that is needed, from the documents that are kept with the model.

        A renamed or moved category keeps its probability, and merged ones add theirs up. A refit takes over the views,
        and what cross-validation has said of the other leaves; :meth:`correct` and :meth:`fit` learn it anew. Labels
        that were written for the tree of before are read as what became of their categories.

        Parameters
        ----------
        changes : mapping, sequence of mapping, or TreePlan
            As for :meth:`plan_tree`, or what it gave.
        documents : path, DataFrame or list of dicts, optional
            Documents, where examples are not among those that are kept with the model.
        whole : bool
            Whether a refit has its cross-validation, as a whole fit does.

        Examples
        --------
        >>> from himecat import Default, HiMeCat
        >>> model = HiMeCat(method=Default(min_count=1), threads=1).fit(["red fox", "old car"], ["animals", "things"])
        >>> plan = model.change_tree({"op": "rename", "path": ["things"], "name": "objects"})
        >>> model.predict(["a car"]).tolist(), model.taxonomy_.title(model.node_of("things"))
        (['objects'], 'objects')
        """
        plan = changes if isinstance(changes, TreePlan) else self.plan_tree(changes, documents)
        shown = progress or (Progress() if self.verbose else silent())
        earlier = plan.tree.earlier
        if earlier is None or earlier.tree is not self.taxonomy_:
            raise UsageError("The plan was made for another tree: make it again.")
        keywords = self._carried_keywords(plan)
        learned_from: LearnedFrom | None = None
        if self._learned_from is not None:
            kept = self._kept()
            learned_from = self._carried_labels(kept, plan)
        before, classifier = self.taxonomy_, self.classifier_
        if plan.needs_refit:
            assert learned_from is not None
            more: dict[str, Any] = {"allow_empty_leaves": True}
            fitted, nodes = _fitted_through(classifier, plan.nodes)
            if isinstance(self.method_, Default):
                more["known"] = classifier.learned_views
                if fitted is not None and not whole and (found := carried_over(fitted, plan.tree, nodes)):
                    more["carried"] = found
            self._fit_again(*learned_from, plan.tree, keywords, shown, **more)
            if "carried" in more and classifier.quality is not None:
                self._set_quality(requalified(classifier.quality, before, plan.tree, plan.nodes))
        else:
            labels = regrouped_labels(self.space_.labels, before, plan.tree, plan.nodes)
            space = replace(self.space_, taxonomy=plan.tree, labels=labels)
            again = Fitted(space, _regrouped(classifier, space, plan), self.history_)
            self._set_fitted(self.method_, again, keywords, self.problems_, learned_from)
        self.taxonomy = plan.tree
        return plan

    def _set_quality(self, quality: Any) -> None:
        assert isinstance(self.classifier_, DefaultClassifier)
        self.classifier_, self.quality_ = replace(self.classifier_, quality=quality), quality

    def _carried_keywords(self, plan: TreePlan) -> dict[str, list[str]] | None:
        """The keywords by the paths of the new tree."""
        words: dict[str, list[str]] = {}
        for label, own in (self.keywords_ or {}).items():
            node = plan.nodes[self.node_of(label)]
            if node > 0:
                words.setdefault(plan.tree.title(node), []).extend(own)
        for node, added in plan.keywords.items():
            words.setdefault(plan.tree.title(node), []).extend(added)
        return words or None

    def _carried_labels(self, kept: LearnedFrom, plan: TreePlan) -> LearnedFrom:
        """The documents and labels as the new tree has them, with the examples."""
        corpus = kept.corpus
        row_of = {name: row for row, name in enumerate(corpus.ids)}
        new = {name for ids in plan.examples.values() for name in ids if name not in row_of}
        if new:
            corpus = extended(corpus, [self._found(new, plan.documents)])
            row_of = {name: row for row, name in enumerate(corpus.ids)}
        given = kept.supervision
        nodes = np.array(plan.nodes, dtype=np.int64)[given.nodes]
        pairs = [(row_of[name], node) for node, ids in plan.examples.items() for name in ids]
        added = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        stays = nodes > 0
        if not self.gives_sets:
            stays &= ~np.isin(given.rows, added[:, 0])
        rows = np.concatenate([given.rows[stays], added[:, 0]])
        nodes = np.concatenate([nodes[stays], added[:, 1]])
        order = np.argsort(rows, kind="stable")
        labels = replace(
            given, rows=rows[order], nodes=nodes[order], nowhere=np.setdiff1d(given.nowhere, rows)
        )
        if self.gives_sets:
            labels = most_specific(plan.tree, labels)
        return LearnedFrom(corpus, labels)

    def _found(self, names: set[str], documents: Any) -> Corpus:
        """Examples that are not kept with the model, from the documents that were named."""
        problems = Problems()
        origins, corpus = self._encode_new(documents, problems, [])
        problems.raise_errors()
        rows = [row for row, one in enumerate(origins) if one.usable and one.id in names]
        missing = sorted(names - {corpus.ids[row] for row in rows})
        if missing:
            raise DataError(f"there is no document {quoted(missing[0])} in the documents that were named.")
        return corpus.take(rows)


def plan(
    model: TreeEditor,
    changes: Changes,
    documents: Any = None,
    *,
    placed: npt.NDArray[np.int64] | bool = False,
) -> TreePlan:
    """What changes of the tree of a model will do; :meth:`himecat.HiMeCat.plan_tree`."""
    return model.plan_tree(changes, documents, placed=placed)


def apply(
    model: Model, changes: Changes | TreePlan, *, whole: bool = False, progress: Progress | None = None
) -> Model:
    """A model with a changed tree; the one that is given stays as it is."""
    found = copy.copy(model)
    found.change_tree(changes, whole=whole, progress=progress)
    return found


def same_shape(before: Taxonomy, now: Taxonomy, nodes: Sequence[int]) -> bool:
    """Whether only names have changed.

    Examples
    --------
    >>> same_shape(Taxonomy.from_paths([("a",), ("b",)]), Taxonomy.from_paths([("a",), ("c",)]), (0, 1, 2))
    True
    """
    return before.parents == now.parents and list(nodes) == list(range(len(now)))


def _fitted_through(
    classifier: Classifier, nodes: Sequence[int]
) -> tuple[DefaultClassifier | None, Sequence[int]]:
    """What was fitted on whatever tree, and what becomes of the nodes of that tree."""
    if isinstance(classifier, RegroupedClassifier):
        return classifier.fitted, carried_nodes(classifier.nodes, nodes)
    return (classifier, nodes) if isinstance(classifier, DefaultClassifier) else (None, nodes)


def _regrouped(classifier: Classifier, space: Any, plan: TreePlan) -> Classifier:
    assert plan.tree.earlier is not None
    before = classifier.taxonomy if isinstance(classifier, SeveralClassifier) else None
    if before is not None and isinstance(classifier, SeveralClassifier):
        order = np.argsort(leaf_positions(before, plan.tree, plan.nodes))
        return replace(
            classifier,
            taxonomy=plan.tree,
            categories=np.array(plan.nodes, dtype=np.int64)[classifier.categories],
            directions_of_leaves=classifier.directions_of_leaves[order],
        )
    fitted, nodes = _fitted_through(classifier, plan.nodes)
    if fitted is not None:
        return RegroupedClassifier(plan.tree, fitted, tuple(nodes))
    # Only names have changed, and every classifier can be made from its state.
    return type(classifier).from_state(space, *classifier.state())
