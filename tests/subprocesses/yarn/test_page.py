"""The YARN page of a job: escaped, script-free, and absent without skein."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from submarine_jobs.submit.runtime_zip import runtime_zip
from submarine_runtime.yarn.page import render_page


def test_everything_is_escaped_and_only_http_is_a_link() -> None:
    nasty = '"><script>alert(1)</script>'
    text = render_page(
        {
            "name": nasty,
            "state": nasty,
            "detail": nasty,
            "task": nasty,
            "host": nasty,
            "progress": 0.42,
            "log_url": "http://nm:8042/" + nasty,
            "links": {nasty: "javascript:alert(1)", "board": "https://x/?a=1&b=2"},
        }
    ).decode()
    assert "<script" not in text
    assert 'href="javascript' not in text
    assert 'href="https://x/?a=1&amp;b=2"' in text
    assert "42 %" in text


def test_malformed_values_do_not_break_the_page() -> None:
    for job in ({}, {"progress": "x"}, {"progress": 7}, {"links": ["a"]}, {"name": "x" * 9999}):
        text = render_page(job)
        assert b"not reported" in text
        assert len(text) < 5000


def test_without_an_application_master_the_helper_reports_it_and_ends(tmp_path: Path) -> None:
    archive = tmp_path / "runtime.zip"
    archive.write_bytes(runtime_zip().data)
    done = subprocess.run(
        [sys.executable, "-I", str(archive), "page"], input=b"", capture_output=True, timeout=30
    )
    answer = json.loads(done.stdout)
    assert done.returncode == 3
    assert answer["ok"] is False
    assert answer["why"]
