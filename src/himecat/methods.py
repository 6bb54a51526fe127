"""The two methods and their hyperparameters: pure data, every range checked in one place."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, ClassVar

from himecat.errors import UsageError, spelled

SPACES = ("spectral", "sampled")
MIXTURE = "mixture"
"""The default method's classifier, where `Paper` uses it in place of flat classifiers at inner nodes."""


def ranged(default: Any, low: float, high: float = math.inf, *, above: bool = False) -> Any:
    """A field of a dataclass with a range; `above`: the lowest value itself is too low.

    Examples
    --------
    >>> ranged(5, 0).metadata["range"]
    (0, inf, False)
    """
    return field(default=default, metadata={"range": (low, high, above)})


class _Method:
    """What both methods share: values are checked when they are given, and shown where they were changed."""

    name: ClassVar[str]

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            if value is not None or "None" not in str(one.type):
                object.__setattr__(self, one.name, check_value(one.name, value))

    def as_dict(self) -> dict[str, Any]:
        """The hyperparameters as plain JSON values."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    def changed(self) -> dict[str, Any]:
        """The hyperparameters that are not at their defaults, as plain JSON values."""
        usual = type(self)().as_dict()
        return {name: value for name, value in self.as_dict().items() if value != usual[name]}

    def __repr__(self) -> str:
        changed = (f"{name}={getattr(self, name)!r}" for name in self.changed())
        return f"{type(self).__name__}({', '.join(changed)})"


@dataclass(frozen=True, repr=False)
class Default(_Method):
    """The default method: a mixture over the leaves and self-trained linear classifiers in a spectral space.

    Attributes
    ----------
    min_count, max_tokens : int
        Words seen less often are left out; only the first words of a document are read.
    dimension, contexts : int
        Length of a word's vector; how many frequent words serve as contexts.
    topics : int
        Topics of the texts that stand beside the directions of their words; 0 for none.
    ngrams : bool
        Whether character n-grams are features, where texts are short enough or few enough for them.
    votes : bool
        Whether documents that share a metadata value vote on each other's leaf.
    weigh_words : bool
        Whether the words of a document are weighted by how informative they are.
    first_words : bool
        Whether the first words of a document count more, as far as they say more than the others.
    learn_weights : bool
        Whether the weights of an encoder and of the opinions are learned from the labelled documents.
    use_metadata, learn_trust : bool
        Whether metadata values take part; whether the weight of each metadata type is learned (otherwise all
        types weigh the same). `ignore_metadata` of the estimator leaves out single types.
    use_names, use_hierarchy : bool
        Whether the words of a leaf's name are examples of it; whether leaves with the same parent are drawn
        towards each other.
    leaf_concentration, em_rounds, learn_prior
        The mixture: concentration of its components, rounds of EM over the unlabelled documents (0: the
        labelled ones alone), whether the label prior is estimated.
    self_training : int
        Rounds in which linear classifiers learn from the probable labels of all documents; 0 for none.
    calibrate : bool
        Whether probabilities are calibrated by cross-validation on the labelled documents.

    Examples
    --------
    >>> Default(em_rounds=3)
    Default(em_rounds=3)
    >>> Default(em_rounds=-1)
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: em_rounds must be at least 0, not -1.
    """

    name: ClassVar[str] = "default"

    min_count: int = ranged(2, 1)
    max_tokens: int = ranged(300, 1)
    dimension: int = ranged(300, 2, 4096)
    contexts: int = ranged(4000, 2, 1_000_000)
    topics: int = ranged(100, 0, 4096)
    ngrams: bool = True
    votes: bool = True
    weigh_words: bool = True
    first_words: bool = True
    learn_weights: bool = True
    use_metadata: bool = True
    learn_trust: bool = True
    use_names: bool = True
    use_hierarchy: bool = True
    leaf_concentration: float = ranged(30.0, 0, 1e6, above=True)
    em_rounds: int = ranged(2, 0, 1000)
    learn_prior: bool = True
    self_training: int = ranged(2, 0, 100)
    calibrate: bool = True


@dataclass(frozen=True, repr=False)
class Paper(_Method):
    """The published method: a sampled joint space, synthetic documents, and flat classifiers walked top-down.

    The values are the paper's and, where it is silent, those of its released code, but for two: fewer samples
    (thousands of millions there) and a larger concentration (150 there), which was chosen on test labels of two
    reported corpora. docs/method.md gives the reasons, and what else differs from the released code.

    Attributes
    ----------
    min_count, max_tokens : int
        Words seen less often are left out; only the first words of a document are read.
    dimension : int
        p, the length of every vector.
    space : {"sampled", "spectral"}
        Where vectors come from: the paper's stochastic ascent, or the default method's closed form.
    classifier : str
        The flat classifier trained at each inner node: `kim-cnn`, `mean-logistic` or a registered one. With
        `mixture`, the default method's classifier works on the sampled word vectors.
    samples, negatives, rate, scaled_steps
        Joint representation learning: positive pairs drawn in all (None: from the size of the corpus),
        corrupted pairs per positive one, first step size, whether steps shrink as a pair comes into place.
    margin_hierarchy, margin_metadata, margin_words : float
        Gamma of J_L and of the two parts of J_MC (labels and metadata values; words).
    use_hierarchy, use_metadata : bool
        Whether pairs of parent and child labels, and metadata values, take part. `ignore_metadata` of the
        estimator leaves out single types.
    beta, concentration, neighbours : int, float, int
        Synthetic documents per category, kappa of their vectors, words nearest to such a vector (None: 50,
        or a tenth of a smaller vocabulary).
    real_share : float
        Labelled documents are repeated until they make up this share of the synthetic ones.
    epochs, batch_size, min_steps, epoch_documents, learning_rate, momentum, filter_widths, filter_maps, hidden
        Of the Kim-CNN; a small training set is passed over more often, until `min_steps` steps are done. With
        `epoch_documents`, an epoch takes the steps of so many documents per child, whatever their number is.

    Examples
    --------
    >>> Paper(beta=100).dimension
    100
    """

    name: ClassVar[str] = "paper"

    min_count: int = ranged(10, 1)
    max_tokens: int = ranged(300, 1)
    dimension: int = ranged(100, 2, 4096)
    space: str = "sampled"
    classifier: str = "kim-cnn"
    samples: int | None = ranged(None, 1)
    negatives: int = ranged(5, 1, 1000)
    rate: float = ranged(0.04, 0, 1, above=True)
    scaled_steps: bool = True
    margin_hierarchy: float = ranged(0.2, 0, 2, above=True)
    margin_metadata: float = ranged(0.2, 0, 2, above=True)
    margin_words: float = ranged(0.2, 0, 2, above=True)
    use_hierarchy: bool = True
    use_metadata: bool = True
    beta: int = ranged(500, 0, 1_000_000)
    concentration: float = ranged(2000.0, 0, 1e6, above=True)
    neighbours: int | None = ranged(50, 1)
    real_share: float = ranged(0.2, 0, 1000)
    epochs: int = ranged(30, 1, 100_000)
    batch_size: int = ranged(256, 1)
    min_steps: int = ranged(0, 0)
    epoch_documents: int | None = ranged(None, 1, 1_000_000)
    learning_rate: float = ranged(0.1, 0, 100, above=True)
    momentum: float = ranged(0.9, 0, 0.999)
    filter_widths: tuple[int, ...] = (2, 3, 4, 5)
    filter_maps: int = ranged(20, 1, 10_000)
    hidden: int = ranged(20, 1, 100_000)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.space, self.classifier) == ("spectral", MIXTURE):
            raise UsageError("space='spectral' with classifier='mixture' is the default method.")


Method = Default | Paper

METHODS: Mapping[str, type[Method]] = {kind.name: kind for kind in (Default, Paper)}
"""The methods by name."""

_FIELDS = {one.name: one for kind in METHODS.values() for one in fields(kind)}


def hyperparameters(kind: type[Method] | Method) -> tuple[str, ...]:
    """The names of a method's hyperparameters.

    Examples
    --------
    >>> "beta" in hyperparameters(Paper), "beta" in hyperparameters(Default)
    (True, False)
    """
    return tuple(one.name for one in fields(kind))


def refuse_sets(method: Method, several: bool, decides: Collection[str]) -> None:
    """Say what documents with several paths do not go together with.

    Examples
    --------
    >>> refuse_sets(Default(), True, ["product"])
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: decides is for documents with one path each: leave it out.
    """
    if several and isinstance(method, Paper):
        raise UsageError(
            "The published method gives every document one path: take the default one for documents with several, "
            f"or refuse such labels ({spelled('--no-several', 'several=False')})."
        )
    if several and isinstance(method, Default) and len(decides):
        raise UsageError(
            f"{spelled('--decides', 'decides')} is for documents with one path each: leave it out."
        )


def check_value(name: str, value: Any) -> Any:
    """Return the value in its plain type, or say why it cannot be used.

    Examples
    --------
    >>> check_value("beta", -1)
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: beta must be at least 0, not -1.
    """
    own = _FIELDS.get(name)
    kind = "float" if own is None else str(own.type)
    if kind == "bool":
        if not isinstance(value, bool):
            raise UsageError(f"{name} must be True or False, not {value!r}.")
        return value
    if name == "filter_widths":
        return _check_widths(value)
    if name == "space":
        if value not in SPACES:
            raise UsageError(f"space must be {' or '.join(SPACES)}, not {value!r}.")
        return value
    if name == "classifier":
        if not isinstance(value, str):
            raise UsageError(
                f"classifier must be {MIXTURE!r} or the name of a flat classifier, not {value!r}."
            )
        return value
    bounds = (0, 1, False) if own is None else own.metadata["range"]
    return check_number(name, value, *bounds, whole=kind.startswith("int"))


def check_number(
    name: str, value: Any, low: float, high: float, above: bool, *, whole: bool = False
) -> float:
    """Return a number that lies in its range, a `whole` one as an int.

    Examples
    --------
    >>> check_number("share", 2, 0, 1, above=False)
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: share must be at least 0 and at most 1, not 2.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise UsageError(f"{name} must be a number, not {value!r}.")
    try:
        float(value)
    except OverflowError:
        raise UsageError(f"{name} is far too large: it must be at most {high:g}.") from None
    if whole and not (isinstance(value, Integral) or float(value).is_integer()):
        raise UsageError(f"{name} must be a whole number, not {value!r}.")
    value = float(value)
    if not (low <= value <= high) or value == math.inf or (value == low and above):
        ceiling = f" and at most {high:g}" if value > high else ""
        raise UsageError(
            f"{name} must be {'above' if above else 'at least'} {low:g}{ceiling}, not {value:g}."
        )
    return int(value) if whole else value


def _check_widths(value: Any) -> tuple[int, ...]:
    widths = tuple(value) if isinstance(value, (list, tuple)) else ()
    if not widths or any(not isinstance(w, Integral) or isinstance(w, bool) or w < 1 for w in widths):
        raise UsageError(f"filter_widths must be whole numbers of at least 1, not {value!r}.")
    if max(widths) > 100:
        raise UsageError(f"filter_widths must be at most 100, not {max(widths)}.")
    if len(set(widths)) < len(widths):
        raise UsageError(f"filter_widths must differ from each other, not {value!r}.")
    return tuple(int(w) for w in widths)


def resolve_method(method: str | Method | None, preset: str | None = None) -> Method:
    """The method that was asked for, by its name or as it is; `preset` is an older word for the same.

    Examples
    --------
    >>> resolve_method(None), resolve_method("paper"), resolve_method(None, "paper"), resolve_method(Paper(beta=5))
    (Default(), Paper(), Paper(), Paper(beta=5))
    """
    for what, name in (("method", method), ("preset", preset)):
        if isinstance(name, str) and name not in METHODS:
            raise UsageError(f"There is no {what} {name!r}; known are {', '.join(METHODS)}.")
    if method is None:
        return METHODS["default" if preset is None else preset]()
    found = METHODS[method]() if isinstance(method, str) else method
    if not isinstance(found, Default | Paper):
        raise UsageError(f"method must be 'default', 'paper', Default(...) or Paper(...), not {method!r}.")
    if preset is not None and preset != found.name:
        raise UsageError(f"preset={preset!r} and method={method!r} are two methods: leave the preset out.")
    return found


def with_values(method: Method, values: Mapping[str, Any]) -> Method:
    """The method with other values for some of its hyperparameters.

    Raises
    ------
    UsageError
        It has no such hyperparameter, or the value is out of range.

    Examples
    --------
    >>> with_values(Paper(), {"beta": 10})
    Paper(beta=10)
    >>> with_values(Default(), {"beta": 10})
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: The method 'default' has no hyperparameter 'beta'; it is one of the method 'paper'
    (method='paper').
    """
    known = hyperparameters(method)
    for name in values:
        if name not in known:
            raise UsageError(
                f"The method {method.name!r} has no hyperparameter {name!r}; {_where(name, known)}"
            )
    return replace(method, **values)


def _where(name: str, known: tuple[str, ...]) -> str:
    """Where a name belongs that a method with the `known` ones does not have."""
    for kind in METHODS.values():
        if name in hyperparameters(kind):
            option = spelled(f"--method {kind.name}", f"method={kind.name!r}")
            return f"it is one of the method {kind.name!r} ({option})."
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}."
