"""The estimator: it wires the rooms together and holds no mathematics of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from himecat.classifier.fit_memory import room_for
from himecat.classifier.protocol import Fitted
from himecat.classifier.several import SeveralClassifier
from himecat.errors import UsageError, spelled
from himecat.input import validate
from himecat.input.check_report import CheckReport
from himecat.input.corpus import Corpus, refuse_unknown_metadata, used_metadata
from himecat.input.fields import Fields
from himecat.input.kinds import Named
from himecat.input.problems import Problems
from himecat.input.separators import FLAT, SLASH
from himecat.input.tokenizer import Tokenizer
from himecat.methods import Default, Method, Paper, check_value, refuse_sets, resolve_method
from himecat.model_folder.kept import KeptCorpus, LearnedFrom
from himecat.runtime.engines import Engine, on_engine
from himecat.runtime.progress import Progress, silent
from himecat.runtime.threads import usable_threads
from himecat.teaching.tree_changes import TreeEditor
from himecat.views.base import View, readers_of

# Arguments that are kept with a model as they are; those with an object of their own are kept by it.
_KEPT = (
    "metadata", "ignore_metadata", "decides", "text", "label_field", "id_field", "encoder", "min_confidence",
    "random_state", "allow_empty_leaves", "separator", "several",
)  # fmt: skip


class HiMeCat(TreeEditor):
    """Place documents on the paths of a category tree from a few labelled examples per leaf.

    Parameters
    ----------
    taxonomy : path, mapping, Taxonomy, optional
        The tree: a file of `parent child child ...` lines, a nested YAML or JSON file or mapping. Without
        it, the tree is the one that the labels in the documents span.
    metadata : sequence of str, or mapping
        The metadata fields of the documents. What their values are is found (dates, numbers, several in one string), or
        said: `["created:month", "price:number", "tags:list(;)", "zip:name"]`, or a mapping `{"created": "month"}`.
    ignore_metadata : sequence of str
        Metadata fields to leave out of the joint space.
    decides : sequence of str
        Metadata fields whose values decide the category, as a product is in one category: what all documents of a
        value say counts together. Without it, how far to trust them is learned from the labelled documents.
    keywords : mapping or path, optional
        Words that speak for a label, `{label: [words]}`, beside labelled documents or instead of them.
    encoder : str or path, optional
        A sentence encoder used as one more view of each document: a local folder, an installed package that
        carries a model, or a model's name. Needs `himecat[encoder]`, or `himecat[onnx]` for models without PyTorch.
    views : sequence of View
        Views of one's own beside words, topics, metadata and encoder; see docs/views.md.
    tokenizer : str or Tokenizer
        What splits texts into words: `unicode` for scripts with spaces, `ngrams` or `dictionary` (needs
        `himecat[dictionary]`) for those without, `subwords` for pieces of words, or an object of your own.
    text, label_field, id_field
        The other fields: one or several with text, the labels (several fields: the levels of the category) and the id.
    separator : str, optional
        What separates the levels of a label, such as ">"; "none" where names have no levels. By default it is
        found from the labels and the tree.
    sheet, delimiter : str, optional
        The sheet of a workbook, by default the first; what separates the columns of a CSV file, by default found.
    labels_from_folders : bool
        Where documents are a folder of text files: whether the folders below it are their labels.
    method : {"default", "paper"}, Default or Paper, optional
        How to learn, by name or with hyperparameters of one's own: `Default(em_rounds=3)`. In a grid search:
        `method__em_rounds`.
    preset : {"default", "paper"}, optional
        The name of a method, where `method` is not given.
    min_confidence : float
        Where the leaf is less probable than this, the path ends at the deepest node that is not.
    allow_empty_leaves : bool
        Go on when a leaf has no labelled document.
    several : bool, optional
        Whether a document may belong to several categories: it then gets a set of paths. By default that is so where
        labelled documents have more than one; False refuses such labels.
    skip_bad : bool
        Leave out documents that cannot be used, with a warning each, instead of refusing all of them.
    online : bool
        Whether an encoder that is not on this machine may be fetched from its hub.
    random_state : int
        The same number gives the same model, whatever the number of threads.
    threads : int, optional
        Threads to use; all that the process may use by default.
    memory : str or int, optional
        What a fit may take, such as "2GB"; half of what is there by default. Of more documents a sample is learned
        from, with all labelled ones and all metadata values; see docs/scale.md.
    verbose : bool
        Show progress.

    Attributes
    ----------
    taxonomy_ : Taxonomy
        The tree.
    space_ : JointSpace
        The vectors of labels, words, metadata values and training documents; the last are not kept in a folder.
    classes_ : array of str
        The paths as `predict` gives them, in the order of the columns of `predict_proba`: the leaves; with `several`
        also the inner categories that label documents.
    paths_ : list of tuple of str
        The same paths as names from level 1 down.
    classifier_ : Classifier
        What places the documents.
    method_ : Default or Paper
        The method that was used, with all its hyperparameters.
    history_ : list of Round
        The course of representation learning; empty where the space is spectral.
    separator_ : str
        What separates the levels of labels.
    problems_ : Problems
        Warnings and notes found in the input.
    quality_ : Quality or None
        Estimated accuracy per level and leaf, likely confusions and labels to look at again; None where it is not
        known, as with the published method.

    Examples
    --------
    >>> from himecat import Default, HiMeCat
    >>> documents = [{"text": "the striker scored a late goal"}, {"text": "a goal in the last match"},
    ...              {"text": "parliament passed the budget law"}, {"text": "the minister defended the law"}]
    >>> labels = ["sport", None, "politics", None]
    >>> model = HiMeCat(method=Default(min_count=1), threads=1)
    >>> model.fit(documents, labels).predict(["a late goal in the match"])
    array(['sport'], dtype=object)
    """

    def __init__(
        self,
        taxonomy: Any = None,
        metadata: Sequence[str] | Mapping[str, str | None] = (),
        *,
        ignore_metadata: Collection[str] = (),
        decides: Collection[str] = (),
        keywords: Any = None,
        encoder: str | os.PathLike[str] | None = None,
        views: Sequence[View] = (),
        tokenizer: str | Tokenizer = "unicode",
        text: str | Sequence[str] = "text",
        label_field: str | Sequence[str] = "labels",
        id_field: str = "id",
        separator: str | None = None,
        sheet: str | None = None,
        delimiter: str | None = None,
        labels_from_folders: bool = False,
        method: str | Method | None = None,
        preset: str | None = None,
        min_confidence: float = 0.0,
        allow_empty_leaves: bool = False,
        several: bool | None = None,
        skip_bad: bool = False,
        online: bool = True,
        random_state: int = 0,
        threads: int | None = None,
        memory: int | str | None = None,
        verbose: bool = False,
    ) -> None:
        self.taxonomy = taxonomy
        self.metadata = metadata
        self.ignore_metadata = ignore_metadata
        self.decides = decides
        self.keywords = keywords
        self.encoder = encoder
        self.views = views
        self.tokenizer = tokenizer
        self.text = text
        self.label_field = label_field
        self.id_field = id_field
        self.separator = separator
        self.sheet = sheet
        self.delimiter = delimiter
        self.labels_from_folders = labels_from_folders
        self.method = method
        self.preset = preset
        self.min_confidence = min_confidence
        self.allow_empty_leaves = allow_empty_leaves
        self.several = several
        self.skip_bad = skip_bad
        self.online = online
        self.random_state = random_state
        self.threads = threads
        self.memory = memory
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any = None, *, progress: Progress | None = None, engine: Engine | None = None
    ) -> Self:
        """Learn from documents, of which a few carry labels.

        Parameters
        ----------
        X : path, list of Path, DataFrame, list of dicts, list of str, or Corpus
            The documents, labelled and unlabelled: the unlabelled ones teach the space too.
        y : sequence or Supervision, optional
            The label of each document (a name, an `a/b/c` path or a list of names; None where unlabelled; a list of
            paths for several).
            Without it the labels are read from the documents' label field.
        progress : Progress, optional
            Where progress is shown; by default on standard error if `verbose`.
        engine : Engine, optional
            Reads files, and sums over them, elsewhere: `himecat.runtime.engines.open_engine("ray")`.
        """
        method = resolve_method(self.method, self.preset)
        options = self._input_options(X, method)
        views = self._views()
        shown = progress or (Progress() if self.verbose else silent())
        more: dict[str, Any] = {"ignore_metadata": tuple(self.ignore_metadata)}
        if isinstance(method, Default):
            more["each"] = options["each"] = None if engine is None else on_engine(engine)
            options |= {"room": room_for(method, self.memory, self.threads), "seed": self.random_state}
        material = validate.read_material(X, y, readers=readers_of(views), progress=shown, **options)
        self._learn(material, method, views, shown, **more)
        return self

    def _learn(
        self,
        material: validate.Material,
        method: Method,
        views: Sequence[View],
        progress: Progress,
        **more: Any,
    ) -> None:
        """Fit, and take the place of what was fitted before only at the very end."""
        refuse_sets(method, material.several, self.decides)
        if isinstance(method, Default):
            used = used_metadata(material.corpus.metadata, more.get("ignore_metadata", ()))
            refuse_unknown_metadata(used, self.decides, spelled("--decides", "decides"))
            more["decides"] = tuple(self.decides)
        fitted = _fit_function(method)(
            material,
            method,
            views=views,
            seed=int(self.random_state),
            threads=usable_threads(self.threads),
            progress=progress,
            **more,
        )
        keywords = None
        if material.keywords is not None:
            titles = material.taxonomy.title
            keywords = {titles(node): list(words) for node, words in material.keywords.items()}
        learned_from = LearnedFrom(material.corpus, replace(material.supervision, keywords={}))
        self._set_input(material.separator, material.fields)
        self._set_fitted(method, fitted, keywords, material.problems, learned_from)

    def _set_fitted(
        self,
        method: Method,
        fitted: Fitted,
        keywords: dict[str, list[str]] | None,
        problems: Problems,
        learned_from: LearnedFrom | KeptCorpus | None,
    ) -> None:
        self._learned_from = learned_from
        self.method_, self.keywords_, self.problems_ = method, keywords, problems
        self.space_, self.classifier_, self.history_ = fitted.space, fitted.classifier, list(fitted.history)
        self.taxonomy_, self.quality_ = fitted.space.taxonomy, fitted.classifier.quality
        found = fitted.classifier
        nodes = found.categories.tolist() if isinstance(found, SeveralClassifier) else self.taxonomy_.leaves
        self.paths_ = [self.taxonomy_.path(node) for node in nodes]
        self.classes_ = self._spelled(nodes)

    def _set_input(self, separator: str, fields: Fields) -> None:
        self.separator_ = SLASH if separator == FLAT else separator
        self.metadata_, self.metadata_kinds_ = tuple(fields.metadata), dict(fields.kinds)
        self.label_field_ = fields.levels or fields.label_fields[0]

    def check(self, X: Any, y: Any = None) -> CheckReport:
        """Look over documents, tree and labels as `fit` would, and report everything found, without learning.

        Parameters
        ----------
        X : path, DataFrame, list of dicts, list of str, or Corpus
            The documents, or a dataset folder.
        y : sequence, optional
            The label of each document; without it those in the documents' label field.

        Examples
        --------
        >>> from himecat import Default
        >>> documents = [{"text": "a late goal", "labels": "sport"}, {"text": "the budget law", "labels": 5.5}]
        >>> print(*HiMeCat(method=Default(min_count=1)).check(documents).problems.of("error"))
        document 1: a label must be a name or a list of names, but the number 5.5 was found.
        """
        from himecat.input.check import check

        options = self._input_options(X, resolve_method(self.method, self.preset))
        self._views()  # refuses an encoder that cannot be opened
        return check(X, options.pop("taxonomy"), options.pop("fields"), labels=y, **options)

    def _input_options(self, X: Any, method: Method) -> dict[str, Any]:
        """What decides, beside the input itself, whether `fit` accepts it; refuses arguments that cannot be."""
        check_value("min_confidence", self.min_confidence)
        if not isinstance(self.random_state, (int, np.integer)) or self.random_state < 0:
            raise UsageError(f"random_state must be a whole number of at least 0, not {self.random_state!r}.")
        if isinstance(method, Paper):
            from himecat.paper.fit import check_paper

            check_paper(
                method,
                keywords=self.keywords is not None,
                encoder=self.encoder is not None,
                views=len(self.views) > 0,
                decides=len(self.decides) > 0,
            )
        fields = self.fields(fitted=False)
        # A dataset folder names its metadata fields itself.
        named = fields.metadata or not isinstance(X, str | os.PathLike) or not os.path.isdir(X)
        if not isinstance(X, Corpus) and named:
            used = used_metadata(fields.metadata, self.ignore_metadata)
            refuse_unknown_metadata(used, self.decides, spelled("--decides", "decides"))
        return {
            "taxonomy": self.taxonomy,
            "fields": fields,
            "keywords": self.keywords,
            "tokenizer": self.tokenizer,
            "min_count": method.min_count,
            "max_tokens": method.max_tokens,
            "allow_empty_leaves": self.allow_empty_leaves,
            "skip_bad": self.skip_bad,
            "separator": self.separator,
            "several": self.several,
            "threads": self.threads,
        }

    def save(self, folder: str | os.PathLike[str], *, corpus: bool = True, overwrite: bool = False) -> None:
        """Write the model to a folder, whole or not at all: `model.json`, `weights.safetensors`, `corpus.safetensors`.

        The last one holds the documents as ids of words and metadata values, and their labels: :meth:`correct` fits
        again from it. With `corpus=False` it is left out. A folder that is there already is replaced only with
        `overwrite`, and only if it is empty or a model.
        """
        from himecat.model_folder.model import SavedModel, save

        self._check_fitted()
        arguments = {name: getattr(self, name) for name in _KEPT} | {"keywords": self.keywords_}
        arguments |= {
            "metadata": Named(self.metadata_, self.metadata_kinds_).written(),
            "label_field": self.label_field_,
            "separator": self.separator or self.separator_,
        }
        # As in folders of earlier versions.
        for name, usual in (("several", None), ("decides", ())):
            if arguments[name] is usual or arguments[name] == usual:
                del arguments[name]
        fitted = Fitted(self.space_, self.classifier_, self.history_)
        learned_from = self._learned_from if corpus else None
        kept = SavedModel(arguments, self.method_, fitted, learned_from=learned_from)
        save(kept, folder, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, online: bool = False) -> Self:
        """Read a model from a folder written by :meth:`save`; fitted again, it is fitted as it was.

        An encoder that the folder names is fetched from its hub only with `online`.
        `problems_` holds what there is to know about the folder: an older format, in which some changes cannot be
        noticed, or an encoder outside of it.
        """
        from himecat.model_folder.model import load

        found = load(folder, _KEPT)
        fitted, arguments = found.fitted, dict(found.arguments)
        if not isinstance(arguments["metadata"], Mapping):
            # Names as they are, also of an older model: a colon in them separates nothing.
            arguments["metadata"] = Named(tuple(arguments["metadata"]), {}).written()
        model = cls(
            taxonomy=fitted.space.taxonomy,
            method=found.method,
            views=fitted.classifier.own_views,
            online=online,
            **arguments,
        )
        encoder = found.arguments.get("encoder")
        if isinstance(encoder, str) and os.path.isabs(encoder):
            place = os.path.join(os.fspath(folder), "")
            found.problems.note(place, f"its encoder is the folder {encoder}, which is not part of it.")
        model._set_input(model.separator or SLASH, model.fields(fitted=False))
        model._set_fitted(found.method, fitted, model.keywords, found.problems, found.learned_from)
        return model


def _fit_function(method: Method) -> Callable[..., Fitted]:
    """What fits a method; whoever takes the default never imports the published one."""
    if method.name == Paper.name:
        from himecat.paper.fit import fit_paper

        return fit_paper
    from himecat.classifier.fit import fit_default

    return fit_default
