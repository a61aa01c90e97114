"""Replace ``%input_path% %checkpoint_path% %saved_model_path%``, as Apache Submarine does.

They are replaced in the launch command, the arguments and the environment. Any other ``%word%`` is
kept: it may be a date format or shell syntax. ``%input_path%`` of a fetched input (``--input``) is
also kept: only the agent knows the path in its container.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from submarine_jobs.errors import UsageError
from submarine_runtime.protocol import JobSpec, Role
from submarine_runtime.translation import _

#: Characters that a shell interprets, except patterns of file names.
_SHELL = re.compile(r"[\s`$;&|<>()'\"\\{}\x00-\x1f\x7f]|^[~#]")
#: Beginning of the names of inputs with the frames of ``--with``; they fill no placeholder.
FRAME_INPUT = "WITH_FRAME_"
NAMES = ("input_path", "checkpoint_path", "saved_model_path")


def fill(text: str, values: Mapping[str, str | None]) -> str:
    """Replace the placeholders in ``text``.

    Raises
    ------
    UsageError
        If the option of a used placeholder is not given.
    """
    for name, value in values.items():
        mark = f"%{name}%"
        if mark not in text:
            continue
        if value is None:
            raise UsageError(
                _("{mark} is used but --{name} is not given.").format(mark=mark, name=name),
                _("Add --{name} URI.").format(name=name),
            )
        text = text.replace(mark, value)
    return text


def fill_spec(spec: JobSpec) -> JobSpec:
    """Replace every placeholder of the spec and list the used ones in ``passed_on``."""
    values = {name: getattr(spec, name) for name in NAMES}
    if fetched_input(spec):
        values["input_path"] = "%input_path%"

    def role(item: Role) -> Role:
        command = None if item.command is None else _filled_command(item.command, spec, values)
        return replace(item, command=command, env=_filled(item.env, values))

    texts = [*spec.args, *spec.env.values()]
    for item in spec.roles:
        texts += [item.command or "", *item.env.values()]
    used = {name for name in NAMES if any(f"%{name}%" in text for text in texts)}
    return replace(
        spec,
        passed_on=tuple(name for name in NAMES if name in used.union(spec.passed_on)),
        roles=tuple(role(item) for item in spec.roles),
        args=tuple(fill(argument, values) for argument in spec.args),
        env=_filled(spec.env, values),
    )


def _filled_command(command: str, spec: JobSpec, values: Mapping[str, str | None]) -> str:
    """Replace the placeholders of a command by values that the shell does not interpret.

    Raises
    ------
    UsageError
        If a value contains a character that the shell interprets.
    """
    fetched = {item.name: item.uri for item in spec.inputs}.get(fetched_input(spec) or "")
    for name in NAMES:
        value = fetched if name == "input_path" and fetched else values[name]
        if f"%{name}%" in command and value and (found := _SHELL.search(value)):
            raise UsageError(
                _(
                    "The value of %{name}% has {found!r}, on which the shell of the command acts."
                ).format(name=name, found=found[0]),
                _("Give a path without it, or read it from a variable of --env in the program."),
            )
    return fill(command, values)


def fetched_input(spec: JobSpec) -> str | None:
    """Return the name of the fetched input for ``%input_path%``; None if it is the plain URI.

    This is the input named PATH, else the input with the URI of ``--input_path``, else, without
    ``--input_path``, the first input.
    """
    if any(item.name == "PATH" for item in spec.inputs):
        return "PATH"
    for item in spec.inputs:
        if spec.input_path in (None, item.uri) and not item.name.startswith(FRAME_INPUT):
            return item.name
    return None


def _filled(env: Mapping[str, str], values: Mapping[str, str | None]) -> dict[str, str]:
    return {key: fill(value, values) for key, value in env.items()}
