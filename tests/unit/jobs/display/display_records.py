"""Records to be shown, and a check that what is shown holds nothing but our own HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from submarine_runtime.protocol import JobRecord, Phase, State, TaskRecord

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
