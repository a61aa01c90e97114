"""Checks of the server's responses against its OpenAPI document."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

DOCUMENT: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "docs" / "openapi.json").read_text("utf-8")
)


def _strict_schemas() -> dict[str, Any]:
    """The types of the document; those of the server have no other fields than they declare.

    The job record is left open: its schema also covers the file in the job directory.
    """
    found = {}
    for name, schema in DOCUMENT["components"]["schemas"].items():
        whole = schema.get("type") == "object" and schema.get("required")
        found[name] = {**schema, "additionalProperties": False} if whole else schema
    return found


@cache
def schema_of(name: str) -> Draft202012Validator:
    """A validator of one type."""
    return _validator({"$ref": f"#/components/schemas/{name}"})


def _validator(schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": {"schemas": _strict_schemas()}})


@cache
def _responses(method: str, path: str) -> dict[str, Any] | None:
    """The responses of the operation with this address; None if there is none."""
    for pattern, operations in DOCUMENT["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), f"/{path}"):
            found = operations.get(method.lower())
            return dict(found["responses"]) if found else None
    return None


def answer_problems(
    method: str, target: str, status: int, content_type: str, data: bytes
) -> list[str]:
    """In what a response differs from the document; an address beside it is no difference."""
    responses = _responses(method, target.partition("?")[0])
    if responses is None:
        return []
    response = responses.get(str(status))
    if response is None:
        if status < 400:
            return [f"{method} {target}: status {status} is not in the document"]
        response = responses["default"]
    kind = content_type.partition(";")[0]
    content = response.get("content")
    if content is None:
        return []  # The websocket's handshake.
    if kind not in content:
        return [f"{method} {target}: {status} with {kind}, not {', '.join(content)}"]
    if kind == "text/plain":
        return []
    validator = _validator(content[kind]["schema"])
    values = data.splitlines() if kind == "application/x-ndjson" else [data]
    return [
        f"{method} {target}: {error.json_path}: {error.message[:300]}"
        for value in values
        for error in validator.iter_errors(json.loads(value))
    ]
