"""Running a command in a child of a warm process, and what is known of how it ended."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import himecat

HERE = Path(__file__).resolve().parent
SECONDS = 60
MEGABYTES = 4096


def why_not() -> str:
    """Why the attacks cannot run on this machine; nothing where they can."""
    if not sys.platform.startswith("linux"):
        return "the attacks need Linux: fork, /proc, and limits of memory by process"
    if shutil.which("cc") is None:
        return "there is no C compiler (cc) to build the shim that interrupts calls"
    return ""


@dataclass
class Run:
    """One command: its arguments, and what stands in its way.

    `shim` is what `faults.zygote` arms: the folder `below`, the call number `at`, the `action` and its `value`.
    `disk` is a folder that becomes a small file system of its own, with its size: `folder:4k`.
    """

    arguments: list[str]
    shim: dict[str, Any] | None = None
    stdout: str = ""
    stderr: str = ""
    nobody: bool = False
    disk: str = ""
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class Ended:
    """How a command ended; `killed` says why the harness ended it, `calls` what the shim counted."""

    code: int | None
    signal: int | None
    out: bytes
    err: bytes
    seconds: float
    cpu: float
    megabytes: int
    killed: str
    left: bool
    calls: int
    fired: bool
    call: str
    path: str
    listing: list[str] = field(default_factory=list)

    @property
    def sentences(self) -> list[str]:
        """What it said about why it failed."""
        text = self.err.decode(errors="replace")
        return [line.removeprefix("himecat: ") for line in text.split("\n") if line.startswith("himecat: ")]


class Zygote:
    """A warm process. One attack at a time: several of these run several."""

    def __init__(self, work: Path, shim: Path) -> None:
        self.work = work
        source = Path(himecat.__file__).resolve().parent.parent
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HIMECAT_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "faults.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=work,
            env={
                **kept,
                "PYTHONPATH": os.pathsep.join([str(source), str(HERE.parent)]),
                "LD_PRELOAD": str(shim),
                "HIMECAT_SHIM": str(shim),
                "LANG": "C.UTF-8",
                "COLUMNS": "100",
                "TERM": "dumb",
                # A process with threads cannot be forked safely.
                **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
                "JE_ARROW_MALLOC_CONF": "background_thread:false",
                **_numba_cache(),
            },
        )
        self.threads = int(self._line()["threads"])

    def run(
        self, folder: Path, *runs: Run, seconds: float = SECONDS, megabytes: int = MEGABYTES
    ) -> list[Ended]:
        """Run commands in a folder, all at once, and wait for them."""
        place = Path(tempfile.mkdtemp(dir=self.work, prefix="run-"))
        place.chmod(0o777)
        outs = [(place / f"out{number}", place / f"err{number}") for number in range(len(runs))]
        try:
            answer = self._ask(
                {
                    "folder": str(folder),
                    "home": str(place),
                    "seconds": seconds,
                    "megabytes": megabytes,
                    "runs": [
                        {**vars(run), "out": str(out), "err": str(err)}
                        for run, (out, err) in zip(runs, outs, strict=True)
                    ],
                }
            )
            return [
                Ended(out=_read(out), err=_read(err), listing=_names(place / "disk"), **ended)
                for ended, (out, err) in zip(answer["ended"], outs, strict=True)
            ]
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ask(self, request: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._line()

    def _line(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the warm process has ended with code {self._process.wait()}")
        return json.loads(line)


def _numba_cache() -> dict[str, str]:
    """The machine code that is cached already: commands have a home of their own, and would compile anew."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return {}
    from himecat.kernels.compiled import user_cache

    found = user_cache()
    return {} if found is None else {"NUMBA_CACHE_DIR": str(found.parent)}


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _names(listing: Path) -> list[str]:
    return _read(listing).decode().split("\n")[:-1]


class Pool:
    """Several warm processes, and a folder that everything happens in."""

    def __init__(self, jobs: int = 1) -> None:
        self.work = Path(tempfile.mkdtemp(prefix="himecat-faults-"))
        # Commands may run as nobody.
        self.work.chmod(0o755)
        shim = build_shim(self.work)
        self._idle: queue.Queue[Zygote] = queue.Queue()
        self._all = [Zygote(self.work, shim) for _ in range(jobs)]
        for one in self._all:
            self._idle.put(one)
        self._lock = threading.Lock()
        # One for each thing: what is made may take a while, and need something else that is made once.
        self._locks: dict[str, threading.Lock] = {}
        self._kept: dict[str, Any] = {}

    def run(
        self, folder: Path, *runs: Run, seconds: float = SECONDS, megabytes: int = MEGABYTES
    ) -> list[Ended]:
        """As `Zygote.run`, in whichever process is idle."""
        zygote = self._idle.get()
        try:
            return zygote.run(folder, *runs, seconds=seconds, megabytes=megabytes)
        finally:
            self._idle.put(zygote)

    def command(self, folder: Path, arguments: Sequence[str], **options: Any) -> Ended:
        """Run one command."""
        return self.run(folder, Run(list(arguments), **options))[0]

    def once(self, name: str, make: Any) -> Any:
        """What is made once for all attacks, such as a model; `make` is called with a new folder."""
        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            if name not in self._kept:
                folder = self.work / f"once-{name}"
                folder.mkdir()
                self._kept[name] = make(folder)
            return self._kept[name]

    def close(self) -> None:
        """End the processes and remove the folder."""
        for one in self._all:
            one.close()
        shutil.rmtree(self.work, ignore_errors=True)


def build_shim(folder: Path) -> Path:
    """Compile the shim into a folder."""
    built = folder / "shim.so"
    subprocess.run(
        ["cc", "-O1", "-shared", "-fPIC", "-o", str(built), str(HERE / "shim.c"), "-ldl"],
        check=True,
        capture_output=True,
    )
    return built
