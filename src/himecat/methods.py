"""Every hyperparameter with its range and its value in each preset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral, Real
from typing import Any

from himecat.errors import UsageError

SPACES = ("spectral", "sampled")
# The classifier that is not one of the flat ones: it places documents at the leaves directly.
MIXTURE = "mixture"


@dataclass(frozen=True)
class Settings:
    """The hyperparameters of a fit; the values here are the defaults.

    Attributes
    ----------
    min_count, max_tokens : int
        Words seen less often are left out; only the first words of a document are read.
    dimension, samples, negatives, rate, scaled_steps
        Joint representation learning: p, positive pairs drawn in all (None: from the size of the corpus),
        corrupted pairs per positive one, first step size, whether steps shrink as a pair comes into place.
    margin_hierarchy, margin_metadata, margin_words : float
        Gamma of J_L and of the two parts of J_MC (labels and metadata values; words).
    use_hierarchy, use_metadata : bool
        Whether kin in the tree (in a sampled space: parent and child labels), and metadata values, take part.
        `ignore_metadata` of the estimator leaves out single types.
    beta, concentration, neighbours : int, float, int
        Synthetic documents per category, kappa of their vectors, words nearest to such a vector (None: 50,
        or a tenth of a smaller vocabulary).
    real_share : float
        Labelled documents are repeated until they make up this share of the synthetic ones.
    space : str
        Where word vectors come from: `spectral` (closed form) or `sampled` (the paper's stochastic ascent).
    contexts : int
        Frequent words that serve as contexts of the spectral space.
    topics : int
        Topics of the texts that stand beside the directions of their words; 0 for none.
    weigh_words : bool
        Whether the words of a document count by how much they say.
    learn_trust : bool
        Whether the weight of each metadata type is learned; otherwise all types weigh the same.
    use_names : bool
        Whether the words of a leaf's name speak for it.
    leaf_concentration, em_rounds, learn_prior
        The mixture over the leaves: its concentration, rounds of EM over the unlabelled documents (0: the
        labelled ones alone), whether the frequencies of the leaves are learned.
    self_training : int
        Rounds in which linear classifiers learn from the probable labels of all documents; 0 for none.
    calibrate : bool
        Whether probabilities are calibrated on labelled documents held out in turn.
    classifier : str
        `mixture`, or the name of a flat classifier that is trained on synthetic documents at each inner node.
    epochs, batch_size, min_steps, learning_rate, momentum, filter_widths, filter_maps, hidden
        Of the Kim-CNN; a small training set is passed over more often, until `min_steps` steps are done.

    Examples
    --------
    >>> Settings().dimension
    300
    """

    min_count: int = 2
    max_tokens: int = 300
    dimension: int = 300
    space: str = "spectral"
    contexts: int = 4000
    topics: int = 100
    weigh_words: bool = True
    learn_trust: bool = True
    use_names: bool = True
    leaf_concentration: float = 30.0
    em_rounds: int = 2
    learn_prior: bool = True
    self_training: int = 2
    calibrate: bool = True
    samples: int | None = None
    negatives: int = 5
    rate: float = 0.1
    scaled_steps: bool = True
    margin_hierarchy: float = 0.2
    margin_metadata: float = 0.2
    margin_words: float = 0.2
    use_hierarchy: bool = True
    use_metadata: bool = True
    beta: int = 500
    concentration: float = 2000.0
    neighbours: int | None = None
    real_share: float = 0.2
    classifier: str = "mixture"
    epochs: int = 10
    batch_size: int = 64
    min_steps: int = 400
    learning_rate: float = 0.1
    momentum: float = 0.9
    filter_widths: tuple[int, ...] = (2, 3, 4, 5)
    filter_maps: int = 20
    hidden: int = 20

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain JSON values."""
        return {**asdict(self), "filter_widths": list(self.filter_widths)}


# `paper`: what the paper says and, where it is silent, what its released code does, but for two values: fewer
# samples (thousands of millions there) and a larger concentration (150 there); docs/method.md gives the reasons.
PRESETS: Mapping[str, Settings] = {
    "default": Settings(),
    "paper": Settings(
        min_count=10,
        dimension=100,
        space="sampled",
        classifier="kim-cnn",
        rate=0.04,
        neighbours=50,
        epochs=30,
        batch_size=256,
        min_steps=0,
    ),
}

_MOST = float("inf")
# name -> (lowest, highest, whether the lowest itself is allowed)
_RANGES: Mapping[str, tuple[float, float, bool]] = {
    "min_count": (1, _MOST, True),
    "max_tokens": (1, _MOST, True),
    "dimension": (2, 4096, True),
    "contexts": (2, 1_000_000, True),
    "topics": (0, 4096, True),
    "leaf_concentration": (0, 1e6, False),
    "em_rounds": (0, 1000, True),
    "self_training": (0, 100, True),
    "samples": (1, _MOST, True),
    "negatives": (1, 1000, True),
    "rate": (0, 1, False),
    "margin_hierarchy": (0, 2, False),
    "margin_metadata": (0, 2, False),
    "margin_words": (0, 2, False),
    "beta": (0, 1_000_000, True),
    "concentration": (0, 1e6, False),
    "neighbours": (1, _MOST, True),
    "real_share": (0, 1000, True),
    "epochs": (1, 100_000, True),
    "batch_size": (1, _MOST, True),
    "min_steps": (0, _MOST, True),
    "learning_rate": (0, 100, False),
    "momentum": (0, 0.999, True),
    "filter_maps": (1, 10_000, True),
    "hidden": (1, 100_000, True),
    "min_confidence": (0, 1, True),
}
_WHOLE = {f.name for f in fields(Settings) if f.type in ("int", "int | None")}
_SWITCHES = {f.name for f in fields(Settings) if f.type == "bool"}
NAMES = tuple(f.name for f in fields(Settings))


def check_value(name: str, value: Any) -> Any:
    """Return the value in its plain type, or say why it cannot be used.

    Examples
    --------
    >>> check_value("beta", -1)
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: beta must be at least 0, not -1.
    """
    if name in _SWITCHES:
        if not isinstance(value, bool):
            raise UsageError(f"{name} must be True or False, not {value!r}.")
        return value
    if name == "filter_widths":
        widths = tuple(value) if isinstance(value, (list, tuple)) else ()
        if not widths or any(not isinstance(w, Integral) or isinstance(w, bool) or w < 1 for w in widths):
            raise UsageError(f"filter_widths must be whole numbers of at least 1, not {value!r}.")
        if max(widths) > 100:
            raise UsageError(f"filter_widths must be at most 100, not {max(widths)}.")
        if len(set(widths)) < len(widths):
            raise UsageError(f"filter_widths must differ from each other, not {value!r}.")
        return tuple(int(w) for w in widths)
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
    if isinstance(value, bool) or not isinstance(value, Real):
        raise UsageError(f"{name} must be a number, not {value!r}.")
    if name in _WHOLE and not (isinstance(value, Integral) or float(value).is_integer()):
        raise UsageError(f"{name} must be a whole number, not {value!r}.")
    low, high, reached = _RANGES[name]
    value = float(value)
    if not (low <= value <= high) or (value == low and not reached):
        floor = f"at least {low:g}" if reached else f"above {low:g}"
        ceiling = "" if high == _MOST else f" and at most {high:g}"
        raise UsageError(f"{name} must be {floor}{ceiling if value > high else ''}, not {value:g}.")
    return int(value) if name in _WHOLE else float(value)


def resolve(preset: str | None, given: Mapping[str, Any]) -> Settings:
    """The preset's settings, with the values that were given in their place.

    Examples
    --------
    >>> resolve("paper", {"beta": 100, "dimension": None}).beta
    100
    """
    name = "default" if preset is None else preset
    if name not in PRESETS:
        raise UsageError(f"There is no preset {preset!r}; known are {', '.join(PRESETS)}.")
    changes = {key: check_value(key, value) for key, value in given.items() if value is not None}
    return replace(PRESETS[name], **changes)
