"""The parameters of the WeSHClass classifier."""

from __future__ import annotations

from dataclasses import dataclass, fields

from himecat.compare.systems._checks import require_at_least
from himecat.errors import UsageError


@dataclass(frozen=True)
class WeSHClassSettings:
    """The parameters of the classifier.

    Attributes
    ----------
    keywords : int
        Keywords per leaf, taken from its labelled documents.
    beta : int
        Pseudo documents per category.
    length, sentence : int
        Words of a pseudo document, at most, and how many of them are written before the language model begins
        again with the first word.
    alpha : float
        Share of a pseudo document's label that is spread evenly over its category and the siblings.
    real_share : float
        The labelled documents are repeated until they are this share of the pseudo documents.
    common_words, language_tokens : int
        Words that the language model knows, and words of the corpus that it reads in training.
    epochs : int
        Passes over the pseudo documents in pretraining.
    rounds, round_steps : int
        At most so many rounds of self-training per level, and batches per round.
    rate, self_rate, momentum : float
        Of gradient descent in pretraining and in self-training.
    delta : float
        Self-training ends when the labels of less than so many per cent of the documents change.
    block : bool
        Whether documents are kept at an inner node where no child stands out.
    gamma : float
        The normalised entropy over the children above which none does.

    Examples
    --------
    >>> WeSHClassSettings(beta=100).beta
    100
    >>> WeSHClassSettings(gamma=2.0)
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: gamma must be between 0 and 1, not 2.0.
    """

    keywords: int = 10
    beta: int = 500
    length: int = 100
    sentence: int = 50
    alpha: float = 0.2
    real_share: float = 0.2
    common_words: int = 5000
    language_tokens: int = 300_000
    epochs: int = 30
    rounds: int = 10
    round_steps: int = 30
    rate: float = 0.1
    self_rate: float = 0.005
    momentum: float = 0.9
    delta: float = 0.1
    block: bool = True
    gamma: float = 0.9

    def __post_init__(self) -> None:
        for share in ("alpha", "gamma", "real_share", "momentum"):
            if not 0.0 <= getattr(self, share) <= 1.0:
                raise UsageError(f"{share} must be between 0 and 1, not {getattr(self, share)!r}.")
        smallest = {"epochs": 0, "rounds": 0, "language_tokens": 0, "beta": 0, "burn_in": 0}
        # The systems on other vectors have parameters of their own beside these.
        for field in fields(self):
            if field.type == "int":
                require_at_least(self, **{field.name: smallest.get(field.name, 1)})
            elif field.type == "float":
                require_at_least(self, **{field.name: 0.0})
