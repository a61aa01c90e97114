"""Notes of Zeppelin: paragraphs, export, legacy formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.notes.command_lines import (
        body_of as body_of,
        lines_of as lines_of,
        plain as plain,
        words_of as words_of,
    )
    from submarine_zeppelin.notes.note import (
        Paragraph as Paragraph,
        check_options as check_options,
        collect as collect,
        note_raised as note_raised,
        read_note as read_note,
        spellings_of as spellings_of,
    )
    from submarine_zeppelin.notes.note_file import read_note_file as read_note_file
    from submarine_zeppelin.notes.note_folder import (
        NOTEBOOK as NOTEBOOK,
        folder_of_note as folder_of_note,
        keep as keep,
        stem_of as stem_of,
    )
    from submarine_zeppelin.notes.notebook_export import (
        check_replaceable as check_replaceable,
        export as export,
    )
    from submarine_zeppelin.notes.wording import (
        OWNERS as OWNERS,
        STANDS_STILL as STANDS_STILL,
        help_in_note as help_in_note,
        in_note as in_note,
        sentence as sentence,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "command_lines": ("body_of", "lines_of", "plain", "words_of"),
            "note": (
                "Paragraph",
                "check_options",
                "collect",
                "note_raised",
                "read_note",
                "spellings_of",
            ),
            "note_file": ("read_note_file",),
            "note_folder": ("NOTEBOOK", "folder_of_note", "keep", "stem_of"),
            "notebook_export": ("check_replaceable", "export"),
            "wording": ("OWNERS", "STANDS_STILL", "help_in_note", "in_note", "sentence"),
        },
    )
