"""Run the user's program like ``python main.py``; this file is copied beside the program.

``python launch.py PROGRAM ARGS...`` runs in the root of the bundle. The directory of this file
holds ``return_names`` (one name a line, if values are returned) and the package that reads and
writes values. Its parent directory holds ``values.zip`` (the values of ``--with``, if any) and
``submarine_data.zip`` (a package, if the program imports it), and receives ``failure.json``
(``failure-1.json`` from process 1), ``result.zip`` and ``returns.txt``. This module leaves no other
trace in ``sys.path``, ``__main__`` or printed tracebacks. It handles SIGQUIT, which prints the
traceback of every thread to stderr, and a free real-time signal, which writes it to a file in
``stacks`` of the parent directory. Standard library only.
"""

from __future__ import annotations

import builtins
import errno
import faulthandler
import os
import signal
import sys
import time
import types

TYPE_CHECKING = False  # Importing typing would delay the program's start by some milliseconds.
if TYPE_CHECKING:
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
SCRATCH = os.path.dirname(HERE)
#: Index of this process in its container; only process 0 returns values to the job.
PROCESS = os.environ.get("SUBMARINE_PROCESS", "0")
MAX_TEXT = 1 << 16
MAX_FRAMES = 50


def main() -> None:
    """Run the program ``sys.argv[1]`` as ``__main__``."""
    del sys.argv[0]
    path = os.path.abspath(sys.argv[0])
    if sys.path and sys.path[0] == HERE:
        del sys.path[0]
    sys.path.insert(0, os.path.dirname(path))
    _offer_data()
    faulthandler.enable()
    if hasattr(signal, "SIGQUIT"):
        faulthandler.register(signal.SIGQUIT, all_threads=True)
    _offer_stacks()
    module = _main_module(path)
    _wait_for_imports()
    _pass_values(module.__dict__)
    with open(os.path.join(HERE, "started"), "wb"):
        pass
    try:
        with open(path, "rb") as file:
            source = file.read()
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    except SystemExit as exc:
        if exc.code is None or exc.code == 0:
            _write_results(module.__dict__)
        else:
            _write_failure(exc, "exit")
        exc.__traceback__ = None
        ending: BaseException = exc
    except BaseException as exc:
        exc.__traceback__ = _user_frames(exc.__traceback__)
        _write_failure(exc, _kind(exc))
        ending = exc
    else:
        _write_results(module.__dict__)
        return
    if isinstance(ending, SystemExit):
        raise ending
    _print(ending)
    if isinstance(ending, KeyboardInterrupt):
        sys.excepthook = lambda *_: None  # Python prints nothing more and exits by SIGINT.
        raise ending
    raise SystemExit(1)


def _offer_stacks() -> None:
    """Write the stacks of all threads to a file when the agent sends a signal.

    The name of the file holds what the agent must check before: see ``stacks.capture``.
    """
    folder = os.path.join(SCRATCH, "stacks")
    try:
        free = range(signal.SIGRTMAX - 3, signal.SIGRTMIN, -1)
        number = next(one for one in free if signal.getsignal(one) == signal.SIG_DFL)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        temporary = os.path.join(folder, f".{os.getpid()}")
        opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        faulthandler.register(number, file=opened, all_threads=True)
        name = f"{PROCESS}-{os.getpid()}-{number}-{opened}"
        os.rename(temporary, os.path.join(folder, name))
    except (AttributeError, OSError, StopIteration):
        pass  # The program runs without: there is no such signal, or the disk is full.


def _offer_data() -> None:
    """Make ``submarine_data`` importable, unless it is installed or the program's own.

    The zip has no other package than this one and its runtime, and precedes an installed runtime,
    which may be of another version.
    """
    data = os.path.join(SCRATCH, "submarine_data.zip")
    if not os.path.exists(data):
        return
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if find is not None and find("submarine_data", None) is not None:
            return
    sys.path.insert(1, data)


def _main_module(path: str) -> types.ModuleType:
    module = types.ModuleType("__main__")
    module.__dict__.update(
        __file__=path,
        __builtins__=builtins,
        __loader__=type(__loader__)("__main__", path),  # type: ignore[name-defined]
        __spec__=None,
        __package__=None,
        __cached__=None,
    )
    if sys.version_info < (3, 14):
        module.__dict__.update(__annotations__={})
    sys.modules["_submarine_launch"] = sys.modules["__main__"]
    sys.modules["__main__"] = module
    return module


def _wait_for_imports() -> None:
    """Install the import hook of the shims, if there are any beside this file."""
    path = os.path.join(HERE, "shims", "shims.py")
    if os.path.exists(path):
        with open(path, "rb") as file:
            source = file.read()
        exec(compile(source, path, "exec"), {"__name__": "_submarine_shims", "__file__": path})  # noqa: S102


def _values_module(name: str = "archive") -> Any:
    """Import a module of ``values`` without leaving an entry in sys.path or sys.modules."""
    # cost: importlib, in every program; few have values.
    from importlib import import_module

    sys.path.insert(0, HERE)
    try:
        return import_module("submarine_runtime.values." + name)
    finally:
        sys.path.remove(HERE)
        for own in [n for n in sys.modules if n.split(".")[0] == "submarine_runtime"]:
            del sys.modules[own]


def _pass_values(namespace: dict[str, Any]) -> None:
    path = os.path.join(SCRATCH, "values.zip")
    if not os.path.exists(path):
        return
    try:
        content = _values_module().unpack_values(path)
        namespace.update(content.values)
        if content.stored:
            namespace.update(_values_module("frames").read_stored(content.stored, os.environ))
    except Exception as exc:
        raise SystemExit(f"submarine: the values of --with could not be read: {exc}") from None


def _write_results(namespace: dict[str, Any]) -> None:
    """Write ``result.zip``, and to ``returns.txt`` why values are missing."""
    listed = os.path.join(HERE, "return_names")
    every = os.path.exists(os.path.join(HERE, "return_all_ranks"))
    if not os.path.exists(listed) or not (every or PROCESS == "0"):
        return
    with open(listed, encoding="utf-8") as file:
        names = file.read().split()
    present = {name: namespace[name] for name in names if name in namespace}
    for name in names:
        if name not in present:
            _write_note(f"The program ended without a variable {name} for --return.")
    name = "result.zip" if PROCESS == "0" else "result-" + PROCESS + ".zip"
    target = os.path.join(SCRATCH, name)
    try:
        refused = _values_module().pack_values(present, target + ".part", strict=False)
        os.replace(target + ".part", target)
    except Exception as exc:
        refused = {"": f"The values of --return could not be written: {exc}"}
    for sentence in refused.values():
        _write_note(sentence)


def _write_note(sentence: str) -> None:
    with open(os.path.join(SCRATCH, "returns.txt"), "a", encoding="utf-8") as file:
        prefix = "" if PROCESS == "0" else "Process " + PROCESS + ": "
        file.write(prefix + sentence.replace("\n", " ")[:1000] + "\n")


def _kind(exc: BaseException) -> str:
    if isinstance(exc, MemoryError):
        return "memory"
    if isinstance(exc, ImportError):
        return "import"
    if isinstance(exc, OSError) and exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return "disk_full"
    return "error"


def _user_frames(tb: types.TracebackType | None) -> types.TracebackType | None:
    ours = HERE + os.sep
    while tb is not None and tb.tb_frame.f_code.co_filename.startswith(ours):
        tb = tb.tb_next
    one = tb
    while one is not None and one.tb_next is not None:
        if one.tb_next.tb_frame.f_code.co_filename.startswith(ours):
            one.tb_next = one.tb_next.tb_next
        else:
            one = one.tb_next
    return tb


def _print(exc: BaseException) -> None:
    """Print an unhandled exception through ``sys.excepthook``, which the program may have set."""
    sys.last_type, sys.last_value, sys.last_traceback = type(exc), exc, exc.__traceback__
    try:
        sys.excepthook(type(exc), exc, exc.__traceback__)
    except SystemExit:
        raise
    except BaseException as broken:
        sys.stderr.write("Error in sys.excepthook:\n")
        broken.__traceback__ = _user_frames(broken.__traceback__)
        sys.__excepthook__(type(broken), broken, broken.__traceback__)
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(type(exc), exc, exc.__traceback__)


def _write_failure(exc: BaseException, kind: str) -> None:
    """Write the structured traceback; an error here must not hide the program's exception."""
    try:
        # cost: json and traceback, in every program; only a failure needs them.
        import json
        import traceback

        now = time.time()
        tb = _user_frames(exc.__traceback__)
        text = "".join(traceback.format_exception(type(exc), exc, tb))
        if len(text) > MAX_TEXT:
            text = text[: MAX_TEXT // 2] + "\n[...]\n" + text[-MAX_TEXT // 2 :]
        name = type(exc).__qualname__
        if type(exc).__module__ not in ("builtins", "__main__"):
            name = type(exc).__module__ + "." + name
        failure = {
            "kind": kind,
            "type": name,
            "message": _message(exc),
            "frames": _frames(exc, tb),
            "text": text,
            "time": now,
        }
        temporary = os.path.join(SCRATCH, f".failure-{os.getpid()}.json")
        with open(temporary, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(failure, file)
        own = "failure.json" if PROCESS == "0" else "failure-" + PROCESS + ".json"
        target = os.path.join(SCRATCH, own)
        try:
            os.link(temporary, target)
        except FileExistsError:
            pass  # A copy of the process by os.fork has failed before.
        except OSError:  # The file system has no hard links.
            os.replace(temporary, target)
            return
        os.unlink(temporary)
    except Exception:  # noqa: S110 - e.g. the disk is full: the agent reads stderr instead.
        pass


def _message(exc: BaseException) -> str:
    try:
        return str(exc)[:4096]
    except Exception:
        return "<exception str() failed>"


def _frames(exc: BaseException, tb: types.TracebackType | None) -> list[dict[str, Any]]:
    # cost: json and traceback, in every program; only a failure needs them.
    import traceback

    frames: list[dict[str, Any]] = [
        {"file": f.filename, "line": f.lineno, "function": f.name, "code": f.line or ""}
        for f in traceback.extract_tb(tb)
    ]
    if isinstance(exc, SyntaxError) and exc.filename:
        code = (exc.text or "").strip()
        where = {"file": exc.filename, "line": exc.lineno or 0, "function": "", "code": code}
        frames.append(where)
    if len(frames) > 2 * MAX_FRAMES:
        frames[MAX_FRAMES:-MAX_FRAMES] = []
    return frames


if __name__ == "__main__":
    main()
