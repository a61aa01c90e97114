"""Options that a headless run adds to commands: job options, ``--wait``, ``--on-interrupt``.

Commands of an interactive session are not changed. The grammar of ``run`` validates the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from submarine_jobs.commands.grammar import normal
from submarine_jobs.errors import UsageError
from submarine_jobs.model import parse_resources
from submarine_magics.commands.run_defaults import applicable, default_words, key_of, spellings
from submarine_magics.execution import headless_settings
from submarine_runtime.translation import _

if TYPE_CHECKING:
    import click
    from IPython.core.interactiveshell import InteractiveShell

_SOURCE = _("The job options of this run")
_SUBMITTING = ("run", "rerun", "predict")
_OPTION = {"memory": "memory", "vcores": "vcores", "gpus": "gpu"}
_SIZES = tuple(_OPTION)
_WHOLE_SIZE = "worker_resources"


def with_headless_options(words: list[str], shell: InteractiveShell) -> list[str]:
    """Return the words of a command with the options of the headless run, if there is one.

    Raises
    ------
    ConfigError
        If an option of the run is not an option of a job.
    """
    verb, rest = words[:1], words[1:]
    headless = headless_settings(shell)
    if headless is None or not {"wait", *_SUBMITTING}.intersection(verb):
        return words
    if {"--help", "-h"}.intersection(rest):
        return words
    if verb in (["run"], ["predict"]) and headless.job_options:
        rest = override_options(applicable(headless.job_options, verb[0]), rest)
    # The last occurrence of an option takes effect, so the typed options come after these.
    added = ["--on-interrupt", "detach" if headless.on_interrupt == "detach" else "cancel"]
    if verb != ["wait"] and not headless.barrier:
        added.insert(0, "--wait")
    return [*verb, *added, *rest]


def override_options(options: Mapping[str, Any], typed: list[str]) -> list[str]:
    """Return the words after ``run``, with ``options`` in place of the same typed options."""
    values = {name: _as_flag(name, value) for name, value in options.items()}
    words = default_words(values, [], _SOURCE)
    given = {(key_of(param), _pair(param, value)) for param, value, _ in _options(words)}
    # A flag with the value false has no word.
    given.update((key_of(_param(name)), "") for name, value in values.items() if value is False)
    keys = {key for key, _ in given}
    if _WHOLE_SIZE in keys:
        given.update((size, "") for size in _SIZES)
    if keys.intersection(_SIZES):
        typed = _split_sizes(typed)
    cut = typed.index("--") if "--" in typed else len(typed)
    kept = [
        word
        for param, value, group in _options(typed[:cut])
        if (key_of(param), _pair(param, value)) not in given
        for word in group
    ]
    return [*words, *kept, *typed[cut:]]


def _options(words: list[str]) -> Iterator[tuple[click.Parameter | None, str, list[str]]]:
    """Yield each option with its value and its words; other words have None as the option."""
    known = spellings()
    position = 0
    while position < len(words):
        word = words[position]
        name, equals, value = word.partition("=")
        param = known.get(normal(name)) if word.startswith("-") else None
        group = [word]
        takes_next = param is not None and not equals and not getattr(param, "is_flag", False)
        if takes_next and position + 1 < len(words):
            value = words[position + 1]
            group.append(value)
        yield param, value, group
        position += len(group)


def _pair(param: click.Parameter | None, value: str) -> str:
    """Return the name in the ``NAME=VALUE`` of a repeatable option; empty for other options."""
    return (
        value.partition("=")[0] if param is not None and getattr(param, "multiple", False) else ""
    )


def _split_sizes(typed: list[str]) -> list[str]:
    """Split ``--worker_resources memory=8G,gpu=2`` into options that can be replaced separately."""
    found: list[str] = []
    cut = typed.index("--") if "--" in typed else len(typed)
    for param, value, group in _options(typed[:cut]):
        if key_of(param) == _WHOLE_SIZE:
            try:
                amounts = parse_resources(value)
            except UsageError:
                amounts = {}  # The grammar of `run` reports the error.
            group = [f"--{_OPTION[key]}={n}" for key, n in amounts.items()] or group
        found += group
    return [*found, *typed[cut:]]


def _as_flag(name: str, value: Any) -> Any:
    """Convert the strings ``true`` and ``false`` of a flag to booleans."""
    if getattr(_param(name), "is_flag", False) and isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    return value


def _param(name: str) -> click.Parameter | None:
    return spellings().get("--" + normal(str(name)))
