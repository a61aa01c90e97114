"""A job that means harm is shown harmlessly, whatever stands in its record."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from submarine_jobs import display
from submarine_jobs.model import JobView, read_record
from submarine_jobs.text import escape_html, one_line, printable, web_link
from submarine_runtime.protocol import (
    PROTOCOL_VERSION,
    EndReason,
    Event,
    Failure,
    JobRecord,
    Output,
    Phase,
    State,
    TaskRecord,
    TracebackFrame,
)
from tests.random_examples import examples
from tests.unit.jobs.display.display_records import EVIL, NOW, check_html, record


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


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
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


def _any(cls: type[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Instances of a dataclass whose fields have any values of their types."""
    inferred: dict[str, Any] = dict.fromkeys(cls.__dataclass_fields__, ...)
    return st.builds(cls, **{**inferred, **fields})


OBJECTS = st.dictionaries(st.text(max_size=5), JSON, max_size=3)
RECORDS = _any(
    JobRecord,
    version=st.just(PROTOCOL_VERSION),
    phases=st.lists(_any(Phase), max_size=3),
    tasks=st.lists(_any(TaskRecord), max_size=3),
    events=st.lists(_any(Event, data=OBJECTS), max_size=3),
    resources=OBJECTS | st.fixed_dictionaries({"requested": JSON, "used": JSON}),
).map(JobRecord.to_json)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(
    RECORDS, st.dictionaries(st.sampled_from([*JobRecord.__dataclass_fields__]), JSON, max_size=2)
)
def test_any_record_is_shown_or_refused(sent: dict[str, object], wrong: dict[str, object]) -> None:
    check_all(JobView(read_record(sent)))
    try:
        record = read_record({**sent, **wrong})
    except ValueError:
        return
    check_all(JobView(record))


@given(st.text(max_size=200), st.integers(0, 50))
def test_escaped_never_lets_markup_through(text: str, limit: int) -> None:
    assert not set("<>\"'") & set(escape_html(text, limit))
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
