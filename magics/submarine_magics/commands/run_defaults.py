"""Default options of each ``%submarine run``, from the kernelspec or from a headless run.

``{"gpu": 1, "memory": "8G", "queue": "ml"}`` has the options of ``run`` by name. A typed option
replaces the default of the same option. The kernel reads the kernelspec and calls ``set_defaults``.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from submarine_jobs.commands import grammar
from submarine_jobs.errors import ConfigError
from submarine_runtime.translation import _

if TYPE_CHECKING:
    import click
    from IPython.core.interactiveshell import InteractiveShell

#: Parameters of ``run`` that cannot have a default.
_EXCLUDED = ("target", "name", "program", "args", "as_json")
_SIZES = ("memory", "vcores", "gpus")
_WHOLE_SIZE = "worker_resources"
_defaults: weakref.WeakKeyDictionary[InteractiveShell, tuple[Mapping[str, Any], str, str]] = (
    weakref.WeakKeyDictionary()
)


def set_defaults(
    shell: InteractiveShell, defaults: Mapping[str, Any], source: str, problem: str = ""
) -> None:
    """Set the default options of each ``%submarine run`` of this shell.

    Parameters
    ----------
    source
        Where the defaults come from, for error messages.
    problem
        Why the defaults could not be read; empty if they were. Each ``run`` is then rejected,
        because the job could go to another cluster or queue than the kernelspec names.
    """
    _defaults[shell] = (dict(defaults), source, problem)


def with_defaults(words: list[str], shell: InteractiveShell) -> list[str]:
    """Return the words of a command, with the shell's defaults for ``run`` and ``predict``.

    Raises
    ------
    ConfigError
        If a default is not an option of ``run``, or cannot have a default.
    """
    defaults, source, problem = _defaults.get(shell, ({}, "", ""))
    if words[:1] not in (["run"], ["predict"]) or {"--help", "-h"}.intersection(words):
        return words
    if problem:
        raise ConfigError(problem, _("Correct it and restart the kernel."))
    if not defaults:
        return words
    applied = applicable(defaults, words[0])
    return [words[0], *default_words(applied, words[1:], source), *words[1:]]


def applicable(defaults: Mapping[str, Any], verb: str) -> Mapping[str, Any]:
    """Return the defaults that a verb has options for: ``predict`` has not all those of ``run``."""
    if verb != "predict":
        return defaults
    # cost: as in `spellings`.
    from submarine_jobs.commands.predict import predict

    known, own = spellings(), {param.name for param in predict.params}
    found = {name: known.get("--" + grammar.normal(str(name))) for name in defaults}
    # `default_words` rejects an unknown name.
    return {
        name: value
        for name, value in defaults.items()
        if (param := found[name]) is None or param.name in own - {"inputs"}
    }


def default_words(defaults: Mapping[str, Any], typed: list[str], source: str) -> list[str]:
    """Return the defaults as words, without the options that are typed."""
    by_spelling = spellings()
    params = {name: option_named(str(name), source, by_spelling) for name in defaults}
    before = typed[: typed.index("--")] if "--" in typed else typed
    given = {key_of(by_spelling.get(grammar.normal(word.partition("=")[0]))) for word in before}
    if _WHOLE_SIZE in given:
        given.update(_SIZES)
    words: list[str] = []
    for name, value in defaults.items():
        if key_of(params[name]) not in given:
            words += _to_words(params[name], name, value, source)
    return words


def option_named(
    name: str, source: str, by_spelling: Mapping[str, click.Parameter]
) -> click.Parameter:
    """Return the option with this name, which must be valid for several jobs.

    Parameters
    ----------
    by_spelling
        The result of ``spellings``.

    Raises
    ------
    ConfigError
        If there is no such option.
    """
    param = by_spelling.get("--" + grammar.normal(name))
    if param is None or key_of(param) in _EXCLUDED:
        raise _unknown_option(name, source, by_spelling)
    return param


def spellings() -> Mapping[str, click.Parameter]:
    """Return the options of ``run`` by each spelling, normalized by ``verb.normal``."""
    # cost: the options of `run`, with click; a kernel imports this module at its start.
    from submarine_jobs.commands.run import run

    return {grammar.normal(name): param for param in run.params for name in param.opts}


def key_of(param: click.Parameter | None) -> str:
    """Return the parameter name of an option; empty for None."""
    return (param.name or "") if param is not None else ""


def _to_words(param: click.Parameter, name: str, value: Any, source: str) -> Iterator[str]:
    option = "--" + name
    if getattr(param, "is_flag", False):
        if not isinstance(value, bool):
            raise ConfigError(
                _("{source}: {name} must be true or false.").format(source=source, name=name)
            )
        if value:
            yield option
        return
    several = value if isinstance(value, list) else [value]
    if isinstance(value, dict):
        several = [f"{key}={one}" for key, one in value.items()]
    for one in several:
        if isinstance(one, bool) or not isinstance(one, str | int | float):
            raise ConfigError(
                _("{source}: {name} must be a string or a number.").format(source=source, name=name)
            )
        yield f"{option}={one}"


def _unknown_option(name: str, source: str, known: Mapping[str, Any]) -> ConfigError:
    # cost: difflib, for this message only.
    import difflib

    fit = [spelling for spelling, param in known.items() if key_of(param) not in _EXCLUDED]
    close = difflib.get_close_matches("--" + name, fit, 1, 0.6)
    hint = (
        _("Did you mean {close}?").format(close=close[0][2:])
        if close
        else _("%submarine help run lists them.")
    )
    return ConfigError(
        _("{source}: {name!r} is not an option that can be set here.").format(
            source=source, name=name[:60]
        ),
        hint,
    )
