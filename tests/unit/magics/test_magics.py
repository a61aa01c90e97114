"""Parts of the magics that do not need a kernel."""

from __future__ import annotations

import atexit
import linecache
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from submarine_jobs.display import MIME_TYPE
from submarine_jobs.errors import TicketError, UsageError
from submarine_jobs.frontends import JobCard, LiveCards
from submarine_jobs.frontends.job_displays import MAX_KEPT, MAX_LIVE
from submarine_jobs.model import JobView
from submarine_jobs.program import parse_cell
from submarine_magics import load_ipython_extension, unload_ipython_extension
from submarine_magics.cells import NotebookCells
from submarine_magics.commands.completion import words_of
from submarine_magics.execution import Execution, Executions, rewrite_first_line
from submarine_magics.frontend import NotebookFrontend, OutputLimitReached, without_traceback
from submarine_magics.frontend.notebook_frontend import MAX_LOG_BYTES
from submarine_magics.frontend.tracebacks import build_traceback
from submarine_runtime.protocol import Failure, JobRecord, Output, State, TracebackFrame

CALL = "get_ipython().run_line_magic('submarine', '%%')\n"


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    config = Config()
    config.HistoryManager.enabled = False
    made = InteractiveShell(config=config)
    yield made
    made.atexit_operations()
    atexit.unregister(made.atexit_operations)


def rewritten(source: str) -> str:
    return "".join(rewrite_first_line(source.splitlines(keepends=True)))


@pytest.mark.parametrize(
    "source",
    [
        "x = 1\n",
        "%%submarine",
        "%%submarine\n  \n",
        "%%submarine run d --gpu 1\nx = 1\n",
        "%%submarine run\nx = 1\n",
        "%%submarine list\nx = 1\n",
        "%%submarine --only\nx = 1\n",
        "%%submarine --file m.py --only\nx = 1\n",
        "%%submarine2\nx = 1\n",
        "x = '''\n%%submarine\n'''\n",
    ],
)
def test_other_first_lines_are_not_changed(source: str) -> None:
    assert rewritten(source) == source


@pytest.mark.parametrize(
    "line", ["%%submarine", "%%submarine --file model.py", "%%submarine --bad"]
)
def test_the_body_keeps_its_line_numbers(line: str) -> None:
    assert rewritten(f"{line}\nx = 1\ny = 2\n") == f"{CALL}x = 1\ny = 2\n"


@given(st.text(alphabet="%submarine -onlyfile=\n x1'\"", max_size=80))
def test_rewriting_changes_only_the_first_nonempty_line(text: str) -> None:
    lines = text.splitlines(keepends=True)
    after = rewrite_first_line(list(lines))
    assert len(after) == len(lines)
    changed = [number for number, (a, b) in enumerate(zip(lines, after, strict=True)) if a != b]
    assert len(changed) <= 1
    if changed:
        assert all(not line.strip() for line in lines[: changed[0]])
        assert parse_cell(text) is not None


def test_rewriting_works_inside_ipython() -> None:
    manager = TransformerManager()
    manager.cleanup_transforms.append(rewrite_first_line)
    source = "%%submarine --file m.py\nfor i in x:\n    !ls\n"
    assert manager.transform_cell(source).startswith(CALL + "for i in x:\n    get_ipython()")
    assert manager.check_complete("%%submarine\nfor i in x:\n")[0] == "incomplete"


@pytest.mark.slow
def test_unload_removes_all_hooks(shell: InteractiveShell) -> None:
    before = list(shell.input_transformers_cleanup), list(shell.Completer.custom_matchers)
    load_ipython_extension(shell)
    load_ipython_extension(shell)
    assert shell.input_transformers_cleanup.count(rewrite_first_line) == 1
    assert Executions.of(shell) is not None
    unload_ipython_extension(shell)
    unload_ipython_extension(shell)
    assert (shell.input_transformers_cleanup, shell.Completer.custom_matchers) == before
    assert Executions.of(shell) is None


@pytest.mark.slow
def test_executions_have_the_metadata_of_the_request(shell: InteractiveShell) -> None:
    executions = Executions.attach(shell)
    received: list[Execution] = []
    executions.listeners.append(received.append)
    info: dict[str, Any] = {"raw_cell": "x", "store_history": True, "cell_id": "abc"}
    executions.begin(SimpleNamespace(**info, cell_meta={"deletedCells": ["a", 3, None]}))
    executions.begin(SimpleNamespace(**{**info, "cell_id": ""}, cell_meta={"deletedCells": "xyz"}))
    executions.begin(SimpleNamespace(raw_cell="y", store_history=False))
    assert received[0] == Execution("x", "abc", shell.execution_count - 1, ("a",), code="x")
    assert received[1].cell_id is None
    assert received[1].deleted == ()
    assert received[2].label == "[ ]"
    assert executions.current == received[2]
    executions.detach()


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", [""]),
        ("run", ["run"]),
        ("run ", ["run", ""]),
        ("run 'a b' --q", ["run", "a b", "--q"]),
        ("run 'a", ["run", "'a"]),
        ("run 'a ", ["run", "'a", ""]),
    ],
)
def test_words_before_the_cursor(typed: str, words: list[str]) -> None:
    assert words_of(typed) == words


def _run_of(cells: NotebookCells, source: str, count: int) -> str:
    name = f"<code of {count}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    cells.collect(Execution(source, f"id{count}", count), name, only=True)
    return name


def test_frames_refer_to_unchanged_cells_only() -> None:
    cells = NotebookCells(lambda: None)
    first = _run_of(cells, "%%submarine\ndef f():\n    1 / 0\n", 1)
    _run_of(cells, "%%submarine\nf()\n", 2)
    frames = [
        TracebackFrame("main.py", 9, "<module>", "g()", cell="[2]", cell_line=2),
        TracebackFrame("/lib/x.py", 400, "call", "h()"),
        TracebackFrame("main.py", 3, "f", "1 / 0", cell="[1]", cell_line=3),
    ]
    traceback = build_traceback(Failure("E", "m", frames), cells)
    entries = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        entries.append((code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    assert entries[0] == ("<job main.py>", 9, "<module>")
    assert entries[1] == ("<job /lib/x.py>", 400, "call")
    assert entries[2] == (first, 3, "f")
    assert build_traceback(Failure("E", "m", frames[:2]), cells) is None
    other = TracebackFrame("main.py", 3, "f", "1 / 0", cell="[1]", cell_id="else", cell_line=3)
    assert build_traceback(Failure("E", "m", [other]), cells) is None


@given(st.text(max_size=60), st.integers(-5, 10**9), st.text(max_size=60))
def test_any_record_makes_frames(file: str, line: int, function: str) -> None:
    cells = NotebookCells(lambda: None)
    _run_of(cells, "%%submarine\n1 / 0\n", 1)
    frames = [
        TracebackFrame(file, line, function, file),
        TracebackFrame("main.py", 1, function, "1 / 0", cell="[1]", cell_line=2),
    ]
    assert build_traceback(Failure("E", "m", frames), cells) is not None


def test_an_error_is_shown_as_one_escaped_sentence_and_keeps_its_class() -> None:
    error = without_traceback(UsageError("bad \x1b]0;x\x07 \u202e", "Do this."))
    assert type(error) is UsageError
    lines = error.__dict__["_render_traceback_"]()
    assert lines == ["\x1b[31mUsageError\x1b[39m: bad \ufffd]0;x\ufffd \ufffd Do this."]


def test_a_refusal_offers_magics() -> None:
    error = without_traceback(TicketError("Ticket expired"))
    assert "Get one with `%submarine login` or kinit" in str(error)
    assert "`%submarine doctor` shows details" in error.fix
    fix = "Run `submarine login` in a terminal, and `submarine kernel install`."
    assert str(without_traceback(UsageError("No.", fix))) == f"No. {fix}"
    both = "Get a ticket with `%submarine login` (in a terminal `submarine login`)."
    assert str(without_traceback(UsageError("No.", both))) == f"No. {both}"


def _view(state: State, **changes: Any) -> JobView:
    return JobView(JobRecord("demo-20261121-aaaa", "demo", state, **changes))


def test_a_card_does_not_change_after_its_final_state() -> None:
    sent: list[dict[str, Any]] = []
    card = JobCard(SimpleNamespace(), sent.append)  # type: ignore[arg-type]
    for state in (State.RUNNING, State.LOST, State.RUNNING, State.SUCCEEDED, State.FINISHING):
        card.update(_view(state))
    assert [bundle[MIME_TYPE]["state"] for bundle in sent] == [
        "RUNNING",
        "LOST",
        "RUNNING",
        "SUCCEEDED",
    ]
    card.finish(_view(State.SUCCEEDED), {"acc": "0.5"})
    card.update(_view(State.RUNNING))
    assert "Returned acc: 0.5" in sent[-1]["text/plain"]


def test_a_final_card_fetches_the_result_without_blocking_the_watcher() -> None:
    sent: list[dict[str, Any]] = []
    requested, available = threading.Event(), threading.Event()

    class Job:
        @property
        def result(self) -> dict[str, Any]:
            requested.set()
            available.wait(10)
            return {"acc": 0.25, "name": "<b>"}

    card = JobCard(Job(), sent.append)  # type: ignore[arg-type]
    card.update(_view(State.SUCCEEDED, outputs=[Output("result.zip", 10)]))
    assert requested.wait(10)
    assert len(sent) == 1
    available.set()
    for thread in threading.enumerate():
        if thread.name == "submarine-result":
            thread.join(10)
    assert "Returned acc: 0.25" in sent[-1]["text/plain"]
    assert "&lt;b&gt;" in sent[-1]["text/html"]


class _Watcher:
    """Fake watcher that records the callbacks."""

    def __init__(self) -> None:
        self.callbacks: dict[str, Callable[[JobView], None]] = {}

    def subscribe(
        self, job: Any, callback: Callable[[JobView], None], *, display: bool
    ) -> Callable[[], None]:
        self.callbacks[job.id] = callback
        return lambda: self.callbacks.pop(job.id, None) and None


def test_the_oldest_card_is_paused_until_a_live_one_ends() -> None:
    watcher, cards = _Watcher(), LiveCards()
    last: dict[str, str] = {}
    for number in range(MAX_LIVE + 2):
        job = SimpleNamespace(id=f"job{number}", session=SimpleNamespace(watcher=watcher))

        def send(bundle: dict[str, Any], name: str = job.id) -> None:
            last[name] = bundle[MIME_TYPE]["state"]

        cards.add(JobCard(job, send))  # type: ignore[arg-type]
    assert sorted(watcher.callbacks) == sorted(f"job{n}" for n in range(2, MAX_LIVE + 2))
    watcher.callbacks["job7"](_view(State.SUCCEEDED))
    assert "job0" in watcher.callbacks
    assert "job1" not in watcher.callbacks
    for _ in range(2):
        for callback in list(watcher.callbacks.values()):
            callback(_view(State.SUCCEEDED))
    assert set(last.values()) == {"SUCCEEDED"}
    assert len(last) == MAX_LIVE + 2


def test_the_number_of_cards_of_a_kernel_is_bounded() -> None:
    watcher, cards = _Watcher(), LiveCards()
    for number in range(MAX_KEPT + 1):
        job = SimpleNamespace(id=f"job{number}", session=SimpleNamespace(watcher=watcher))
        cards.add(JobCard(job, lambda bundle: None))  # type: ignore[arg-type]
    assert cards.of_job("job0") == []
    assert len(cards.of_job("job1")) == 1


@pytest.mark.slow
def test_a_log_ends_at_the_output_limit(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    frontend = NotebookFrontend(shell, NotebookCells(lambda: None))
    with frontend.command_context(None):
        frontend.write("ä".encode()[:1])
        frontend.write("ä".encode()[1:] + b"\x1b[31mred\x1b]0;t\x07\x1b[2J\xff")
        with pytest.raises(OutputLimitReached, match="reads all of it"):
            frontend.write(b"x" * (MAX_LOG_BYTES + 1))
    shown = capsys.readouterr().out
    assert shown.startswith("ä\x1b[31mred\ufffd")
    assert len(shown) <= MAX_LOG_BYTES + 100
