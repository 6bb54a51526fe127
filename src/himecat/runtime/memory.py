"""How much memory there is for this process, and a refusal before more than that is asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from numbers import Integral
from pathlib import Path

from himecat.errors import DataError, UsageError, spelled
from himecat.runtime.bounds import bounds, in_bytes, over, raising, size

_ROOT = Path("/")
# Where the system does not say how much there is.
_UNKNOWN = 4 << 30
# Where a control group says its limit and what of it is in use: version 2, then version 1.
_GROUP_FILES = (
    ("sys/fs/cgroup", "memory.max", "memory.current"),
    ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)


def available_memory(root: Path = _ROOT) -> int | None:
    """Bytes that the process may still take, by the system, its control group and its own limit; None if unknown.

    Parameters
    ----------
    root : Path
        Where the system's files are.

    Examples
    --------
    >>> found = available_memory()
    >>> found is None or found > 0
    True
    """
    return min((max(0, found) for found in _limits(root)), default=None)


def resident_bytes() -> int:
    """Bytes of memory that this process has now; the most it had where the system does not tell that.

    Examples
    --------
    >>> resident_bytes() >= 0
    True
    """
    try:
        return int((_ROOT / "proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        pass
    try:
        import resource
    except ImportError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def memory_budget(given: int | str | None) -> int:
    """Bytes that a fit may take: what was asked for, or half of what is there.

    Raises
    ------
    UsageError
        It is no size.

    Examples
    --------
    >>> memory_budget("2GB"), memory_budget(10**9)
    (2147483648, 1000000000)
    """
    if given is None:
        there = available_memory()
        return _UNKNOWN if there is None else there // 2
    found = in_bytes(given) if isinstance(given, str) else given
    if isinstance(found, bool) or not isinstance(found, Integral) or found < 1:
        option = spelled("--memory", "memory")
        raise UsageError(f"{option} must be a size such as 2GB or a number of bytes, not {given!r}.")
    return int(found)


def refuse_beyond_memory(needed: int, what: str) -> None:
    """Raise where a step needs more memory than its bound, or than there is.

    Parameters
    ----------
    needed : int
        Bytes.
    what : str
        What needs them, with its verb.

    Raises
    ------
    DataError
        There is not enough.

    Examples
    --------
    >>> refuse_beyond_memory(1, "2 documents x 3 leaves need")
    >>> refuse_beyond_memory(1 << 60, "20,000 documents x 300,000 leaves need")
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: 20,000 documents x 300,000 leaves need about ... GB of memory, and ...
    """
    bound = bounds().memory
    if bound:
        if needed > bound:
            raise DataError(
                f"{what} about {size(needed)} of memory: take fewer documents or a smaller tree; "
                f"{over('memory', needed)}."
            )
        return
    there = available_memory()
    if there is not None and needed > there:
        raise DataError(
            f"{what} about {size(needed)} of memory, and {size(there)} are there: take fewer documents or a smaller "
            f"tree, or try it all the same ({raising('memory', f'{-(-needed // (1 << 20))}MB')})."
        )


def _limits(root: Path) -> Iterator[int]:
    yield from _of_machine(root)
    for folder, limit, usage in _GROUP_FILES:
        most, used = (_number(root / folder / name) for name in (limit, usage))
        # Version 1 writes a number beyond all memory where there is no limit.
        if most is not None and used is not None and most < 1 << 60:
            yield most - used
    try:
        import resource
    except ImportError:  # not on Windows
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    taken = _number(root / "proc/self/statm")
    if soft != resource.RLIM_INFINITY:
        yield soft - (taken or 0) * resource.getpagesize()


def _of_machine(root: Path) -> Iterator[int]:
    try:
        for line in (root / "proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) << 10
                return
    except (OSError, ValueError, IndexError):
        pass
    try:
        # Other systems say only how much there is in all.
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return


def _number(file: Path) -> int | None:
    """The first number in a file, if it begins with one."""
    try:
        return int(file.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return None
