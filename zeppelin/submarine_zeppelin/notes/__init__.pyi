from .command_lines import (
    parse_cell_verb as parse_cell_verb,
    split_commands as split_commands,
    split_words as split_words,
)
from .form_templates import (
    SIMPLE as SIMPLE,
    FormRun as FormRun,
    expand_text as expand_text,
    find_templates as find_templates,
    templates_of as templates_of,
)
from .legacy import (
    ACTIONS as ACTIONS,
    CLEAN as CLEAN,
    DASHBOARD as DASHBOARD,
    JOB_RUN as JOB_RUN,
    JOB_STOP as JOB_STOP,
    TENSORBOARD_RUN as TENSORBOARD_RUN,
    TENSORBOARD_STOP as TENSORBOARD_STOP,
    USAGE as USAGE,
    FormFields as FormFields,
    check_cleanable as check_cleanable,
    checkpoint_path as checkpoint_path,
    is_distributed as is_distributed,
    job_name as job_name,
    parse_command as parse_command,
    run_words as run_words,
    tensorboard_name as tensorboard_name,
    tensorboard_words as tensorboard_words,
    translate_command_line as translate_command_line,
)
from .note import (
    Paragraph as Paragraph,
    build_note_bundle as build_note_bundle,
    check_options as check_options,
    collect_cells as collect_cells,
    interpreter_names as interpreter_names,
    mark_raised as mark_raised,
    normalize_newlines as normalize_newlines,
    other_python_cells as other_python_cells,
    read_note as read_note,
    record_exception as record_exception,
    record_form_values as record_form_values,
    shell_files as shell_files,
)
from .note_file import read_note_file as read_note_file
from .note_folder import (
    NOTEBOOK as NOTEBOOK,
    note_directory as note_directory,
    notebook_stem as notebook_stem,
    write_notebook as write_notebook,
)
from .notebook_export import (
    check_replaceable as check_replaceable,
    export_notebook as export_notebook,
)
from .wording import (
    PAUSED_NOTICE as PAUSED_NOTICE,
    TERMINAL_VERBS as TERMINAL_VERBS,
    error_text as error_text,
    reword as reword,
    reword_help as reword_help,
)
