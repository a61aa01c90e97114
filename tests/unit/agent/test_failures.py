"""What the agent reads out of a program's output: progress, and the traceback that counts."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from submarine_runtime.agent.measurement.progress import Progress
from submarine_runtime.agent.program.ending import ProgramFacts, determine_ending
from submarine_runtime.agent.program.failure import load_failure, name_cells, parse_stderr
from submarine_runtime.protocol import Failure, TracebackFrame

# --- progress


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        (["nothing to see"], None),
        (["report:progress:0.42\n"], 0.42),
        (["reporter progress:0.5\n"], 0.5),
        (["report:progress:37%\n"], 0.37),
        (["report:progress:7.5\n"], 1.0),
        (["report:progress:.\n"], None),
        (["Epoch 1/5\n"], 0.0),
        (["Epoch 3/4\n"], 0.5),
        (["Epoch 1/2\n\r 5/10 [==>..] - loss: 1"], 0.25),
        (["Epoch 1/2\n\x1b[1m 5/10\x1b[0m \x1b[32m-----\x1b[0m 1s"], 0.25),
        (["Epoch 1/2\n", "\r 5/10 [==>..] - loss: 1"], 0.25),
        (["Epoch 1/2\n\r10/10 [====]\nEpoch 2/2\n"], 0.5),
        (["Epoch 1/0\n"], None),
        (["xEpoch 1/2\n"], None),
        (["[1] Epoch 1/2\n[1] \r[1]  5/10 [==>..] - loss: 1"], 0.25),
        (["Epoch 2/2\n\r10/10 [====]\n", "20/20 [===] evaluate\n"], 1.0),
    ],
)
def test_progress(tmp_path: Path, texts: list[str], value: float | None) -> None:
    log = tmp_path / "log"
    progress = Progress((str(tmp_path / "absent"), str(log)))
    for text in texts:
        with log.open("a") as file:
            file.write(text)
        progress.update()
    assert progress.value == value


#: Prints the CPU seconds of one update.
READ = """\
import sys, time
from submarine_runtime.agent.measurement.progress import Progress
progress = Progress((sys.argv[1],))
began = time.process_time()
progress.update()
print(time.process_time() - began)
"""


def test_progress_reads_little_of_much(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"Epoch 1/2\n" + b"\r1/9 " * 10_000_000)
    # Its own process: in this one slipcover sometimes takes 0.2 s to remove its probes.
    done = subprocess.run(
        [sys.executable, "-c", READ, str(log)], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 0.1


@given(st.binary(max_size=200))
def test_progress_survives_anything(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    log = tmp_path_factory.mktemp("p") / "log"
    log.write_bytes(b"Epoch 1/3\n" + data)
    value = Progress((str(log),)).update()
    assert value is None or 0 <= value <= 1


# --- tracebacks


def test_the_last_traceback_of_stderr_counts(tmp_path: Path) -> None:
    log = tmp_path / "stderr"
    log.write_text(
        "Traceback (most recent call last):\n"
        '  File "a.py", line 1, in <module>\n    x\nKeyError: 1\n\nnoise\n'
        "Traceback (most recent call last):\n"
        '  File "train.py", line 7, in <module>\n    main()\n    ^^^^^^\n'
        '  File "lib/m.py", line 3, in main\n    raise Oops("a: b")\n'
        "my.Oops: a: b\nterminate\n"
    )
    failure = parse_stderr(str(log))
    assert failure is not None
    assert (failure.type, failure.message) == ("my.Oops", "a: b")
    assert [(f.file, f.line, f.function, f.code) for f in failure.frames] == [
        ("train.py", 7, "<module>", "main()"),
        ("lib/m.py", 3, "main", 'raise Oops("a: b")'),
    ]
    assert failure.text.endswith("my.Oops: a: b")


@pytest.mark.parametrize(
    "text", ["", "no traceback", "Traceback (most recent call last):\n", "xTraceback (most recent"]
)
def test_no_traceback(tmp_path: Path, text: str) -> None:
    (tmp_path / "stderr").write_text(text)
    assert parse_stderr(str(tmp_path / "stderr")) is None
    assert parse_stderr(str(tmp_path / "absent")) is None


def test_parsing_is_linear(tmp_path: Path) -> None:
    log = tmp_path / "stderr"
    head = "Traceback (most recent call last):\n"
    began = time.process_time()
    abort = "terminate called after throwing an instance of 'a'\n"
    texts = [head * 8000, head + '  File "' * 40_000, head + "    x\n" * 40_000, "T" * 300_000]
    for text in (*texts, abort * 4000, abort + " " * 200_000, "F1129 " * 40_000):
        log.write_text(text)
        parse_stderr(str(log))
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"frames": 3}',
        '{"frames": [{"line": "x"}, 4, {"line": 3, "file": 7}]}',
        '{"type": 1, "message": [], "text": {}, "kind": 4}',
        "[" * 100_000,
    ],
)
def test_a_broken_failure_file_does_no_harm(tmp_path: Path, text: str) -> None:
    (tmp_path / "failure.json").write_text(text)
    loaded = load_failure(str(tmp_path / "failure.json"))
    if loaded is not None:
        assert loaded[0].type == "Exception"


@pytest.mark.parametrize("text", ["", "[]", '{"version": 9}', '{"version": 1, "files": {"m": 3}}'])
def test_a_broken_source_map_does_no_harm(tmp_path: Path, text: str) -> None:
    (tmp_path / ".submarine").mkdir()
    (tmp_path / ".submarine/sourcemap.json").write_text(text)
    outside = TracebackFrame("/usr/lib/x.py", 1)
    inside = TracebackFrame(str(tmp_path / "m.py"), 1)
    failure = name_cells(Failure("E", "", [outside, inside], "text"), str(tmp_path))
    assert [frame.file for frame in failure.frames] == ["/usr/lib/x.py", "m.py"]
    assert failure.frames[1].cell is None


#: The end of the standard error of a DataLoader of PyTorch 2.6 with a full /dev/shm, shortened.
_DATA_LOADER = """\
ERROR: Unexpected bus error encountered in worker.
Traceback (most recent call last):
  File "torch/utils/data/_utils/signal_handling.py", line 73, in handler
    _error_if_any_worker_fails()
RuntimeError: DataLoader worker (pid 20) is killed by signal: Bus error. It is possible that \
dataloader's workers are out of shared memory. Please try to raise your shared memory limit.

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "train.py", line 8, in <module>
    for batch in loader:
RuntimeError: DataLoader worker (pid(s) 20) exited unexpectedly
"""


def test_a_bus_error_of_a_data_loader_names_the_shared_memory(tmp_path: Path) -> None:
    log = tmp_path / "stderr"
    log.write_text(_DATA_LOADER, encoding="utf-8")
    failure = parse_stderr(str(log))
    assert failure is not None
    assert failure.message == "DataLoader worker (pid(s) 20) exited unexpectedly"
    assert [frame.file for frame in failure.frames] == ["train.py"]
    assert failure.text == _DATA_LOADER[_DATA_LOADER.index("Traceback") :].rstrip("\n")
    detail = determine_ending(ProgramFacts(1, shell=True, failure=failure)).detail
    assert detail.startswith(
        "DataLoader worker (pid 20) is killed by signal: Bus error: the shared memory in /dev/shm"
    )


def test_the_cause_of_an_unchained_traceback_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "stderr"
    lines = "Traceback (most recent call last):\nKeyError: 1\n"
    log.write_text(f"{lines}retrying\n{lines}", encoding="utf-8")
    failure = parse_stderr(str(log))
    assert failure is not None
    assert failure.text == lines.rstrip("\n")
