"""``metadata.submarine`` of a kernelspec, from ``--set`` and ``--default`` of ``kernel install``.

What may be in it is judged by ``own_spec`` and by the grammar of ``run``; writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_kernel.kernelspecs.settings import own_spec


def told_settings(settings: Sequence[str], defaults: Sequence[str]) -> dict[str, Any]:
    """``metadata.submarine`` for what was typed.

    Parameters
    ----------
    settings, defaults
        Words ``NAME=VALUE`` of ``--set`` and of ``--default``.

    Raises
    ------
    UsageError
        If the kernel, or ``%submarine run``, would refuse one.
    """
    from submarine_jobs.commands.run import parse_run
    from submarine_magics.commands import default_words

    told: dict[str, Any] = _pairs("--set", settings)
    run: dict[str, Any] = {
        key: {"true": True, "false": False}.get(value.lower(), value)
        for key, value in _pairs("--default", defaults).items()
    }
    if run:
        parse_run(default_words(run, [], "--default"))
        told["run"] = run
    problem = own_spec(told, "--set").problem
    if problem:
        raise UsageError(problem)
    return told


def _pairs(option: str, words: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option}: {word[:60]!r} is not NAME=VALUE.")
        pairs[name.strip()] = value
    return pairs
