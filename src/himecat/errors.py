"""Errors whose text is meant for the person at the keyboard.

Every error here carries the exit code the command line ends with: 2 where the input, an option or a
file has to change, 1 where the fault is ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_by_options = False


def spelled(option: str, argument: str) -> str:
    """What a message tells to change: an option on the command line, an argument in Python.

    Examples
    --------
    >>> spelled("--overwrite", "overwrite=True")
    'overwrite=True'
    >>> with by_options():
    ...     spelled("--overwrite", "overwrite=True")
    '--overwrite'
    """
    return option if _by_options else argument


def names_options() -> bool:
    """Whether messages name options of the command line; a new process has to be told.

    Examples
    --------
    >>> names_options()
    False
    """
    return _by_options


@contextmanager
def by_options(told: bool = True) -> Iterator[None]:
    """Have messages name options, as whoever typed a command knows them; in all threads, until the block ends.

    Examples
    --------
    >>> with by_options(), by_options(False):
    ...     spelled("--sheet", "sheet=")
    'sheet='
    """
    global _by_options
    before, _by_options = _by_options, told
    try:
        yield
    finally:
        _by_options = before


class HimecatError(Exception):
    """Base of all errors raised on purpose; its text is one or more plain sentences.

    Examples
    --------
    >>> HimecatError("The file is empty.").exit_code
    1
    """

    exit_code: int = 1


class UsageError(HimecatError, ValueError):
    """An option or a parameter has a value that cannot work.

    Examples
    --------
    >>> UsageError("margin must be above 0.").exit_code
    2
    """

    exit_code = 2


class DataError(HimecatError, ValueError):
    """Documents, labels or the tree are not usable as they are.

    Examples
    --------
    >>> DataError("docs.jsonl line 3: the text is empty.").exit_code
    2
    """

    exit_code = 2


class NoResultError(HimecatError):
    """Not one of several runs gave a result; the code is theirs where all have the same.

    Examples
    --------
    >>> NoResultError("Not one run gave a result.", 2).exit_code
    2
    """

    def __init__(self, sentence: str, exit_code: int = 1) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class ModelFolderError(DataError):
    """A model folder is damaged, foreign, or written by a newer version.

    Examples
    --------
    >>> issubclass(ModelFolderError, DataError)
    True
    """


class OutputError(HimecatError, OSError):
    """A result could not be written (the place exists, the disk is full, no permission).

    Examples
    --------
    >>> OutputError("model/ exists already.").exit_code
    2
    """

    exit_code = 2


class MissingExtraError(HimecatError, ImportError):
    """An optional dependency is needed and not installed.

    Examples
    --------
    >>> str(MissingExtraError.for_package("pyarrow", "files", "reading Parquet"))
    'reading Parquet needs the package pyarrow: pip install "himecat[files]".'
    """

    exit_code = 2

    @classmethod
    def for_package(cls, package: str, extra: str, purpose: str) -> MissingExtraError:
        """Say which extra brings the package that `purpose` needs."""
        return cls(f'{purpose} needs the package {package}: pip install "himecat[{extra}]".')
