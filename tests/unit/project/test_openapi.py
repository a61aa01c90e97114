"""The OpenAPI document is current, complete, and agrees with handlers, pages and front end."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from submarine_jobs.model import JobView
from submarine_jobs.tracking import Origin
from submarine_runtime.protocol import JobRecord, State, TaskRecord
from submarine_server import views
from submarine_server.extension import BASE, routes
from submarine_server.views import JobDetails, row_json, view_json
from tests.rest_schema import DOCUMENT, answer_problems, schema_of

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
try:
    import openapi
    import record_schema
finally:
    sys.path.pop(0)

OPERATIONS = [
    (path, method, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]


def test_the_document_is_current() -> None:
    assert openapi.DOCUMENT.read_text("utf-8") == openapi.content(), "run scripts/openapi.py"


def test_every_method_of_every_route_is_in_it() -> None:
    expected = {
        (re.sub(r"\(.*?\)", "{job}", pattern.removeprefix(f"/{BASE}")), method.lower())
        for pattern, handler, *_ in routes()
        if pattern.startswith(f"/{BASE}/")
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        if hasattr(getattr(handler, method.lower()), "__guarded__")
    }
    assert {(path, method) for path, method, _ in OPERATIONS} == expected
    assert len(expected) > 20


def test_only_the_websocket_has_no_declared_answer() -> None:
    bare = [path for path, _, operation in OPERATIONS if "101" in operation["responses"]]
    assert bare == ["/channel"]


def test_the_table_of_the_page_has_the_same_requests_and_parameters() -> None:
    page = (ROOT / "docs" / "server.md").read_text("utf-8")
    rows = re.findall(r"^\| `(GET|POST) ([\w/]+)(?:\?([^`]*))?`", page, re.MULTILINE)
    told = {
        (method.lower(), f"/{path.replace('ID', '{job}')}"): query for method, path, query in rows
    }
    known = {(method, path): one for path, method, one in OPERATIONS if path != "/channel"}
    assert set(told) == set(known)
    for key, query in told.items():
        named = {part.partition("=")[0] for part in query.split("&") if part}
        read = {one["name"] for one in known[key].get("parameters", []) if one["in"] == "query"}
        # The text names these two.
        assert named == read - {"download", "preset"}, key


def test_operations_have_their_own_ids_and_all_references_exist() -> None:
    ids = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(ids)) == len(ids)
    text = json.dumps(DOCUMENT)
    for reference in set(re.findall(r'"\$ref": "#/components/schemas/(\w+)"', text)):
        assert reference in DOCUMENT["components"]["schemas"]
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def interfaces() -> dict[str, set[str]]:
    """Names of the fields of each type in the front end's list."""
    text = (ROOT / "labextension/src/api/types.ts").read_text("utf-8")
    found = {}
    for name, picked, body in re.findall(
        r"^export interface I(\w+) (?:extends Pick<([^>]*)> )?\{(.*?)^\}", text, re.M | re.S
    ):
        fields = re.findall(r"^  (?:readonly )?(\w+)\??:", body, re.MULTILINE)
        found[name] = {*fields, *re.findall(r"'(\w+)'", picked)}
    return found


SHARED = sorted(interfaces().keys() & DOCUMENT["components"]["schemas"].keys())


def test_most_types_are_shared_with_the_front_end() -> None:
    assert {"JobView", "JobRow", "JobsPage", "Cluster", "LogPage", "Series"} <= set(SHARED)


@pytest.mark.parametrize("name", SHARED)
def test_the_front_end_has_the_same_fields(name: str) -> None:
    assert interfaces()[name] == set(DOCUMENT["components"]["schemas"][name]["properties"])


def test_a_view_and_a_row_fit() -> None:
    tasks = [TaskRecord("worker:0", "worker", 0, state=State.FAILED, exit_code=1)]
    record = JobRecord("a-20261120-7f3a", "a", State.FAILED, tasks=tasks)
    view = view_json(JobView(record), JobDetails())
    assert not list(schema_of("JobView").iter_errors(view))
    assert not list(schema_of("JobRow").iter_errors(row_json(record, Origin())))
    view["more"] = 1
    assert list(schema_of("JobView").iter_errors(view)), "an undeclared field"


@pytest.mark.parametrize(
    ("method", "path", "status", "content_type", "body"),
    [
        ("GET", "health", 200, "application/json", {"version": "1"}),
        (
            "GET",
            "jobs/a-20261120-7f3a/models",
            200,
            "application/json",
            {"models": [{"size": "1"}]},
        ),
        ("GET", "jobs/a-20261120-7f3a", 404, "application/json", {"error": "none"}),
        ("POST", "jobs/a-20261120-7f3a/cancel", 200, "application/json", {}),
        ("GET", "jobs/a-20261120-7f3a/script", 200, "application/json", {}),
        (
            "GET",
            "jobs/a-20261120-7f3a/log/search?q=x",
            200,
            "application/x-ndjson",
            {"done": False},
        ),
    ],
)
def test_a_response_that_does_not_fit_is_found(
    method: str, path: str, status: int, content_type: str, body: Any
) -> None:
    assert answer_problems(method, path, status, content_type, json.dumps(body).encode())


def test_responses_that_fit_pass() -> None:
    hit = {"line_offset": 0, "offset": 0, "length": 1, "time": 0, "text": "x"}
    last = {"done": True, "next": None, "scanned": 9}
    lines = f"{json.dumps(hit)}\n{json.dumps(last)}\n".encode()
    search = "jobs/a-20261120-7f3a/log/search?q=x"
    assert not answer_problems("GET", search, 200, "application/x-ndjson; charset=utf-8", lines)
    words = b'{"words": ["run"]}'
    assert not answer_problems("GET", "complete?words=r", 200, "application/json", words)


def test_each_type_is_exported() -> None:
    for name in DOCUMENT["components"]["schemas"]:
        if name not in record_schema.schema()["$defs"]:
            assert hasattr(views, f"{name}Json")
