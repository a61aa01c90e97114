"""Read a note from a file in Zeppelin's format, ``.zpln`` or the older ``note.json``.

The contents of the file are untrusted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _
from submarine_zeppelin.interface import NoteParagraph
from submarine_zeppelin.notes.form_templates import FormRun, expand_simple
from submarine_zeppelin.notes.note import (
    GROUP,
    InterpreterNames,
    Paragraph,
    parse_header,
    read_note,
)

_MAX_SIZE = 64 << 20


class NoteFile(NamedTuple):
    """Id, name and paragraphs of a note."""

    note_id: str
    name: str
    paragraphs: list[Paragraph]


def read_note_file(path: Path) -> NoteFile:
    """Read the note in a file.

    Raises
    ------
    UsageError
        If the file cannot be read or is not a note.
    """
    try:
        if path.stat().st_size > _MAX_SIZE:
            raise UsageError(
                _("{path} is larger than {max_size} MiB.").format(
                    path=path, max_size=_MAX_SIZE >> 20
                ),
                _("Clear its outputs."),
            )
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(
            _("{path} cannot be read: {strerror}.").format(
                path=path, strerror=error.strerror or error
            )
        ) from None
    except (ValueError, RecursionError):
        raise _format_error(path) from None
    listed = document.get("paragraphs") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise _format_error(path)
    note_id = _text(document.get("id")) or path.stem
    names = InterpreterNames(bare=_text(document.get("defaultInterpreterGroup")) == GROUP)
    saved = [one for one in listed if isinstance(one, dict)]
    paragraphs = [
        NoteParagraph(
            note_id,
            _text(one.get("id")) or f"paragraph-{number}",
            _text(one.get("title")),
            _text(one.get("text")),
        )
        for number, one in enumerate(saved, start=1)
    ]
    name = _text(document.get("name")) or path.stem
    note_params = _object(document.get("noteParams"))
    runs = {
        (note_id, paragraph.paragraph_id): _form_run(paragraph, one, note_params)
        for paragraph, one in zip(paragraphs, saved, strict=True)
    }
    return NoteFile(note_id, name, read_note(paragraphs, names, runs.get))


def _form_run(
    paragraph: NoteParagraph, saved: Mapping[str, Any], note_params: Mapping[str, Any]
) -> FormRun:
    """Return the saved values of a paragraph's forms, and the text that Zeppelin would send."""
    params = _object(_object(saved.get("settings")).get("params"))
    body = parse_header(paragraph.text).body
    return FormRun(params, body, expand_simple(body, params, note_params))


def _format_error(path: Path) -> UsageError:
    return UsageError(
        _("{path} is not a Zeppelin note.").format(path=path),
        _("Use a .zpln file, or export the note."),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
