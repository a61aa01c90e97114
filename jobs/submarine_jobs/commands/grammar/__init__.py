"""Parse and run command lines: verbs, groups, shared options, usage errors, completion."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.commands.grammar.cell_body import (
        CellBody as CellBody,
        CellVerb as CellVerb,
        complete_below as complete_below,
        explain_below as explain_below,
    )
    from submarine_jobs.commands.grammar.execution import (
        complete as complete,
        execute as execute,
    )
    from submarine_jobs.commands.grammar.groups import verb_group as verb_group
    from submarine_jobs.commands.grammar.ownership import (
        ask_if_foreign as ask_if_foreign,
        owner_as_known as owner_as_known,
        say_if_foreign as say_if_foreign,
    )
    from submarine_jobs.commands.grammar.shared_options import (
        backend_option as backend_option,
        complete_jobs as complete_jobs,
        complete_programs as complete_programs,
        complete_queues as complete_queues,
        duration_option as duration_option,
        job_argument as job_argument,
        jobs_argument as jobs_argument,
        parameters_option as parameters_option,
        profile_option as profile_option,
        program_argument as program_argument,
        remember_queues as remember_queues,
    )
    from submarine_jobs.commands.grammar.usage import (
        as_sentence as as_sentence,
        of_this_machine as of_this_machine,
        printable as printable,
    )
    from submarine_jobs.commands.grammar.verb import (
        AS_JSON as AS_JSON,
        CONTEXT as CONTEXT,
        TYPED as TYPED,
        Callback as Callback,
        ParsedType as ParsedType,
        Verb as Verb,
        normal as normal,
        option as option,
        spelled as spelled,
    )
    from submarine_jobs.commands.grammar.verbs import grammar as grammar, plugins as plugins
    from submarine_jobs.commands.grammar.waiting import wait_for as wait_for
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "cell_body": ("CellBody", "CellVerb", "complete_below", "explain_below"),
            "execution": ("complete", "execute"),
            "groups": ("verb_group",),
            "ownership": ("ask_if_foreign", "owner_as_known", "say_if_foreign"),
            "shared_options": (
                "backend_option",
                "complete_jobs",
                "complete_programs",
                "complete_queues",
                "duration_option",
                "job_argument",
                "jobs_argument",
                "parameters_option",
                "profile_option",
                "program_argument",
                "remember_queues",
            ),
            "usage": ("as_sentence", "of_this_machine", "printable"),
            "verb": (
                "AS_JSON",
                "CONTEXT",
                "Callback",
                "ParsedType",
                "TYPED",
                "Verb",
                "normal",
                "option",
                "spelled",
            ),
            "verbs": ("grammar", "plugins"),
            "waiting": ("wait_for",),
        },
    )
