"""The words of a command as a headless run means them: job options, waiting, interrupts.

What is typed stays as it is where a person may look on. Does not parse values: the grammar does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from submarine_magics.commands.run_defaults import default_words, key_of, spellings
from submarine_magics.execution import headless_of

if TYPE_CHECKING:
    import click
    from IPython.core.interactiveshell import InteractiveShell

_SOURCE = "The job options of this run"
_STARTING = ("run", "rerun")
_OPTION = {"memory": "memory", "vcores": "vcores", "gpus": "gpu"}
_SIZES = tuple(_OPTION)
_WHOLE_SIZE = "worker_resources"


def headless_words(words: list[str], shell: InteractiveShell) -> list[str]:
    """``words`` where somebody looks on; else with what the runner wants of each command.

    Raises
    ------
    ConfigError
        If an option of the runner is none that a job can be given.
    """
    verb, rest = words[:1], words[1:]
    headless = headless_of(shell)
    if headless is None or not {"wait", *_STARTING}.intersection(verb):
        return words
    if {"--help", "-h"}.intersection(rest):
        return words
    if verb == ["run"] and headless.job_options:
        rest = imposed(headless.job_options, rest)
    # The last word wins, so that what is typed goes before this.
    usual = ["--on-interrupt", "detach" if headless.on_interrupt == "detach" else "cancel"]
    if verb != ["wait"] and not headless.barrier:
        usual.insert(0, "--wait")
    return [*verb, *usual, *rest]


def imposed(options: Mapping[str, Any], typed: list[str]) -> list[str]:
    """What is typed after ``run``, with ``options`` in the place of the same ones."""
    written = {name: _as_flag(name, value) for name, value in options.items()}
    words = default_words(written, [], _SOURCE)
    said = {(key_of(param), _pair(param, value)) for param, value, _ in _options(words)}
    # A flag that is not to be set leaves no word behind.
    said.update((key_of(_param(name)), "") for name, value in written.items() if value is False)
    keys = {key for key, _ in said}
    if _WHOLE_SIZE in keys:
        said.update((size, "") for size in _SIZES)
    if keys.intersection(_SIZES):
        typed = _in_parts(typed)
    cut = typed.index("--") if "--" in typed else len(typed)
    kept = [
        word
        for param, value, group in _options(typed[:cut])
        if (key_of(param), _pair(param, value)) not in said
        for word in group
    ]
    return [*words, *kept, *typed[cut:]]


def _options(words: list[str]) -> Iterator[tuple[click.Parameter | None, str, list[str]]]:
    """Each option with its value and the words that say it; None for what is no option."""
    from submarine_jobs.commands.grammar import normal

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
    """What tells one use of a repeatable option from another: the name in ``NAME=VALUE``."""
    return (
        value.partition("=")[0] if param is not None and getattr(param, "multiple", False) else ""
    )


def _in_parts(typed: list[str]) -> list[str]:
    """``--worker_resources memory=8G,gpu=2`` as single options, each of which may be replaced."""
    from submarine_jobs.errors import UsageError
    from submarine_jobs.model import parse_resources

    found: list[str] = []
    cut = typed.index("--") if "--" in typed else len(typed)
    for param, value, group in _options(typed[:cut]):
        if key_of(param) == _WHOLE_SIZE:
            try:
                amounts = parse_resources(value)
            except UsageError:
                amounts = {}  # the grammar says what is wrong with it
            group = [f"--{_OPTION[key]}={n}" for key, n in amounts.items()] or group
        found += group
    return [*found, *typed[cut:]]


def _as_flag(name: str, value: Any) -> Any:
    """``true`` of a command line where the option takes no value."""
    if getattr(_param(name), "is_flag", False) and isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    return value


def _param(name: str) -> click.Parameter | None:
    from submarine_jobs.commands.grammar import normal

    return spellings().get("--" + normal(str(name)))
