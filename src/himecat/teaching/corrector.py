"""Reviewing and correcting a fitted model."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.classifier.assigned import assigned
from himecat.classifier.set_assignments import SetAssignments
from himecat.classifier.several import SeveralClassifier
from himecat.classifier.staged import StagedClassifier
from himecat.errors import DataError, UsageError, spelled
from himecat.evaluation.correction import Correction, accuracies, judged, moves_between
from himecat.input import validate
from himecat.input.answer_nodes import N_SUGGESTIONS
from himecat.input.corpus import Corpus, Supervision
from himecat.input.corrections import RawLabels, plan_change
from himecat.input.problems import Problems
from himecat.input.separators import checked
from himecat.input.taxonomy.tree import Taxonomy
from himecat.methods import Default, Method, check_number
from himecat.model_folder.kept import KeptCorpus, LearnedFrom
from himecat.predictor import Predictor
from himecat.runtime.progress import Progress, silent
from himecat.runtime.threads import usable_threads
from himecat.views.base import View, readers_of


class Corrector(Predictor):
    """An estimator that says what to look at and takes answers; :class:`himecat.HiMeCat` fits it."""

    verbose: bool
    _learned_from: LearnedFrom | KeptCorpus | None

    @abstractmethod
    def _input_options(self, X: Any, method: Method) -> dict[str, Any]: ...

    @abstractmethod
    def _learn(
        self,
        material: validate.Material,
        method: Method,
        views: Sequence[View],
        progress: Progress,
        **more: Any,
    ) -> None: ...

    def review(self, X: Any, count: int = 50, seed: int | None = None) -> list[dict[str, Any]]:
        """Choose documents for a person to look at, those whose labels should teach most; not labelled ones.

        Parameters
        ----------
        X : path, DataFrame, list of dicts or list of str
            The documents to choose from.
        count : int
            How many.
        seed : int, optional
            `random_state` by default.

        Returns
        -------
        list of dict
            For each document its fields, three suggestions with their confidence, `why` (what speaks for the first) and
            an empty `answer`. Filled in, :meth:`himecat.HiMeCat.correct` takes it. Where documents have several paths,
            each suggestion is a list of them: the first is the whole set, the others are categories beside it.

        Examples
        --------
        >>> from himecat import Default, HiMeCat
        >>> documents = ["red fox den", "old car wheel", "red fox", "red car"]
        >>> model = HiMeCat(method=Default(min_count=1), threads=1).fit(documents, ["animals", "things", None, None])
        >>> rows = model.review(documents, count=1)
        >>> rows[0]["text"], len(rows[0]["suggestion1"]), rows[0]["answer"]
        ('red car', 1, '')
        """
        from himecat.classifier.asking import choose
        from himecat.evaluation.review import leaf_suggestions, review_rows, set_suggestions

        self._check_fitted()
        check_number("count", count, 1, 1e6, above=False, whole=True)
        if isinstance(X, Corpus):
            raise UsageError("A Corpus has no texts to show: pass the documents themselves.")
        # Documents are read twice, the second time for the texts of those that were chosen.
        again = (
            isinstance(X, str | os.PathLike | Mapping) or hasattr(X, "columns") or hasattr(X, "column_names")
        )
        source = X if again else list(X)
        raw = RawLabels()
        corpus, usable = self._encoded_with(source, [raw])
        labelled = {corpus.ids[row] for row, label in enumerate(raw.found) if label is not None}
        if self._learned_from is not None:
            kept = self._kept()
            answered = np.union1d(kept.supervision.rows, kept.supervision.nowhere)
            labelled |= {kept.corpus.ids[row] for row in answered.tolist()}
        out = ~usable | np.array([name in labelled for name in corpus.ids], dtype=bool)
        if out.all():
            raise DataError("Every document is labelled already: there is none to review.")
        classifier, threads, more = self.classifier_, usable_threads(self.threads), dict[str, Any]()
        wide = isinstance(classifier, StagedClassifier)
        if wide:
            # Of the probabilities only the first two are looked at.
            placed = assigned(classifier, self.taxonomy_, corpus, threads, best=2)
            assert placed.best_confidence is not None
            probabilities = placed.best_confidence
        else:
            probabilities = classifier.leaf_probabilities(corpus, threads)
        if isinstance(classifier, SeveralClassifier):
            more["threshold"] = classifier.threshold
        chosen = choose(
            probabilities,
            classifier.directions(corpus),
            labelled=np.flatnonzero(out),
            count=count,
            seed=int(self.random_state) if seed is None else seed,
            **more,
        )
        some = corpus.take(chosen)
        sure = classifier.leaf_probabilities(some, threads) if wide else probabilities[chosen]
        if isinstance(classifier, SeveralClassifier):
            suggestions = set_suggestions(classifier.assign(sure, best=N_SUGGESTIONS))
        else:
            suggestions = leaf_suggestions(self.taxonomy_, sure)
        return review_rows(source, self.fields(), some, suggestions, self.space_, classifier)

    def _kept(self) -> LearnedFrom:
        """The documents and labels that the model was fitted on, in the ids of its vocabularies."""
        self._check_fitted()
        if self._learned_from is None:
            raise UsageError(
                "The model does not keep the documents that it was fitted on: fit it again "
                f"{spelled('without --no-corpus', 'and save it with corpus=True')}, with the answers as labels of the "
                "documents."
            )
        corpus, supervision = self._learned_from.read()
        return LearnedFrom(corpus.aligned(self.space_.vocabulary, self.space_.values), supervision)

    def learned_from(self) -> LearnedFrom:
        """The documents and labels that the model was fitted on, as ids of its words and metadata values.

        Examples
        --------
        >>> from himecat import Default, HiMeCat
        >>> model = HiMeCat(method=Default(min_count=1), threads=1).fit(["red fox", "old car"], ["animals", "things"])
        >>> corpus, labels = model.learned_from()
        >>> corpus.ids, labels.nodes.tolist()
        (['0', '1'], [1, 2])
        """
        return self._kept()

    def learned_documents(self, what: str) -> LearnedFrom:
        """The documents and labels that the model was fitted on; `what` they are needed for, if it cannot be done."""
        self._check_fitted()
        if self.gives_sets:
            raise UsageError(f"A model that gives documents several paths cannot {what}.")
        return self._kept()

    def kept_documents(self) -> Corpus:
        """The documents that the model was fitted on, in the ids of its vocabularies.

        Examples
        --------
        >>> from himecat import Default, HiMeCat
        >>> model = HiMeCat(method=Default(min_count=1), threads=1).fit(["red fox", "old car"], ["animals", "things"])
        >>> model.kept_documents().ids
        ['0', '1']
        """
        return self._kept().corpus

    def _leaves_of(self, corpus: Corpus) -> npt.NDArray[np.int64]:
        """The most probable leaf of every document."""
        return assigned(self.classifier_, self.taxonomy_, corpus, usable_threads(self.threads)).nodes

    def _placed(self, corpus: Corpus) -> Supervision:
        """Where every document is placed, whatever labels it has."""
        found = assigned(self.classifier_, self.taxonomy_, corpus, usable_threads(self.threads))
        if isinstance(found, SetAssignments):
            return found.as_pairs()
        return Supervision(np.arange(len(found), dtype=np.int64), found.nodes)

    def correct(
        self,
        answers: Any,
        documents: Any = None,
        *,
        separator: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Correction:
        """Fit again with answers of people, from the documents that are kept with the model.

        The model becomes what `fit` gives for the same documents with the labels of before and the answers. New
        documents are added in the ids of the model's vocabularies: their new words are learned by a whole fit only.

        Parameters
        ----------
        answers : mapping, path, DataFrame or list of dicts
            Labels by the ids of their documents; or what :meth:`review` gave, with answers; or documents with ids
            and labels; or the path of an .xlsx, CSV or JSON file of such. An answer replaces an older label, and one
            for an inner category counts for all below it. Where documents have several paths, an answer is all of a
            document: a list of paths, or a string with `;` between them; an inner category is one of its own.
        documents : path, DataFrame or list of dicts, optional
            New documents, labelled or not. Answers for documents that the model does not know need them
            here, or their text among the answers.
        separator : str, optional
            What separates levels in answers and labels of new documents; by default what does in those of the fit.
        dry_run : bool
            Only say what the answers change.

        Returns
        -------
        Correction
            What the answers said, and which documents the model places elsewhere now.

        Examples
        --------
        >>> from himecat import Default, HiMeCat
        >>> documents = [{"id": "a", "text": "red fox den"}, {"id": "b", "text": "old car wheel"},
        ...              {"id": "c", "text": "red fox"}, {"id": "d", "text": "red car"}]
        >>> model = HiMeCat(method=Default(min_count=1), threads=1)
        >>> print(model.fit(documents, ["animals", "things", None, None]).correct({"c": "animals"}).said)
        1 answer: 1 confirm, 0 move. 3 of 4 documents are labelled.
        """
        shown = progress or (Progress() if self.verbose else silent())
        kept, tree = self._kept(), self._fitted_taxonomy()
        problems = Problems()
        given = checked(separator) or self.separator_
        change = plan_change(
            answers,
            documents,
            *kept,
            tree,
            self.fields(),
            self._encode_new,
            problems,
            given,
            self.gives_sets,
        )
        for problem in problems:
            shown.say(f"{problem.severity}: {problem}")
        if dry_run:
            rows = np.unique(change.rows)
            some = self._placed(change.corpus.take(rows))
            return judged(tree, change, replace(some, rows=rows[some.rows]), self.gives_sets)
        before, quality = self._placed(change.corpus), getattr(self, "quality_", None)
        found = judged(tree, change, before, self.gives_sets)
        shown.say(found.said)
        if change.n_added:
            shown.say("note: words that only new documents have are not learned until a whole fit.")
        more: dict[str, Any] = {}
        if isinstance(self.method_, Default) and not change.n_added:
            # Labels change neither the vectors of words nor the topics.
            more["known"] = self.classifier_.learned_views
        self._fit_again(change.corpus, change.supervision, tree, self.keywords_, shown, **more)
        moves = moves_between(tree, before, self._placed(change.corpus))
        return replace(
            found,
            n_changed=sum(move.count for move in moves),
            moves=moves,
            accuracy=accuracies(quality, getattr(self, "quality_", None)),
        )

    def _fit_again(
        self,
        corpus: Corpus,
        supervision: Supervision,
        tree: Taxonomy,
        keywords: dict[str, list[str]] | None,
        progress: Progress,
        **more: Any,
    ) -> None:
        """Fit on documents in the ids of the model's vocabularies."""
        views = self._views()
        options = self._input_options(corpus, self.method_) | {
            "taxonomy": tree,
            "keywords": keywords,
            "tokenizer": corpus.words.tokenizer,
            "fields": self.fields(),
            "separator": self.separator_,
        }
        options["allow_empty_leaves"] |= more.pop("allow_empty_leaves", False)
        # Found from the labels once, it stays: those of now may have one path each.
        options["several"] = self.several if self.several is not None else self.gives_sets or None
        material = validate.read_material(
            corpus, supervision, readers=readers_of(views), progress=progress, **options
        )
        # The kept documents have only the metadata types that are used.
        self._learn(material, self.method_, views, progress, **more)
