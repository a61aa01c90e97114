"""Write the JSON schema of the job record, and its types in TypeScript.

Usage: python scripts/record_schema.py. The source is the declaration in
`submarine_runtime.protocol.record`. `tests/unit/project/test_record_schema.py` checks that the
files are current.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import msgspec

from submarine_runtime.protocol import EndReason, JobRecord

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = ROOT / "docs" / "record.schema.json"
TYPES = ROOT / "labextension" / "src" / "api" / "record_schema.ts"
_HEADER = """\
/**
 * The job record. Written by `python scripts/record_schema.py` from its declaration in Python;
 * do not edit.
 */
"""
_PLAIN = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def schema() -> dict[str, Any]:
    """Return the JSON schema; each class is a definition."""
    found = msgspec.json.schema(JobRecord)
    definitions = found["$defs"]
    for definition in definitions.values():
        if "description" in definition:
            definition["description"] = inspect.cleandoc(definition["description"])
        # msgspec states these since 0.23 only; the files shall not depend on its version.
        for value in definition.get("properties", {}).values():
            if value.get("default") in ([], {}):
                del value["default"]
    # A newer version may add a reason.
    reason = definitions["EndReason"]
    reason.update({"type": "string", "examples": [one.value for one in EndReason]})
    del reason["enum"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Job record of Submarine for notebooks",
        **found,
    }


def typescript(definitions: dict[str, Any]) -> str:
    """Return the definitions as TypeScript."""
    blocks = [_HEADER]
    for name, definition in definitions.items():
        lines = [f" * {line}".rstrip() for line in definition.get("description", "").splitlines()]
        comment = "\n".join(["/**", *lines, " */\n"]) if lines else ""
        if "properties" in definition:
            fields = [
                f"  {field}: {_type(value)};\n" for field, value in definition["properties"].items()
            ]
            blocks.append(f"{comment}export interface I{name} {{\n{''.join(fields)}}}\n")
        elif "enum" in definition:
            members = "".join(f"\n  | '{value}'" for value in definition["enum"])
            blocks.append(f"{comment}export type {name} ={members};\n")
    return "\n".join(blocks)


def _type(value: dict[str, Any]) -> str:
    """Return the TypeScript type of a field's schema."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return {"EndReason": "string", "State": "State"}.get(name, f"I{name}")
    if "anyOf" in value:
        return " | ".join(_type(option) for option in value["anyOf"])
    if value.get("type") == "array":
        return f"{_type(value['items'])}[]"
    if value.get("type") == "object":
        items = value.get("additionalProperties")
        return f"Record<string, {_type(items) if items else 'unknown'}>"
    return _PLAIN[value["type"]] if "type" in value else "unknown"


def files() -> dict[Path, str]:
    """Return the content of each generated file."""
    found = schema()
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    return {SCHEMA: text, TYPES: typescript(found["$defs"])}


if __name__ == "__main__":
    for path, content in files().items():
        path.write_text(content, encoding="utf-8")
