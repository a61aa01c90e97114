"""No part of the project reads logs through the REST interfaces of YARN, which check too little.

The history server serves the logs of all users to each user. Logs come from the job directory, or
from the port of the job.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PARTS = ("jobs", "runtime", "data", "kernel", "magics", "server_ext", "workflows", "zeppelin",
         "labextension/src", "minicluster")  # fmt: skip
LOGS = re.compile(
    r"ws/v1/(?:applicationhistory|history/(?!info))|ws/v1/node/containers?/[^\"'\s]*logs"
    r"|ws/v1/node/containerlogs|\bapplication_logs\b"
)


@pytest.mark.parametrize(
    "text",
    [
        '"/ws/v1/history/containerlogs/{container}/stdout"',
        '"/ws/v1/history/aggregatedlogs?appid="',
        'f"{url}/ws/v1/node/containers/{container}/logs/stdout"',
        '"/ws/v1/node/containerlogs/c/stdout"',
        "client.application_logs(app)",
    ],
)
def test_the_pattern_finds_requests_for_logs(text: str) -> None:
    assert LOGS.search(text)


def test_no_source_requests_logs_from_yarn() -> None:
    sources = [
        path
        for part in PARTS
        for pattern in ("*.py", "*.ts", "*.tsx")
        for path in (ROOT / part).rglob(pattern)
        if "node_modules" not in path.parts
    ]
    assert len(sources) > 500
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in sources
        for match in LOGS.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not found
