"""Write the OpenAPI document of the REST interface, docs/openapi.json.

Usage: python scripts/openapi.py. Nothing is declared here but the descriptions of parameters:
addresses are those of the extension's routes, parameters and their bounds those of the calls with
which a handler reads them (`query_int`, `body_text`, ...), responses those of `guarded`, and their
types those of `submarine_server.views.answers` and of the job record.
`tests/unit/project/test_openapi.py` checks that the file is current and complete, and the tests of
the server check each response against it.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import record_schema

from submarine_runtime.protocol import State
from submarine_server.base import Answer, BaseHandler
from submarine_server.extension import BASE, routes
from submarine_server.version import API
from submarine_server.views import ErrorBodyJson

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "openapi.json"
REFERENCE = "#/components/schemas/{name}"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
#: Parameters by name, and where a name has several meanings by the last word of the address too.
DESCRIPTIONS = {
    "job": "Complete id of a job.",
    "state": "Only jobs in this state; may be repeated.",
    "text": "Part of the name or the id, in any case.",
    "jobs.limit": "Maximum number of jobs.",
    "jobs.after": "`next` of the previous page.",
    "tasks.offset": "Number of tasks to skip.",
    "tasks.limit": "Maximum number of tasks.",
    "events.after": "Only events after this number (`seq`).",
    "events.limit": "Maximum number of events.",
    "metrics.task": "Only this task; all by default.",
    "points": "Maximum number of points of a curve.",
    "task": "A task, `worker:0`; by default the one that represents the job.",
    "attempt": "An attempt, `e1-a1`; by default the newest.",
    "stream": "`stdout`, `stderr` or `helper`.",
    "download": "1: the whole log as a file.",
    "log.offset": "First byte; a negative number counts from the end.",
    "log.limit": "Maximum number of bytes.",
    "times.offset": "First byte.",
    "times.limit": "Number of bytes.",
    "q": "Text, or a regular expression, that a line contains.",
    "regex": "1: `q` is a regular expression in the syntax of RE2.",
    "case": "1: upper and lower case differ.",
    "preset": "`errors`: search for patterns of errors instead of `q`.",
    "from": "Byte at which the search begins; by default at the beginning, or backward at the end.",
    "backward": "1: search towards the beginning.",
    "search.limit": "Maximum number of hits.",
    "words": "The words of a command, the last one incomplete; one parameter for each word.",
    "version": "Name of a saved version; by default the final model.",
    "why": "The reason, shown with the job.",
    "resume": "Continue from the newest checkpoint.",
    "name": "Name of the version; by default one is made.",
    "Idempotency-Key": "Id of the request, 1 to 200 printable ASCII characters: the same request "
    "submits one job, however often it is sent.",
}
#: Methods of a handler that read a field of the body, and a parameter of the query.
_BODY_READERS = ("body_text", "body_flag")
_QUERY_READERS = ("query_int", "query_text", "get_query_arguments")


@dataclass
class Inputs:
    """Parameters of the query, and fields of the body, that a method reads: names and schemas."""

    query: dict[str, dict[str, Any]] = field(default_factory=dict)
    body: dict[str, dict[str, Any]] = field(default_factory=dict)


def inputs_of(handler: type, method: str) -> Inputs:
    """Return what a method reads, also in the handler's other methods that it calls."""
    found = Inputs()
    pending, known = [method], {method}
    while pending:
        name = pending.pop()
        function = inspect.unwrap(getattr(handler, name))
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        for call in _own_calls(tree):
            reader = call.func.attr  # type: ignore[attr-defined]
            if reader in (*_QUERY_READERS, *_BODY_READERS):
                _add_input(found, reader, call, function)
            elif reader not in known and _is_own_method(handler, reader):
                known.add(reader)
                pending.append(reader)
    return found


def _own_calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls of methods of ``self``."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "self"
        ):
            yield node


def _is_own_method(handler: type, name: str) -> bool:
    function = inspect.unwrap(getattr(handler, name, None))  # type: ignore[arg-type]
    module = getattr(function, "__module__", "") or ""
    return inspect.isfunction(function) and module.startswith("submarine_server.handlers")


def _add_input(found: Inputs, reader: str, call: ast.Call, function: Any) -> None:
    signature = inspect.signature(getattr(BaseHandler, reader))
    values = [_value(one, function) for one in call.args]
    keywords = {one.arg or "": _value(one.value, function) for one in call.keywords}
    bound = signature.bind(None, *values, **keywords)
    bound.apply_defaults()
    told = bound.arguments
    name = told["name"]
    if reader == "query_int":
        schema = {"type": "integer", "minimum": told["minimum"], "maximum": told["limit"]}
        found.query[name] = {**schema, "default": told["default"]}
    elif reader == "query_text":
        found.query[name] = {"type": "string", "maxLength": told["limit"]}
        if told["default"]:
            found.query[name]["default"] = told["default"]
    elif reader == "get_query_arguments":
        items: dict[str, Any] = {"type": "string"}
        if name == "state":
            items["enum"] = [state.value for state in State]
        found.query[name] = {"type": "array", "items": items}
    elif reader == "body_text":
        found.body[name] = {"type": "string", "maxLength": told["limit"], "default": ""}
    else:
        found.body[name] = {"type": "boolean", "default": False}


def _value(expression: ast.expr, function: Any) -> Any:
    """Return the value of an argument: a constant, or an expression of the module's constants."""
    if isinstance(expression, ast.Call):
        return None  # The body that a field is read from.
    if isinstance(expression, ast.Name) and expression.id not in function.__globals__:
        return None
    code = compile(ast.Expression(expression), "<argument>", "eval")
    return eval(code, function.__globals__)  # noqa: S307 - code of this project


def describe(name: str, path: str) -> str:
    """Return the description of a parameter.

    Raises
    ------
    KeyError
        If it has none: add it to ``DESCRIPTIONS``.
    """
    return DESCRIPTIONS.get(f"{path.rpartition('/')[2]}.{name}") or DESCRIPTIONS[name]


def rest_routes() -> list[tuple[str, type]]:
    """Return address and handler of each route of the interface; the catch-all has none."""
    found = []
    for pattern, handler, *_ in routes():
        if pattern.startswith(f"/{BASE}/") and not pattern.endswith(")?"):
            path = re.sub(r"\((?:\?P<\w+>)?\[\^/\]\+\)", "{job}", pattern.removeprefix(f"/{BASE}"))
            found.append((path, handler))
    return found


def operations(handler: type) -> Iterator[tuple[str, Any, Answer | None]]:
    """Yield each method of a handler with its function and its answer."""
    for method in METHODS:
        function = getattr(handler, method.lower())
        if hasattr(function, "__guarded__"):
            yield method.lower(), function, function.__answer__


def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    paths: dict[str, Any] = {}
    types: set[type] = {ErrorBodyJson}
    for path, handler in rest_routes():
        for method, function, answer in operations(handler):
            if answer is not None:
                types.update(answer.types, filter(None, (answer.body, answer.form)))
            paths.setdefault(path, {})[method] = _operation(path, method, handler, function, answer)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Submarine for notebooks: REST interface of the server extension",
            # That of the JSON, as in the address: the project's version is in `health`.
            "version": str(API),
            "description": "docs/server.md describes access, errors, limits, the search and the "
            "messages of the websocket.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [
            {
                "url": f"{{base_url}}{BASE}",
                "variables": {
                    "base_url": {"default": "/", "description": "Of the Jupyter server."}
                },
            }
        ],
        "security": [{"token": []}, {"cookie": []}],
        "paths": paths,
        "components": {"schemas": _schemas(types), "securitySchemes": _SECURITY},
    }


_SECURITY = {
    "token": {
        "type": "apiKey", "in": "header", "name": "Authorization",
        "description": "`token TOKEN` of the Jupyter server.",
    },
    "cookie": {
        "type": "apiKey", "in": "cookie", "name": "username-HOST-PORT",
        "description": "The cookie of a login. A `POST` also needs the header `X-XSRFToken`.",
    },
}  # fmt: skip


def _operation(
    path: str, method: str, handler: type, function: Any, answer: Answer | None
) -> dict[str, Any]:
    words = [word for word in path.split("/") if word and not word.startswith("{")]
    summary, _, more = (inspect.getdoc(inspect.unwrap(function)) or "").partition("\n\n")
    found: dict[str, Any] = {
        "operationId": "_".join([method, *words]) + ("_of_job" if path.endswith("}") else ""),
        "tags": [handler.__module__.rpartition(".")[2]],
        "summary": " ".join(summary.split()),
    }
    if more:
        found["description"] = more.strip()
    inputs = inputs_of(handler, method) if answer is not None else Inputs()
    parameters = [
        {"name": name, "in": "path", "required": True, "description": describe(name, path),
         "schema": {"type": "string"}, "example": "digits-20261120-7f3a"}
        for name in re.findall(r"{(\w+)}", path)
    ]  # fmt: skip
    parameters += [
        {"name": name, "in": "query", "description": describe(name, path), "schema": schema}
        for name, schema in inputs.query.items()
    ]
    parameters += [
        {"name": name, "in": "header", "description": describe(name, path),
         "schema": {"type": "string"}}
        for name in (answer.request_headers if answer is not None else ())
    ]  # fmt: skip
    if parameters:
        found["parameters"] = parameters
    if answer is not None and answer.body is not None:
        body = _reference(answer.body)
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    elif answer is not None and answer.form is not None:
        content = {"multipart/form-data": {"schema": _reference(answer.form)}}
        found["requestBody"] = {"required": True, "content": content}
    elif inputs.body:
        fields = {
            name: {**schema, "description": describe(name, path)}
            for name, schema in inputs.body.items()
        }
        schema = {"type": "object", "properties": fields}
        found["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    found["responses"] = {
        **_response(answer),
        "default": _error(answer),
    }
    return found


def _error(answer: Answer | None) -> dict[str, Any]:
    if answer is None:
        return {"description": "The websocket was refused; the body has no defined form."}
    content = {"application/json": {"schema": _reference(ErrorBodyJson)}}
    return {"description": "An error.", "content": content}


def _response(answer: Answer | None) -> dict[str, Any]:
    if answer is None:
        return {"101": {"description": "The websocket is open."}}
    description = {200: "The answer.", 201: "It was created.", 202: "It was accepted."}
    found: dict[str, Any] = {"description": description[answer.status]}
    if answer.headers:
        found["headers"] = {key: {"schema": {"type": "string"}} for key in answer.headers}
    schema: dict[str, Any]
    if len(answer.types) > 1:
        # One JSON value in each line.
        schema = {"oneOf": [_reference(one) for one in answer.types]}
    else:
        schema = _reference(answer.types[0]) if answer.types else {"type": "string"}
    found["content"] = {answer.content_type.partition(";")[0]: {"schema": schema}}
    return {str(answer.status): found}


def component(name: str) -> str:
    """Return the name of a type in the document."""
    return name.removesuffix("Json")


def _reference(declared: type) -> dict[str, str]:
    return {"$ref": REFERENCE.format(name=component(declared.__name__))}


def _schemas(types: set[type]) -> dict[str, Any]:
    """Return the schemas of all types, and those of the job record."""
    template = REFERENCE.format(name="{name}")
    _, own = msgspec.json.schema_components(
        sorted(types, key=lambda one: one.__name__), ref_template=template
    )
    found = {component(name): schema for name, schema in own.items()}
    for schema in found.values():
        schema["title"] = component(schema["title"])
        schema["description"] = inspect.cleandoc(schema["description"])
        for value in schema["properties"].values():
            for one in (value, value.get("items", {})):
                # A record is a dict in Python; its schema says so itself.
                if "$ref" in one:
                    one.pop("type", None)
    found |= record_schema.schema()["$defs"]
    text = json.dumps(dict(sorted(found.items())))
    text = text.replace("#/$defs/", REFERENCE.format(name=""))
    return dict(json.loads(re.sub(r'(#/components/schemas/\w+?)Json"', r'\1"', text)))


def content() -> str:
    """Return the text of the file."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(content(), encoding="utf-8")
