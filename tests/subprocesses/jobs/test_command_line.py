"""The command ``submarine`` as a process: exit codes, streams, start-up time, completion."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from submarine_jobs.text import TerminalFilter

SUBMARINE = [sys.executable, "-m", "submarine_jobs.cli"]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SUBMARINE_", "HADOOP_"))}
    return {
        **kept,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "SUBMARINE_STATE_DIR": str(tmp_path / "state"),
        "SUBMARINE_BACKEND": "local",
    }


def submarine(
    words: Sequence[str], environ: dict[str, str], cwd: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SUBMARINE, *words],
        env=environ,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_exit_codes_and_streams(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\nlosses = [0.5, 0.25]\n"
    )
    (tmp_path / "bad.py").write_text("raise SystemExit(4)\n")
    good = submarine(["run", "good.py", "--wait", "--return", "losses"], environ, tmp_path)
    assert good.returncode == 0, good.stderr
    for shown in (good.stdout, submarine(["show", "last"], environ, tmp_path).stdout):
        assert re.search(r"(?m)^  Returned losses: \[0\.5, 0\.25\]$", shown), shown
    assert good.stdout.startswith("out\n")
    assert "err\n" in good.stderr
    assert "SUCCEEDED" in good.stdout
    assert submarine(["run", "bad.py", "--wait"], environ, tmp_path).returncode == 1
    usage = submarine(["run", "good.py", "--gpus", "2"], environ, tmp_path)
    assert usage.returncode == 2
    assert usage.stdout == ""
    assert usage.stderr == (
        "submarine: No such option --gpus of run; did you mean --gpu? Arguments of the program "
        "stand after --: `submarine run good.py -- --gpus 2`.\n"
    )
    early = submarine(["--zzzz", "list"], environ, tmp_path).stderr
    assert (
        early == "submarine: No such option --zzzz of submarine; `submarine --help` lists them.\n"
    )
    del environ["SUBMARINE_BACKEND"]
    assert submarine(["run", "good.py"], environ, tmp_path).returncode == 3


def test_json_is_one_value_on_stdout_even_for_errors(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "good.py").write_text("print('out')\n")
    good = submarine(["run", "good.py", "--wait", "--json"], environ, tmp_path)
    assert json.loads(good.stdout)["record"]["state"] == "SUCCEEDED"
    bad = submarine(["show", "nothing", "--json"], environ, tmp_path)
    assert bad.returncode == 2
    assert json.loads(bad.stdout)["error"]["kind"] == "JobNotFoundError"
    assert bad.stderr == ""


def test_logs_into_a_pipe_are_the_bytes_as_they_are(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "raw.py").write_text(
        "import sys\nsys.stdout.buffer.write(b'a\\xff\\x1b]0;title\\x07\\r50%\\r100%\\n')\n"
    )
    submarine(["run", "raw.py", "--wait", "--json"], environ, tmp_path)
    done = subprocess.run(
        [*SUBMARINE, "logs", "last"], env=environ, cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stdout == b"a\xff\x1b]0;title\x07\r50%\r100%\n"


def test_logs_on_a_terminal_keep_colours_only(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "raw.py").write_text(
        "print('\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07 \\x1b[2J \\x1b]52;c;aGk=\\x07 end')\n"
    )
    submarine(["run", "raw.py", "--wait"], environ, tmp_path)
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*SUBMARINE, "logs", "last", "--stream", "stdout"],
        env=environ,
        cwd=tmp_path,
        stdout=slave,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    ) as process:
        assert process.wait(60) == 0
    os.close(slave)
    shown = os.read(master, 65536)
    os.close(master)
    assert b"\x1b[31mred\x1b[0m" in shown
    assert b"title" not in shown
    assert b"\x1b]" not in shown
    assert b"\x1b[2J" not in shown
    assert b"end" in shown


def test_the_result_begins_on_a_line_of_its_own(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "open.py").write_text("print('no newline', end='')\n")
    done = submarine(["run", "open.py", "--wait"], environ, tmp_path)
    assert done.stdout.startswith("no newline\nopen  open-")
    raw = submarine(["logs", "last", "--stream", "stdout"], environ, tmp_path)
    assert raw.stdout == "no newline"


def test_waiting_on_a_terminal_shows_one_line_that_is_rewritten(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\nprint('first', flush=True)\ntime.sleep(2.5)\nprint('last')\n"
    )
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*SUBMARINE, "run", "slow.py", "--wait"],
        env={**environ, "TERM": "xterm"},
        cwd=tmp_path,
        stdout=slave,
        stderr=slave,
        stdin=slave,
    ) as process:
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):  # the other end of a terminal is gone
            while piece := os.read(master, 65536):
                shown += piece
        assert process.wait(60) == 0
    os.close(master)
    status = rb"\r\x1b\[K\[ +[0-9]+ s\] slow-\d{8}-[0-9a-f]+ RUNNING"
    assert re.search(status, shown)
    # Each line of the log stands alone: the status was taken away before it.
    assert re.search(rb"(?:\n|\x1b\[K)first\r\n", shown)
    assert re.search(rb"(?:\n|\x1b\[K)last\r\n", shown)


@pytest.mark.parametrize(("choice", "state"), [("detach", "RUNNING"), ("cancel", "CANCELLED")])
def test_ctrl_c_while_waiting(
    choice: str, state: str, environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text("import time\nprint('on', flush=True)\ntime.sleep(100)\n")
    with subprocess.Popen(
        [*SUBMARINE, "run", "slow.py", "--wait", "--on-interrupt", choice],
        env=environ,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        process.send_signal(signal.SIGINT)
        out = process.stdout.readline()
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)  # the impatient press twice
        out += process.stdout.read()
        assert process.wait(60) == 130
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    shown = submarine(["show", "last", "--json"], environ, tmp_path)
    job = json.loads(shown.stdout)
    assert job["state"] == state
    assert job["job_id"] in out
    if choice == "detach":
        assert f"cancel {job['job_id']}" in out
        assert submarine(["cancel", "last", "--yes"], environ, tmp_path).returncode == 0


def test_a_reader_that_goes_away_is_no_error(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text("for n in range(200000): print('line', n)\n")
    submarine(["run", "many.py", "--wait", "--json"], environ, tmp_path)
    command = f"{' '.join(SUBMARINE)} logs last | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], env=environ, cwd=tmp_path, capture_output=True, check=False
    )
    assert done.stdout == b"line 0\n"
    assert b"Traceback" not in done.stderr


def test_a_wait_ends_though_its_output_is_not_read(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "short.py").write_text("import time\ntime.sleep(1.5)\n")
    command = f"{' '.join(SUBMARINE)} run short.py --wait 2>&1 | head -n 1"
    done = subprocess.run(
        command, shell=True, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert "short-" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, environ: dict[str, str], tmp_path: Path) -> None:
    variables = {**environ, "_SUBMARINE_COMPLETE": f"{shell}_source"}
    done = submarine([], variables, tmp_path)
    assert done.returncode == 0
    assert "_SUBMARINE_COMPLETE" in done.stdout


def test_bash_completes_verbs_and_options(environ: dict[str, str], tmp_path: Path) -> None:
    def ask(line: str) -> list[str]:
        words = line.split(" ")
        variables = {
            **environ,
            "_SUBMARINE_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        }
        return [
            item.partition(",")[2] for item in submarine([], variables, tmp_path).stdout.split()
        ]

    assert ask("submarine rer") == ["rerun"]
    assert "--worker_resources" in ask("submarine run --worker_r")
    assert ask("submarine run --backend l") == ["local"]
    (tmp_path / "sub").mkdir()
    for name in ("train.py", "trial.ipynb", "tramp.csv", "sub/inner.py"):
        (tmp_path / name).write_text("")
    assert ask("submarine run tr") == ["train.py", "trial.ipynb"]
    assert ask("submarine run su") == ["sub/"]
    assert ask("submarine run sub/i") == ["sub/inner.py"]
    assert ask("submarine run --program /no/such/x") == []


def test_help_starts_fast_and_loads_nothing_heavy(environ: dict[str, str], tmp_path: Path) -> None:
    script = (
        "import sys; from submarine_jobs.cli import main; main(['--help']); "
        "heavy = {'skein', 'grpc', 'numpy', 'IPython', 'rich', 'fsspec', 'cryptography'};"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.strip() == "[]"

    def cpu_seconds(command: list[str]) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Processor time, so that other work on the machine does not count.
    assert min(cpu_seconds([*SUBMARINE, "--help"]) for _ in range(5)) < 0.25


def test_terminal_filter_whatever_the_cuts() -> None:
    data = (
        "é\x1b[1;31mred\x1b[0m\x1b]0;t\x1b\\x\x1b[2K\x1b(B\x07 50%\r100%\n\x9b2J\u202eend".encode()
    )
    whole = TerminalFilter().feed(data, final=True)
    for cut in range(1, len(data)):
        once = TerminalFilter()
        assert once.feed(data[:cut]) + once.feed(data[cut:], final=True) == whole, cut
    each = TerminalFilter()
    pieces = "".join(each.feed(data[n : n + 1]) for n in range(len(data)))
    assert pieces + each.feed(b"", final=True) == whole
    assert whole == "é\x1b[1;31mred\x1b[0mx 50%\r100%\n2Jend\x1b[0m"


def test_terminal_filter_holds_back_a_bounded_amount() -> None:
    terminal_filter = TerminalFilter()
    shown = terminal_filter.feed(b"\x1b]" + b"A" * 100_000)
    assert "\x1b" not in shown
    assert terminal_filter.feed(b"after\n").endswith("after\n")
