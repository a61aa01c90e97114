"""Options that a kernel gives to each ``%submarine run``, from its kernelspec.

``{"gpu": 1, "memory": "8G", "queue": "ml"}``: an option of ``run`` by its name. What is typed takes
the place of the default of the same option. Does not read the kernelspec: the kernel does.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from submarine_jobs.errors import ConfigError

if TYPE_CHECKING:
    import click
    from IPython.core.interactiveshell import InteractiveShell

#: What a kernel cannot decide for all of its jobs.
_NOT_HERE = ("target", "name", "program", "args_text", "as_json")
_SIZES = ("memory", "vcores", "gpus")
_WHOLE_SIZE = "worker_resources"
_given: weakref.WeakKeyDictionary[InteractiveShell, tuple[Mapping[str, Any], str, str]] = (
    weakref.WeakKeyDictionary()
)


def set_defaults(
    shell: InteractiveShell, defaults: Mapping[str, Any], source: str, problem: str = ""
) -> None:
    """Let each ``%submarine run`` of this shell begin with ``defaults``.

    Parameters
    ----------
    source
        Where they were written, for the refusal of what makes no sense.
    problem
        Why they could not be read: each ``run`` is refused with it, since a job that goes to
        another cluster or queue than the kernel promises is worse than none.
    """
    _given[shell] = (dict(defaults), source, problem)


def with_defaults(words: list[str], shell: InteractiveShell) -> list[str]:
    """The words of a command, with the shell's defaults where the command is ``run``.

    Raises
    ------
    ConfigError
        If a default is no option of ``run``, or none that a kernel can give.
    """
    defaults, source, problem = _given.get(shell, ({}, "", ""))
    if words[:1] != ["run"] or {"--help", "-h"}.intersection(words):
        return words
    if problem:
        raise ConfigError(problem, "Put it right and restart the kernel.")
    if not defaults:
        return words
    return ["run", *default_words(defaults, words[1:], source), *words[1:]]


def default_words(defaults: Mapping[str, Any], typed: list[str], source: str) -> list[str]:
    """The defaults as words, less those whose option is typed."""
    from submarine_jobs.commands.grammar import normal

    by_spelling = spellings()
    params = {name: option_named(str(name), source, by_spelling) for name in defaults}
    before = typed[: typed.index("--")] if "--" in typed else typed
    said = {key_of(by_spelling.get(normal(word.partition("=")[0]))) for word in before}
    if _WHOLE_SIZE in said:
        said.update(_SIZES)
    words: list[str] = []
    for name, value in defaults.items():
        if key_of(params[name]) not in said:
            words += _written(params[name], name, value, source)
    return words


def option_named(
    name: str, source: str, by_spelling: Mapping[str, click.Parameter]
) -> click.Parameter:
    """An option that may be given for several jobs at once.

    Parameters
    ----------
    by_spelling
        What ``spellings`` gives.

    Raises
    ------
    ConfigError
        If it is none.
    """
    from submarine_jobs.commands.grammar import normal

    param = by_spelling.get("--" + normal(name))
    if param is None or key_of(param) in _NOT_HERE:
        raise _no_such(name, source, by_spelling)
    return param


def spellings() -> Mapping[str, click.Parameter]:
    """The options of ``run`` by each of their spellings, as ``verb.normal`` has them."""
    from submarine_jobs.commands.grammar import normal
    from submarine_jobs.commands.run import run

    return {normal(name): param for param in run.params for name in param.opts}


def key_of(param: click.Parameter | None) -> str:
    """The name under which an option's value is known; empty for what is none."""
    return (param.name or "") if param is not None else ""


def _written(param: click.Parameter, name: str, value: Any, source: str) -> Iterator[str]:
    option = "--" + name
    if getattr(param, "is_flag", False):
        if not isinstance(value, bool):
            raise ConfigError(f"{source}: {name} must be true or false.")
        if value:
            yield option
        return
    several = value if isinstance(value, list) else [value]
    if isinstance(value, dict):
        several = [f"{key}={one}" for key, one in value.items()]
    for one in several:
        if isinstance(one, bool) or not isinstance(one, str | int | float):
            raise ConfigError(f"{source}: {name} must be a text or a number.")
        yield f"{option}={one}"


def _no_such(name: str, source: str, known: Mapping[str, Any]) -> ConfigError:
    import difflib

    fit = [spelling for spelling, param in known.items() if key_of(param) not in _NOT_HERE]
    close = difflib.get_close_matches("--" + name, fit, 1, 0.6)
    hint = f"Did you mean {close[0][2:]}?" if close else "%submarine help run lists them."
    return ConfigError(f"{source}: {name[:60]!r} is no option that can be given here.", hint)
