"""Notes as programs: paragraphs, command lines, notebook export, wording of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.notes.command_lines import (
        normalize_newlines as normalize_newlines,
        parse_cell_verb as parse_cell_verb,
        split_commands as split_commands,
        split_words as split_words,
    )
    from submarine_zeppelin.notes.note import (
        Paragraph as Paragraph,
        build_note_bundle as build_note_bundle,
        check_options as check_options,
        collect_cells as collect_cells,
        interpreter_names as interpreter_names,
        mark_raised as mark_raised,
        other_python_cells as other_python_cells,
        read_note as read_note,
        record_exception as record_exception,
        shell_files as shell_files,
    )
    from submarine_zeppelin.notes.note_file import read_note_file as read_note_file
    from submarine_zeppelin.notes.note_folder import (
        NOTEBOOK as NOTEBOOK,
        note_directory as note_directory,
        notebook_stem as notebook_stem,
        write_notebook as write_notebook,
    )
    from submarine_zeppelin.notes.notebook_export import (
        check_replaceable as check_replaceable,
        export_notebook as export_notebook,
    )
    from submarine_zeppelin.notes.wording import (
        PAUSED_NOTICE as PAUSED_NOTICE,
        TERMINAL_VERBS as TERMINAL_VERBS,
        error_text as error_text,
        reword as reword,
        reword_help as reword_help,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "command_lines": (
                "normalize_newlines",
                "parse_cell_verb",
                "split_commands",
                "split_words",
            ),
            "note": (
                "Paragraph",
                "build_note_bundle",
                "check_options",
                "collect_cells",
                "interpreter_names",
                "mark_raised",
                "other_python_cells",
                "read_note",
                "record_exception",
                "shell_files",
            ),
            "note_file": ("read_note_file",),
            "note_folder": ("NOTEBOOK", "note_directory", "notebook_stem", "write_notebook"),
            "notebook_export": ("check_replaceable", "export_notebook"),
            "wording": ("PAUSED_NOTICE", "TERMINAL_VERBS", "error_text", "reword", "reword_help"),
        },
    )
