"""Memory over 10,000 paragraphs and over 1,000 jobs, and the time of a submission.

All processes are real: an interpreter of Zeppelin's group, controlled through its thrift socket; a
kernel that submits; a Jupyter server with a page that follows each job. An event service that
discards its input replaces Zeppelin's server.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from submarine_zeppelin.installation import start_trial_process
from submarine_zeppelin.installation.trial_process import EventService, TrialProcess
from submarine_zeppelin.interface import ENTRIES
from submarine_zeppelin.thrift import protocol
from tests.local.server.channel_page import Page
from tests.local.server.jupyter_server import Server, running
from tests.notebook.conftest import Notebook
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.full, pytest.mark.timeout(7200)]
PARAGRAPHS = 10_000
JOBS = 1_000
#: Paragraphs or jobs of the warm-up, after which the reference memory is measured.
WARM_UP = 100
MOST_GROWTH = 1.1
#: Paragraphs of a note; then the note is closed, as after a restart of Zeppelin's server.
NOTE_LENGTH = 1_000
#: Jobs that run concurrently.
AT_ONCE = 3
CLASSES = {entry.name: entry.class_name for entry in ENTRIES}


class Pages(EventService):
    """Zeppelin's event service: answers with the paragraphs of a note, and keeps the output."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, dict[str, str]] = {}
        self.shown: dict[str, str] = {}

    def getParagraphList(self, user: str, note: str) -> list[Any]:
        return [
            protocol.ParagraphInfo(noteId=note, paragraphId=key, paragraphText=text)
            for key, text in self.texts.get(note, {}).items()
        ]

    def _drop(self, *_: Any) -> None:
        """Discard the output."""

    appendOutput = checkpointOutput = sendParagraphInfo = _drop

    def updateOutput(self, event: Any) -> None:
        self.shown[event.paragraphId] = str(event.data)

    def updateAllOutput(self, event: Any) -> None:
        self.shown[event.paragraphId] = "\n".join(str(piece.data) for piece in event.msg)


class Interpreter:
    """A process of the group, and the calls of Zeppelin's server for a paragraph."""

    def __init__(self, started: TrialProcess, pages: Pages) -> None:
        self.pid = started.pid
        self._client = started.client
        self._pages = pages
        self._count = 0
        self._sessions: set[str] = set()
        self._client.init({"submarine.allow.service.user": "true"})

    def run(self, note: str, kind: str, body: str) -> str:
        """Add a paragraph to a note and run it; return its output."""
        session = f"session-{note}"
        if session not in self._sessions:
            self._sessions.add(session)
            properties = {"submarine.allow.service.user": "true"}
            for name in CLASSES.values():
                self._client.createInterpreter("group", session, name, properties, "anonymous")
        self._count += 1
        paragraph = f"paragraph_{self._count}"
        word = "%submarine" if kind == "submarine" else f"%submarine.{kind}"
        self._pages.texts.setdefault(note, {})[paragraph] = f"{word} {body}"
        context = protocol.RemoteInterpreterContext(
            noteId=note,
            noteName=note,
            paragraphId=paragraph,
            replName=word[1:],
            paragraphText=f"{word} {body}",
            authenticationInfo=json.dumps({"user": "anonymous"}),
            config="{}",
            gui="{}",
            noteGui="{}",
            localProperties={},
        )
        self._client.getFormType(session, CLASSES[kind])
        result = self._client.interpret(session, CLASSES[kind], body, context)
        assert self._client.getStatus(session, paragraph) != "RUNNING"
        text = "\n".join(str(piece.data) for piece in result.msg)
        assert result.code in ("SUCCESS", "KEEP_PREVIOUS_RESULT"), text
        return text or self._pages.shown.get(paragraph, "")

    def close(self, note: str) -> None:
        """End the session of a note, which is removed."""
        session = f"session-{note}"
        self._pages.texts.pop(note, None)
        for name in CLASSES.values():
            self._client._req("close", session, name)  # The client has its own method `close`.
        self._sessions.discard(session)


@contextlib.contextmanager
def interpreter(scratch: Path, **environment: str) -> Iterator[Interpreter]:
    """A process of the group on the local backend."""
    pages = Pages()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SUBMARINE_", "HADOOP_"))}
    environ = {
        **kept,
        "HOME": str(scratch),
        "XDG_CONFIG_HOME": str(scratch / "config"),
        "ZEPPELIN_LOG_DIR": str(scratch),
        "SUBMARINE_BACKEND": "local",
        "SUBMARINE_STATE_DIR": str(scratch / "state"),
        **environment,
    }
    runner = [sys.executable, "-m", "submarine_zeppelin"]
    with start_trial_process(runner, environ, timeout=PATIENCE, events=pages) as started:
        yield Interpreter(started, pages)


class Memory:
    """Resident memory of processes over time.

    Parameters
    ----------
    processes
        Name -> process id.
    """

    def __init__(self, **processes: int) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in processes.items()}
        self.rows: list[tuple[int, dict[str, tuple[float, float]]]] = []

    def note(self, count: int) -> None:
        """Measure after ``count`` paragraphs or jobs, and print the result."""
        row = {}
        for name, process in self._processes.items():
            found = process.memory_full_info()
            row[name] = found.rss / (1 << 20), found.pss / (1 << 20)
        self.rows.append((count, row))
        said = "; ".join(f"{name} {rss:.1f} ({pss:.1f})" for name, (rss, pss) in row.items())
        print(f"{count:>6}: MiB resident (PSS): {said}", flush=True)

    def check(self) -> None:
        """Check that no process has more memory than after the warm-up, plus a tenth."""
        first, last = self.rows[0][1], self.rows[-1][1]
        growth = {name: last[name][0] / first[name][0] for name in first}
        print("growth:", {name: f"{value - 1:+.1%}" for name, value in growth.items()})
        assert all(value <= MOST_GROWTH for value in growth.values()), growth


def body_of(number: int) -> tuple[str, str]:
    """Return entry and text of a paragraph: six kinds, alternating."""
    match number % 10:
        case 1:
            return "sh", f"echo paragraph {number}"
        case 2:
            return "submarine", "list"
        case 3:
            return "python", f"for n in range(50): print('line', n, 'of {number}')"
        case 4:
            name = f"work_{number % 50}"
            return "python", f"def {name}(x):\n    return x + {number}\n{name}(1)"
        case 5 if number % 100 == 5:
            picture = "b'\\x89PNG\\r\\n\\x1a\\n' + os.urandom(20_000)"
            return "python", (
                "import os\nfrom IPython.display import Image, display\n"
                f"display(Image({picture}, format='png'))"
            )
        case _:
            return "python", f"x = {number}\nprint('paragraph', x)"


def test_memory_over_ten_thousand_paragraphs(tmp_path: Path) -> None:
    with interpreter(tmp_path) as zeppelin:
        memory = Memory(interpreter=zeppelin.pid)
        began = time.monotonic()
        for number in range(1, PARAGRAPHS + 1):
            note = f"2NOTE{(number - 1) // NOTE_LENGTH}"
            text = zeppelin.run(note, *body_of(number))
            if number % 10 in (1, 6):
                assert str(number) in text
            if number % NOTE_LENGTH == 0:
                zeppelin.close(note)
            if number == WARM_UP or number % NOTE_LENGTH == NOTE_LENGTH // 2:
                memory.note(number)
        memory.note(PARAGRAPHS)
        print(f"{PARAGRAPHS} paragraphs in {time.monotonic() - began:.0f} s")
    memory.check()


class Followed:
    """A page that follows the list of jobs and each job to its end."""

    def __init__(self, server: Server) -> None:
        self.page = Page(server)
        self.page.subscribe(1, "jobs")
        self.open: dict[int, str] = {}
        self.succeeded = 0
        self._number = 1

    def follow(self, job_id: str) -> None:
        """Open the card of a job."""
        self._number += 1
        self.open[self._number] = job_id
        self.page.subscribe(self._number, "job", job=job_id)

    def wait(self, most: int) -> None:
        """Wait until at most ``most`` of the followed jobs have not ended."""
        states: dict[int, str] = {}
        while len(self.open) > most:
            message = self.page.next()
            number = message.get("id")
            if number in self.open and message["type"] == "end":
                del self.open[number]
            elif number in self.open:
                record = (message.get("view") or {}).get("record") or {}
                if record.get("state") == "SUCCEEDED" and states.get(number) != "SUCCEEDED":
                    states[number] = "SUCCEEDED"
                    self.succeeded += 1
            self.page.heard.clear()


def p99(values: list[float]) -> float:
    """Return the 99th percentile, interpolated."""
    return statistics.quantiles(values, n=100, method="inclusive")[98]


def test_memory_and_submit_time_over_a_thousand_jobs(tmp_path: Path, kernels: Path) -> None:
    for name in ("server", "kernel", "zeppelin"):
        (tmp_path / name).mkdir()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(running(tmp_path / "server"))
        state = {"SUBMARINE_STATE_DIR": str(tmp_path / "server" / "state")}
        notebook = stack.enter_context(
            contextlib.closing(Notebook(tmp_path / "kernel", kernels, environment=state))
        )
        zeppelin = stack.enter_context(interpreter(tmp_path / "zeppelin", **state))
        page = Followed(server)
        stack.callback(page.page.close)
        seconds = submit_jobs(
            notebook,
            zeppelin,
            page,
            Memory(server=_pid_of(server), kernel=_kernel_of(), interpreter=zeppelin.pid),
        )
    print(
        f"submit p99: first {WARM_UP} jobs {p99(seconds[:WARM_UP]):.3f} s, "
        f"last {WARM_UP} jobs {p99(seconds[-WARM_UP:]):.3f} s; "
        f"median {statistics.median(seconds):.3f} s"
    )


def submit_jobs(
    notebook: Notebook, zeppelin: Interpreter, page: Followed, memory: Memory
) -> list[float]:
    """Submit all jobs and check the memory of the three processes; return the seconds."""
    seconds: list[float] = []
    for number in range(1, JOBS + 1):
        began = time.monotonic()
        ran = notebook.good(
            f"job = %submarine run soak-{number} --memory 64M --worker_launch_cmd true"
        )
        seconds.append(time.monotonic() - began)
        job_id = ran.cards[0]["job_id"]
        notebook.ran.clear()
        page.follow(job_id)
        assert job_id in zeppelin.run("2NOTE", "submarine", f"show {job_id}")
        page.wait(AT_ONCE)
        if number % WARM_UP == 0:
            page.wait(0)
            memory.note(number)
    memory.check()
    return seconds


def _pid_of(server: Server) -> int:
    assert server.process is not None
    return server.process.pid


def _kernel_of() -> int:
    """Return the process id of the kernel that this test has started."""
    children = psutil.Process().children()
    (kernel,) = (child for child in children if "submarine_kernel" in child.cmdline())
    return kernel.pid
