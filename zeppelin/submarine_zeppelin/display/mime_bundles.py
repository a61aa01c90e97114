"""Convert display data of kernels and commands to the output types of Zeppelin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from submarine_jobs.display import TABLE_MIME_TYPE
from submarine_runtime.translation import _
from submarine_zeppelin.interface import Kind


def convert_mime_bundle(data: Mapping[str, Any]) -> list[tuple[Kind, str]]:
    """Convert a MIME bundle to the output types that Zeppelin shows best."""
    table = data.get(TABLE_MIME_TYPE)
    if isinstance(table, dict) and isinstance(table.get("table"), str):
        messages = [(Kind.TABLE, table["table"])]
        if isinstance(table.get("head"), str):
            messages.insert(0, (Kind.TEXT, table["head"] + "\n"))
        if table.get("rows") != table.get("shown"):
            messages.append(
                (
                    Kind.TEXT,
                    _("The first {shown:,} of {rows:,} rows.").format(
                        shown=table.get("shown"), rows=table.get("rows")
                    ),
                )
            )
        return messages
    if isinstance(data.get("image/png"), str):
        return [(Kind.IMG, data["image/png"].replace("\n", ""))]
    if isinstance(data.get("image/jpeg"), str):
        picture = data["image/jpeg"].replace("\n", "")
        return [(Kind.HTML, f'<img src="data:image/jpeg;base64,{picture}">')]
    for kind in ("text/html", "image/svg+xml"):
        if isinstance(data.get(kind), str):
            return [(Kind.HTML, data[kind])]
    plain = data.get("text/plain")
    return [(Kind.TEXT, plain)] if isinstance(plain, str) else []
