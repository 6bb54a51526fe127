"""What scikit-learn asks of an estimator, without importing scikit-learn: that alone takes longer than a prediction."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from himecat.errors import UsageError
from himecat.methods import METHODS, Method, hyperparameters, resolve_method, with_values

_NESTED = "method__"


class Estimator:
    """Parameters that can be asked for and changed, a short `repr`, and tags for scikit-learn's own tools.

    A subclass stores the arguments of its constructor under their names, `method` and `preset` among them; the
    hyperparameters of the method are parameters too.

    Examples
    --------
    >>> class Sorter(Estimator):
    ...     def __init__(self, method=None, preset=None, most=9):
    ...         self.method, self.preset, self.most = method, preset, most
    >>> Sorter().set_params(most=5, method__em_rounds=3)
    Sorter(method=Default(em_rounds=3), most=5)
    >>> Sorter(most=2).get_params(deep=False)
    {'method': None, 'preset': None, 'most': 2}
    """

    __signature__: ClassVar[inspect.Signature]
    method: str | Method | None
    preset: str | None

    @classmethod
    def argument_defaults(cls) -> dict[str, Any]:
        """The arguments of the constructor and their defaults."""
        given = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {one.name: one.default for one in given}

    def __init_subclass__(cls) -> None:
        signature = inspect.signature(cls.__init__)
        # Without it, `__new__` would be shown in place of the constructor.
        cls.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Say what to write instead of an argument that the constructor does not have."""
        for name in kwargs:
            if name not in cls.argument_defaults():
                raise TypeError(cls._unknown_argument(name))
        return super().__new__(cls)

    @classmethod
    def _unknown_argument(cls, name: str) -> str:
        for kind in METHODS.values():
            if name in hyperparameters(kind):
                return (
                    f"{name} is a hyperparameter of the method: since 0.3 write "
                    f"method={kind.__name__}({name}=...), or set_params(method__{name}=...)."
                )
        return f"{cls.__name__} has no parameter {name!r}; it has {', '.join(cls.argument_defaults())}."

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments; with `deep` also those of the method, as `method__beta`."""
        found = {name: getattr(self, name) for name in self.argument_defaults()}
        if deep:
            with suppress(UsageError):
                method = resolve_method(self.method, self.preset)
                found |= {f"{_NESTED}{name}": getattr(method, name) for name in hyperparameters(method)}
        return found

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor, or hyperparameters of the method (`method__beta=100`)."""
        nested = {name: value for name, value in params.items() if name.startswith(_NESTED)}
        for name in params.keys() - nested.keys() - self.argument_defaults().keys():
            raise ValueError(self._unknown_argument(name))
        for name in params.keys() - nested.keys():
            setattr(self, name, params[name])
        if nested:
            values = {name.removeprefix(_NESTED): value for name, value in nested.items()}
            self.method = with_values(resolve_method(self.method, self.preset), values)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> npt.NDArray[np.float32]:
        """Fit, and give what `transform` gives for the same documents."""
        fitted: Any = self
        found: npt.NDArray[np.float32] = fitted.fit(X, y, **fit_params).transform(X)
        return found

    def __repr__(self) -> str:
        changed = [
            f"{name}={value!r}"
            for name, default in self.argument_defaults().items()
            if (value := getattr(self, name)) is not default and repr(value) != repr(default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags, TransformerTags

        tags = Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            non_deterministic=False,
            no_validation=True,
        )
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classifier_")

    def _check_fitted(self) -> None:
        """Raise scikit-learn's own error where `fit` has not been called."""
        if not self.__sklearn_is_fitted__():
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit or load first.")
