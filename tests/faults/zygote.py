"""The warm process that attacks are forked from: a new interpreter for each would take most of the time.

It is started by `faults.runner`, reads one request per line from standard input and answers each with a line.
"""

from __future__ import annotations

import ctypes
import gc
import json
import mmap
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

ACTIONS = {"count": 0, "kill": 1, "fail": 2, "send": 3, "remove": 4}
_NOBODY = 65534
# What the shim shares with us: two numbers, the name of a call, a path.
_PATIENCE = 4
_CALL_AT, _PATH_AT, _BOARD_BYTES = 8, 40, 552


def serve(requests: Any, answers: Any) -> None:
    """Answer requests until there are no more."""
    # Blocked here, so that waiting for it never misses one.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    gc.collect()
    gc.freeze()
    answers.write(json.dumps({"threads": len(os.listdir("/proc/self/task"))}) + "\n")
    answers.flush()
    for line in requests:
        request = json.loads(line)
        boards = [mmap.mmap(-1, mmap.PAGESIZE) for _ in request["runs"]]
        began = time.monotonic()
        children = [_start(run, request, board) for run, board in zip(request["runs"], boards, strict=True)]
        ended = _wait(children, began, request["seconds"], request["megabytes"])
        for one, board in zip(ended, boards, strict=True):
            one |= _read(board)
            board.close()
        answers.write(json.dumps({"ended": ended}) + "\n")
        answers.flush()


def _read(board: mmap.mmap) -> dict[str, Any]:
    whole = board[:_BOARD_BYTES]
    texts = [whole[start:].split(b"\0")[0].decode(errors="replace") for start in (_CALL_AT, _PATH_AT)]
    return {
        "calls": int.from_bytes(whole[:4], sys.byteorder),
        "fired": bool(int.from_bytes(whole[4:8], sys.byteorder)),
        "call": texts[0],
        "path": texts[1],
    }


def _start(run: dict[str, Any], request: dict[str, Any], board: mmap.mmap) -> int:
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        code = _attack(run, request, board)
    except BaseException:
        # A fault of the harness; the text in front tells it from those of the program.
        os.write(2, b"HARNESS " + traceback.format_exc().encode(errors="replace"))
    finally:
        os._exit(code)


def _attack(run: dict[str, Any], request: dict[str, Any], board: mmap.mmap) -> int:
    """In the child: become the process that a shell would have started, and run the command."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.chdir(request["folder"])
    home = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "TMPDIR"), request["home"])
    os.environ.update(home | run.get("environment", {}))
    tempfile.tempdir = None
    _redirect(0, os.devnull, os.O_RDONLY)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = sys.__stdout__ = _stream(1, run["out"], run.get("stdout", ""))
    sys.stderr = sys.__stderr__ = _stream(2, run["err"], run.get("stderr", ""))
    if run.get("disk") and not _mount(*run["disk"].rsplit(":", 1)):
        return 77
    if run.get("nobody"):
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    if run.get("shim"):
        _arm(run["shim"], board)
    from himecat.cli import main

    try:
        main(run["arguments"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        code = 1
        traceback.print_exc()
    code = _end(code)
    if run.get("disk"):
        # Only this process sees the disk.
        names = os.listdir(run["disk"].rsplit(":", 1)[0])
        Path(request["home"], "disk").write_text("".join(f"{name}\n" for name in sorted(names)))
    return code


def _mount(folder: str, size: str) -> bool:
    """Put a small file system in memory over a folder, for this process alone; whether that is allowed."""
    library = ctypes.CDLL(None)
    new_namespace, private = 0x00020000, 1 << 18 | 1 << 14
    return bool(
        library.unshare(new_namespace) == 0
        and library.mount(b"none", b"/", None, private, None) == 0
        and library.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, f"size={size}".encode()) == 0
    )


def _end(code: int) -> int:
    """What the interpreter does on its way out, of which output that fails is a part."""
    import atexit
    import threading

    with suppress(Exception):
        threading._shutdown()
    with suppress(Exception):
        atexit._run_exitfuncs()
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError as error:
            if sys.stderr is not None:
                print(f"Exception ignored on flushing sys.stdout: {error}", file=sys.stderr)
            code = 120
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.flush()
    return code


def _redirect(descriptor: int, path: str, flags: int) -> None:
    opened = os.open(path, flags, 0o644)
    os.dup2(opened, descriptor)
    os.close(opened)


def _stream(descriptor: int, path: str, kind: str) -> Any:
    """Standard output or error as the attack wants it: a file, closed, a full device, a pipe nobody reads."""
    if kind == "closed":
        os.close(descriptor)
        return None
    if kind == "unread":
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, descriptor)
        os.close(writer)
    else:
        _redirect(descriptor, "/dev/full" if kind == "full" else path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    errors = "strict" if descriptor == 1 else "backslashreplace"
    return open(descriptor, "w", encoding="utf-8", errors=errors, closefd=False)


def _arm(shim: dict[str, Any], board: mmap.mmap) -> None:
    library = ctypes.CDLL(os.environ["HIMECAT_SHIM"])
    shared = ctypes.addressof((ctypes.c_char * _BOARD_BYTES).from_buffer(board))
    library.himecat_arm(
        ctypes.c_void_p(shared),
        os.fsencode(shim["below"]),
        int(shim["at"]),
        ACTIONS[shim["action"]],
        int(shim.get("value", 0)),
        int(shim.get("always", False)),
    )


def _wait(children: list[int], began: float, seconds: float, megabytes: int) -> list[dict[str, Any]]:
    ended: dict[int, dict[str, Any]] = {}
    killed: dict[int, str] = {}
    while len(ended) < len(children):
        signal.sigtimedwait([signal.SIGCHLD], 0.05)
        for child in children:
            if child in ended:
                continue
            done, status, used = os.wait4(child, os.WNOHANG)
            if done:
                # Draws of an evaluation are processes of their own: they belong to the same session.
                left = _end_group(child)
                ended[child] = {
                    "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                    "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
                    "seconds": time.monotonic() - began,
                    "cpu": used.ru_utime + used.ru_stime,
                    "megabytes": used.ru_maxrss // 1024,
                    "killed": killed.get(child, ""),
                    "left": left,
                }
            elif child not in killed:
                # Seconds of work: on a busy machine a command waits. One that only waits is found as well.
                if _worked(child) > seconds or time.monotonic() - began > _PATIENCE * seconds:
                    killed[child] = "time"
                elif _resident(child) > megabytes:
                    killed[child] = "memory"
                if child in killed:
                    with suppress(ProcessLookupError):
                        os.killpg(child, signal.SIGKILL)
                        os.kill(child, signal.SIGKILL)
    return [ended[child] for child in children]


def _end_group(group: int) -> bool:
    """End what a command has left running; whether there was anything."""
    # Helpers of Python's own end when they see that their parent has: a moment for that.
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return False
        time.sleep(0.02)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    return True


def _worked(child: int) -> float:
    with suppress(OSError, IndexError, ValueError), open(f"/proc/{child}/stat") as file:
        user, system = file.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _resident(child: int) -> int:
    with suppress(OSError, IndexError, ValueError), open(f"/proc/{child}/statm") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE >> 20
    return 0


def _warm(folder: Path) -> None:
    """Load what commands load, so that each attack finds it in memory."""
    import pyarrow.parquet  # noqa: F401
    import yaml  # noqa: F401
    import zstandard  # noqa: F401

    from faults.material import warm_commands
    from himecat.cli import main

    for arguments in warm_commands(folder):
        try:
            main(arguments)
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"the first {arguments[0]} fails with code {end.code}") from end


def _serve_pipes() -> None:
    requests, answers = sys.stdin, os.fdopen(os.dup(1), "w")
    _redirect(1, os.devnull, os.O_WRONLY)
    os.set_inheritable(requests.fileno(), False)
    folder = Path(tempfile.mkdtemp(prefix="faults-warm-"))
    before = Path.cwd()
    try:
        os.chdir(folder)
        _warm(folder)
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)
    serve(requests, answers)


if __name__ == "__main__":
    _serve_pipes()
