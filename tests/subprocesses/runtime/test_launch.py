"""The launcher against plain Python: the same program must not be able to tell the difference."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import submarine_runtime

LAUNCH = Path(submarine_runtime.__file__).parent / "launcher/launch.py"
OLDEST = Path.home() / ".pyenv/versions/3.8.18/bin/python"
PYTHONS = [sys.executable] + ([str(OLDEST)] if OLDEST.exists() else [])

PROGRAMS: dict[str, str | bytes] = {
    "success": "import sys\nprint(sys.argv[1:])\nprint('err', file=sys.stderr)\n",
    "exception": "def f():\n    raise ValueError('no')\n\n\nf()\n",
    "chained": (
        "try:\n    {}['a']\nexcept KeyError as exc:\n    raise RuntimeError('outer') from exc\n"
    ),
    "context": "try:\n    {}['a']\nexcept KeyError:\n    1 / 0\n",
    "syntax": "x = 1\nif x\n    pass\n",
    "import": "import nothing_of_that_name\n",
    "in a module": "import helper\nhelper.f()\n",
    "exit code": "import sys\nsys.exit(3)\n",
    "exit text": "import sys\nsys.exit('enough')\n",
    "exit none": "import sys\nsys.exit()\n",
    "exit false": "import sys\nsys.exit(False)\n",
    "hook": ("import sys\nsys.excepthook = lambda t, e, tb: print('hook', t.__name__, e)\n1 / 0\n"),
    "broken hook": (
        "import sys\ndef hook(*a):\n    raise KeyError('k')\nsys.excepthook = hook\n1/0\n"
    ),
    "atexit": "import atexit\natexit.register(print, 'bye')\nraise SystemExit(4)\n",
    "interrupt": "raise KeyboardInterrupt\n",
    "signal": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n",
    "recursion": "def f():\n    f()\n\n\nf()\n",
    "main": (
        "import sys\nprint(__name__, sys.modules['__main__'].__dict__ is globals())\n"
        "print(sorted(globals()))\nprint(__spec__, __package__, __builtins__.__name__)\n"
    ),
    "path": (
        "import sys, os\nprint([p for p in sys.path if 'launch' in p])\n"
        "print(sys.path[0] == os.path.dirname(os.path.abspath(__file__)), sys.argv)\n"
        "print('submarine_runtime' in sys.modules)\n"
    ),
    "pickle": (
        "import pickle\nclass A:\n    pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)\n"
    ),
    "spawn": (
        "import multiprocessing as m\ndef f(x):\n    return x * x\n"
        "if __name__ == '__main__':\n    with m.get_context('spawn').Pool(2) as p:\n"
        "        print(p.map(f, [1, 2, 3]))\n"
    ),
    "threads": (
        "import threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()\n1/0\n"
    ),
    "encoding": "# -*- coding: latin-1 -*-\nprint(ascii('\xe4'))\n".encode("latin-1"),
    "annotations": "def f(x: 1 + 1): pass\nprint(f.__annotations__)\n",
}


def run_both(tmp_path: Path, python: str, source: str | bytes) -> list[tuple[int, bytes, bytes]]:
    program = tmp_path / "program"
    program.mkdir()
    data = source if isinstance(source, bytes) else source.encode()
    (program / "main.py").write_bytes(data)
    (program / "helper.py").write_text("def f():\n    raise OSError(2, 'gone', 'file')\n")
    (tmp_path / "launch").mkdir()
    shutil.copy(LAUNCH, tmp_path / "launch/launch.py")
    results = []
    for command in (["main.py"], [str(tmp_path / "launch/launch.py"), "main.py"]):
        done = subprocess.run(
            [python, *command, "a", "--b"], cwd=program, capture_output=True, timeout=60
        )
        results.append((done.returncode, done.stdout, done.stderr))
    return results


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_runs_as_under_plain_python(tmp_path: Path, python: str, name: str) -> None:
    plain, ours = run_both(tmp_path, python, PROGRAMS[name])
    if python == str(OLDEST):
        # Python 3.8 itself names the main file as it was given; later ones by its full path.
        plain = (plain[0], plain[1], plain[2].replace(b'"main.py"', _full_path(tmp_path)))
    # Our own two frames lie on the stack too.
    repeats = re.compile(rb"repeated \d+ more")
    assert [repeats.sub(b"", part) for part in ours[1:]] == [
        repeats.sub(b"", part) for part in plain[1:]
    ]
    assert ours[0] == plain[0]


def _full_path(tmp_path: Path) -> bytes:
    return f'"{tmp_path}/program/main.py"'.encode()


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    ("name", "kind", "type_name", "last"),
    [
        ("exception", "error", "ValueError", ("main.py", 2, "f")),
        ("chained", "error", "RuntimeError", ("main.py", 4, "<module>")),
        ("syntax", "error", "SyntaxError", ("main.py", 2, "")),
        ("import", "import", "ModuleNotFoundError", ("main.py", 1, "<module>")),
        ("in a module", "error", "FileNotFoundError", ("helper.py", 2, "f")),
        ("exit code", "exit", "SystemExit", ("main.py", 2, "<module>")),
        ("interrupt", "error", "KeyboardInterrupt", ("main.py", 1, "<module>")),
    ],
)
def test_it_leaves_the_structured_traceback(
    tmp_path: Path, python: str, name: str, kind: str, type_name: str, last: tuple[str, int, str]
) -> None:
    run_both(tmp_path, python, PROGRAMS[name])
    assert not list(tmp_path.glob(".failure*"))
    failure = json.loads((tmp_path / "failure.json").read_text())
    assert (failure["kind"], failure["type"]) == (kind, type_name)
    frame = failure["frames"][-1]
    assert (Path(frame["file"]).name, frame["line"], frame["function"]) == last
    assert "launch.py" not in failure["text"]
    assert failure["text"].rstrip().splitlines()[-1].startswith(type_name)


def test_the_first_of_several_processes_counts(tmp_path: Path) -> None:
    run_both(tmp_path, sys.executable, PROGRAMS["exception"])
    (tmp_path / "program/main.py").write_text("raise ConnectionResetError('the peer is gone')\n")
    command = [sys.executable, str(tmp_path / "launch/launch.py"), "main.py"]
    subprocess.run(command, cwd=tmp_path / "program", capture_output=True, timeout=60)
    assert json.loads((tmp_path / "failure.json").read_text())["type"] == "ValueError"


def test_a_deep_recursion_stays_small(tmp_path: Path) -> None:
    run_both(tmp_path, sys.executable, PROGRAMS["recursion"])
    failure = json.loads((tmp_path / "failure.json").read_text())
    assert failure["type"] == "RecursionError"
    assert len(failure["frames"]) == 100


@pytest.mark.parametrize("name", ["success", "exit none", "exit false"])
def test_success_leaves_no_failure(tmp_path: Path, name: str) -> None:
    run_both(tmp_path, sys.executable, PROGRAMS[name])
    assert not (tmp_path / "failure.json").exists()
    assert (tmp_path / "launch/started").exists()
