"""What is shown of a job, and that nothing from a job can act on who looks at it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submarine_jobs import display
from submarine_jobs.display import durations
from submarine_jobs.display.untrusted import escaped, one_line, printable, web_link
from submarine_jobs.view import JobView
from submarine_runtime.protocol.failure import Failure, TracebackFrame
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.record import Event, JobRecord, Output, Phase, TaskRecord
from submarine_runtime.protocol.states import State

NOW = 1_795_225_000.0
EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><b>&amp; \x1b[31m\x1b]8;;http://e\x07"
    "\u202eevil\u2066 \x00\x9b31m\ud800 ]]> --> </pre></details>"
)


def record(state: State = State.RUNNING, **changes: object) -> JobRecord:
    values: dict[str, object] = {
        "job_id": "digits-20261120-7f3a",
        "name": "digits",
        "state": state,
        "backend": "yarn",
        "queue": "gpu",
        "job_dir": "hdfs://nn:9000/user/ada/jobs/202611/digits-20261120-7f3a",
        "created": NOW - 65,
        "phases": [Phase("upload", NOW - 65, NOW - 64), Phase("queue", NOW - 64, NOW - 62)],
        "tasks": [TaskRecord("worker:0", "worker", 0, host="node1", memory_peak=812.0)],
        "resources": {"requested": {"worker": {"memory": 3072, "vcores": 1, "gpus": 1}}},
    }
    return JobRecord(**{**values, **changes})  # type: ignore[arg-type]


def hostile(text: str) -> JobView:
    """A job in which every text is ``text``."""
    frame = TracebackFrame(text, 1, text, text, text, text, 3)
    return JobView(
        record(
            State.FAILED,
            job_id=text,
            name=text,
            queue=text,
            backend=text,
            job_dir=text,
            application_id=text,
            workflow=text,
            workflow_run=text,
            workflow_node=text,
            detail=text,
            reason=EndReason.PROGRAM_ERROR,
            phases=[Phase(text, NOW, None)],
            tasks=[
                TaskRecord(text, text, 0, host=text),
                TaskRecord(
                    text,
                    text,
                    1,
                    host=text,
                    state=State.FAILED,
                    container_id=text,
                    log_url=text,
                    gpus=[text],
                    started=NOW,
                    detail=text,
                    network=text,
                    restarts=2,
                ),
            ],
            events=[Event(0, NOW, text, text, detail=text, task=text)],
            hints=[text],
            epoch=3,
            failure=Failure(text, text, [frame] * 3, text),
            resources={"requested": {text: {"memory": text, "gpus": 1}, "b": {"gpus": text}}},
            progress=float("nan"),
            links={text: text, "page": f"http://host/{text}", "js": f"javascript:{text}"},
            missing=[text],
            outputs=[Output(f"model/{text}", 3)],
            user=text,
        ),
        tail=text,
        pending=text,
        task=text,
    )


class _Checker(HTMLParser):
    """Collects tags and attributes; fails on what must not be in an output."""

    tags = frozenset(
        [
            "div",
            "strong",
            "span",
            "code",
            "table",
            "tbody",
            "thead",
            "tr",
            "th",
            "td",
            "a",
            "pre",
            "details",
            "summary",
            "p",
        ]
    )

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.tags
        self.open.append(tag)
        for name, value in attrs:
            assert name in {"style", "class", "href", "target", "rel", "open", "title", "colspan"}
            if name == "href":
                assert re.match(r"https?://", value or "")
            if name == "style":
                assert "url(" not in (value or "")
                assert "expression" not in (value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError("a declaration")


def check_html(text: str) -> str:
    """The text content of well-formed, harmless HTML."""
    checker = _Checker()
    checker.feed(text)
    checker.close()
    assert checker.open == []
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text
    )
    text.encode("utf-8")
    return checker.text


def check_all(view: JobView) -> None:
    bundle = display.mimebundle(view, now=NOW, result={"a": EVIL})
    check_html(bundle["text/html"])
    check_html(display.table([view.record], now=NOW).html)
    for text in (bundle["text/plain"], display.table([view.record], now=NOW).text):
        assert "\x1b" not in text
        assert "\u202e" not in text
        text.encode("utf-8")
    json.dumps(bundle, allow_nan=False).encode("utf-8")
    assert sum(len(json.dumps(part)) for part in bundle.values()) < 1_000_000


def test_evil_job_is_harmless() -> None:
    check_all(hostile(EVIL))
    shown = check_html(display.html(hostile(EVIL), now=NOW))
    assert "<script>alert(1)</script>" in shown


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_harmless(text: str) -> None:
    check_all(hostile(text))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = {
    name: JSON
    for name in JobRecord.__dataclass_fields__
    if name not in ("state", "version", "reason", "events", "phases", "tasks", "outputs", "failure")
}
OBJECTS = {
    "phases": st.fixed_dictionaries({"name": JSON, "start": JSON, "end": JSON}),
    "tasks": st.fixed_dictionaries(
        {name: JSON for name in TaskRecord.__dataclass_fields__ if name not in ("state", "reason")}
    ),
    "outputs": st.fixed_dictionaries({"path": JSON, "size": JSON}),
}
FAILURE = st.fixed_dictionaries(
    {
        "type": JSON,
        "message": JSON,
        "frames": st.lists(
            st.fixed_dictionaries(
                {"file": JSON, "line": JSON, "code": JSON, "cell": JSON, "cell_line": JSON}
            ),
            max_size=3,
        ),
    }
)


@settings(max_examples=60, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            **FIELDS,
            **{name: st.lists(item, max_size=3) for name, item in OBJECTS.items()},
            "failure": FAILURE,
            "state": st.sampled_from([state.value for state in State]),
        }
    )
)
def test_any_types_in_a_record_can_be_shown(sent: dict[str, object]) -> None:
    check_all(JobView(JobRecord.from_json(sent)))


@given(st.text(max_size=200), st.integers(0, 50))
def test_escaped_never_lets_markup_through(text: str, limit: int) -> None:
    assert not set("<>\"'") & set(escaped(text, limit))
    assert len(printable(text, limit)) <= max(limit, 1)
    assert "\n" not in one_line(text)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JAVASCRIPT:alert(1)",
        "data:text/html,x",
        "http:///x",
        "//host/x",
        "http://user@host/",
        "http://h\\evil",
        "http://h/ x",
        "http://h/\u202e",
        "ftp://h/x",
        "",
        "http://[",
        None,
        "hdfs://nn/x",
        "\x01http://h/",
        "http://" + "h" * 3000,
    ],
)
def test_not_a_link(url: object) -> None:
    assert web_link(url) is None


def test_links() -> None:
    view = JobView(record(links={"YARN": "http://rm:8088/a?b=1&c='\"", "files": "hdfs://nn/x"}))
    shown = display.html(view, now=NOW)
    assert 'href="http://rm:8088/a?b=1&amp;c=&#x27;&quot;"' in shown
    assert 'rel="noopener noreferrer"' in shown
    assert "files: hdfs://nn/x" in shown


@pytest.mark.parametrize("state", list(State))
def test_every_state_says_why(state: State) -> None:
    reason = EndReason.CLUSTER_LOST if state is State.LOST else EndReason.CANCELLED
    view = JobView(record(state, reason=reason if state.ended else None))
    words = display.text(view, now=NOW).split("\n")
    assert state.value in words[0]
    assert words[1].strip().endswith(".")
    assert ("Cancel it with: submarine cancel digits" in words[-1]) is not state.ended


def test_waiting_says_what_for() -> None:
    view = JobView(record(State.PENDING), pending="The queue gpu has no free GPU.")
    assert "The queue gpu has no free GPU." in display.text(view, now=NOW)
    assert "The queue gpu has no free GPU." in check_html(display.html(view, now=NOW))


def test_running_shows_progress_log_and_phases() -> None:
    view = JobView(record(progress=0.62, phases=[Phase("run", NOW - 5, None)]), tail="a\rb\nc")
    words = display.text(view, now=NOW)
    assert "62%" in words
    assert "run 5.0 s so far" in words
    assert "  | b\n  | c" in words
    shown = display.html(view, now=NOW)
    assert "width:62.0%" in shown
    assert "b\nc</pre>" in shown


def test_failure_names_cell_and_line() -> None:
    frames = [TracebackFrame("model.py", 14, "build", "1 / 0", cell="[3]", cell_line=4)]
    failed = record(
        State.FAILED,
        reason=EndReason.PROGRAM_ERROR,
        failure=Failure("ZeroDivisionError", "division by zero", frames),
        finished=NOW,
    )
    for words in (
        display.text(JobView(failed)),
        check_html(display.html(JobView(failed))),
    ):
        assert 'Cell [3] "model.py", line 4, in build\n' in words
        assert "ZeroDivisionError: division by zero" in words
        assert "Mend that and run again." in words


def test_long_traceback_is_cut_in_the_middle() -> None:
    frames = [TracebackFrame("main.py", n, f"f{n}") for n in range(1000)]
    failed = record(State.FAILED, failure=Failure("RecursionError", "deep", frames))
    words = display.text(JobView(failed), now=NOW)
    assert "980 more frames" in words
    assert "in f0" in words
    assert "in f999" in words


def test_succeeded_shows_model_and_result() -> None:
    view = JobView(
        record(State.SUCCEEDED, reason=EndReason.SUCCEEDED, outputs=[Output("model/m.keras", 1200)])
    )
    words = display.text(view, now=NOW, result={"acc": "0.97"})
    assert "digits-20261120-7f3a/model: m.keras (1.2 kB)" in words
    assert "Returned acc: 0.97" in words


def test_an_unknown_reason_of_a_newer_agent_is_shown_as_it_stands() -> None:
    view = JobView(record(State.FAILED, reason="eaten_by_whale"))
    assert "eaten_by_whale" in display.text(view, now=NOW)


def test_mime_bundle_has_what_others_rely_on() -> None:
    bundle = display.mimebundle(JobView(record()), now=NOW)
    assert set(bundle) == {display.MIME_TYPE, "text/html", "text/plain"}
    data = bundle[display.MIME_TYPE]
    assert data["job_id"] == "digits-20261120-7f3a"
    assert data["job_dir"].startswith("hdfs://")
    assert data["state"] == "RUNNING"
    assert data["time"] == NOW
    assert data["advice"] == data["reason_sentence"] == ""
    assert data["record"]["events"] == []
    assert JobRecord.from_json(data["record"]).queue == "gpu"


def test_mime_bundle_says_why_it_ended_and_what_it_returned() -> None:
    ended = record(State.FAILED, reason=EndReason.OUT_OF_MEMORY)
    result = {f"name{n}": EVIL * 100 for n in range(100)}
    data = display.mimebundle(JobView(ended), now=NOW, result=result)[display.MIME_TYPE]
    assert "memory" in data["reason_sentence"]
    assert data["advice"]
    assert len(data["result"]) == 20
    assert all(len(value) <= 200 for value in data["result"].values())


def test_mime_bundle_is_bounded() -> None:
    big = record(
        State.FAILED,
        detail="x" * 10**6,
        outputs=[Output("model/" + "y" * 5000, 1)] * 10_000,
        links={f"l{n}": "http://h/" + "z" * 10**4 for n in range(1000)},
        failure=Failure("E", "m" * 10**6, [TracebackFrame("f" * 10**5, 1)] * 500, "t" * 10**6),
    )
    bundle = display.mimebundle(JobView(big, tail="l" * 16384), now=NOW)
    assert sum(len(json.dumps(part)) for part in bundle.values()) < 1_000_000


def test_table_states_the_overflow() -> None:
    listed = display.table([record()] * 1003, now=NOW)
    assert "… and 3 more" in listed.text
    assert "… and 3 more" in listed.html
    assert display.table([]).text == "No jobs."


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.44, "0.4 s"),
        (12, "12 s"),
        (185, "3 min 05 s"),
        (7620, "2 h 07 min"),
        (273600, "3 d 04 h"),
        (None, "-"),
        (float("nan"), "-"),
        (59.7, "1 min 00 s"),
        (-3, "0.0 s"),
    ],
)
def test_durations(seconds: float | None, words: str) -> None:
    assert durations.duration(seconds) == words


def test_sizes() -> None:
    assert [durations.size(n) for n in (0, 999, 1000, 1_203_330, 10**15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.2 MB",
        "1000.0 TB",
    ]
