"""Work on the nodes of a Ray cluster, which is imported here only, and only when it is asked for."""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import socket
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Self, TypeVar

from himecat import __version__
from himecat.errors import HimecatError, MissingExtraError, UsageError, by_options, names_options, spelled
from himecat.runtime.threads import one_blas_thread, usable_threads

Common = TypeVar("Common")
Item = TypeVar("Item")
Result = TypeVar("Result")

IN_FLIGHT = 2
"""Items that are under way or whose result waits for its turn, for each worker."""

RETRIES = 4
"""How often a task is begun again whose worker died."""

_OTHER_VERSION = (
    f"A node of the Ray cluster has no himecat {__version__}: install the same version on all of them."
)
# Seconds after which an address counts as one where nobody answers.
_PATIENCE = 5.0
# Ray reads here for how many seconds it tries to reach a cluster.
_WINDOW = "RAY_gcs_server_port_wait_time_s"
_QUIET: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
# Sockets have paths of about a hundred characters; the rest of it is Ray's.
_LONGEST_FOLDER = 30
# Where Ray has the addresses of clusters.
_SERVICES = "ray._private.services"


class RayEngine:
    """Tasks of Ray, one processor each; a task whose worker died is run again.

    Examples
    --------
    >>> from operator import pow
    >>> with RayEngine(workers=2) as engine:  # doctest: +SKIP
    ...     list(engine.map(pow, [1, 2, 3], common=2))
    [2, 4, 8]
    """

    name = "ray"

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        wanted = None if workers is None else usable_threads(workers)
        try:
            # Without being asked, Ray tells its makers how it is used.
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "error")
            import ray
        except ImportError:
            raise MissingExtraError.for_package("ray", "ray", "The engine ray") from None
        self._ray: Any = ray
        self._folder: str | None = None
        self._own = not ray.is_initialized()
        if self._own:
            if address is None:
                self._start(usable_threads(wanted))
            else:
                _join(ray, address)
        self.workers = wanted or max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _start(self, processors: int) -> None:
        ray = self._ray
        options: dict[str, Any] = {}
        folder = tempfile.mkdtemp(prefix="himecat-")
        if len(folder) <= _LONGEST_FOLDER:
            options["_temp_dir"] = self._folder = folder
        else:
            os.rmdir(folder)
        _stay_on_loopback()
        try:
            with _hushed():
                ray.init(num_cpus=processors, include_dashboard=False, **options, **_QUIET)
        except Exception as error:
            self.close()
            raise HimecatError(f"Ray cannot be started here: {_first_line(error)}.") from error

    def map(
        self, task: Callable[[Common, Item], Result], items: Iterable[Item], *, common: Common
    ) -> Iterator[Result]:
        """The result of each item, in their order."""
        ray = self._ray
        run = ray.remote(max_retries=RETRIES, num_cpus=1)(_run)
        shared, told = ray.put(common), (names_options(), __version__)
        waiting: deque[Any] = deque()
        try:
            for item in items:
                waiting.append(run.remote(task, shared, item, told))
                if len(waiting) >= IN_FLIGHT * self.workers:
                    yield self._get(waiting.popleft())
            while waiting:
                yield self._get(waiting.popleft())
        finally:
            for reference in waiting:
                ray.cancel(reference)

    def map_data(
        self, task: Callable[[Common, Item], Result], items: Sequence[Item], *, common: Common
    ) -> Iterator[Result]:
        """The results in any order, from a pool of actors of Ray Data: for tasks that load much, and then take long."""
        import pyarrow
        from ray.data import ActorPoolStrategy, DataContext, from_arrow

        context = DataContext.get_current()
        context.enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        size = min(self.workers, len(items))
        told = (names_options(), __version__)
        # A block of one item each: what is lost with a worker is no more than that.
        dataset = from_arrow(
            [pyarrow.table({"item": pyarrow.array([pickle.dumps(item)], pyarrow.binary())}) for item in items]
        )
        placed = dataset.map_batches(
            _Actor,
            fn_constructor_args=(task, common, told),
            batch_size=1,
            batch_format="pyarrow",
            num_cpus=1,
            compute=ActorPoolStrategy(min_size=1, max_size=size),
        )
        try:
            for row in placed.iter_rows():
                found = pickle.loads(row["result"])
                if isinstance(found, BaseException):
                    raise found
                yield found
        except self._ray.exceptions.RayError as error:
            raise _given_up(error) from error

    def _get(self, reference: Any) -> Any:
        from ray.exceptions import RayError, RayTaskError

        try:
            return self._ray.get(reference)
        except RayTaskError as error:
            # Ray's own has the trace of the worker in its text.
            if isinstance(error.cause, HimecatError):
                raise error.cause from None
            raise _given_up(error) from error
        except RayError as error:
            raise _given_up(error) from error

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._own:
            self._own = False
            self._ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


class _Actor:
    """Runs the task in an actor; an error is a result, because of others Ray makes its own."""

    def __init__(self, task: Any, common: Any, told: tuple[bool, str]) -> None:
        self._task, self._common, self._told = task, common, told

    def __call__(self, batch: Any) -> Any:
        import pyarrow

        found = []
        for item in batch["item"].to_pylist():
            try:
                result = _run(self._task, self._common, pickle.loads(item), self._told)
            except HimecatError as error:
                result = error
            found.append(pickle.dumps(result))
        return pyarrow.table({"result": pyarrow.array(found, pyarrow.binary())})


def _given_up(error: BaseException) -> HimecatError:
    reasons = str(error)
    if "failed to import" in reasons or "No module named 'himecat" in reasons:
        return UsageError(_OTHER_VERSION)
    return HimecatError(f"Ray gave up a task: {_last_line(error)}.")


def _run(task: Callable[[Any, Any], Any], common: Any, item: Any, told: tuple[bool, str]) -> Any:
    options, version = told
    if version != __version__:
        raise UsageError(_OTHER_VERSION)
    with by_options(options), one_blas_thread():
        return task(common, item)


@contextmanager
def _hushed() -> Iterator[None]:
    """Keep what the compiled half of Ray says while it connects from standard error: errors say it in Python."""
    sys.stderr.flush()
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def _stay_on_loopback() -> None:
    """Keep Ray from replacing a loopback address by one that other machines reach, as it does on Linux.

    A cluster of one machine then listens there only; Ray itself does so on macOS and Windows.
    """
    setattr(import_module("ray._private.ray_constants"), "ENABLE_RAY_CLUSTER", False)  # noqa: B010


def _join(ray: Any, address: str) -> None:
    """Connect to a cluster that runs, or say in a sentence why not; Ray itself would try for minutes."""
    host, port = _host_and_port(address)
    where, ways = f"{host}:{port}", _ways_to(host)
    reached = [way for way in ways if _answers(way, port)]
    if not reached:
        raise UsageError(
            f"No Ray cluster answers at {where}: is it running, and is that the port of its head?"
        )
    if reached != ways:
        _stay_on_loopback()
    before = os.environ.get(_WINDOW)
    os.environ[_WINDOW] = before or str(int(_PATIENCE))
    try:
        with _hushed():
            ray.init(address=address, **_QUIET)
    except Exception as error:
        reasons = f"{type(error).__name__} {error} {error.__cause__}"
        if "AuthenticationError" in reasons or "Unauthenticated" in reasons:
            raise UsageError(
                f"The Ray cluster at {where} asks for its token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to the "
                "token or RAY_AUTH_TOKEN_PATH to the file that holds it."
            ) from None
        raise UsageError(f"The Ray cluster at {where} cannot be used: {_first_line(error)}.") from error
    finally:
        if before is None:
            del os.environ[_WINDOW]


def _host_and_port(address: str) -> tuple[str, int]:
    known = address
    if address == "auto":
        try:
            known = import_module(_SERVICES).get_ray_address_from_environment("auto", None)
        except ConnectionError:
            raise UsageError(
                "No Ray cluster runs here: start one with `ray start --head`, or say where it is with "
                f"{spelled('--address HOST:PORT', 'address=')}."
            ) from None
    host, _, port = known.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise UsageError(f"The address of a Ray cluster is host:port or auto, not {address!r}.")
    return host.strip("[]"), int(port)


def _ways_to(host: str) -> list[str]:
    """The hosts that Ray may make of one: a loopback address becomes that of the machine."""
    if host not in ("127.0.0.1", "localhost", "::1"):
        return [host]
    return list(dict.fromkeys(["127.0.0.1", import_module(_SERVICES).get_node_ip_address()]))


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_PATIENCE):
            return True
    except (OSError, OverflowError):
        return False


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1].rstrip(".")
