"""Fill ``%input_path% %checkpoint_path% %saved_model_path%`` in, as Apache Submarine did.

They are replaced in the launch command, the arguments and the environment. Any other ``%word%`` is
left alone: it may be a date format or a shell's own. ``%input_path%`` of an input that is fetched
(``--input``) stays as well: only the agent knows the place in its container, and fills it in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from submarine_jobs.errors import UsageError
from submarine_jobs.model.spec import JobSpec, Role

#: What a shell does not leave as it is, apart from patterns of file names.
_SHELL = re.compile(r"[\s`$;&|<>()'\"\\{}\x00-\x1f\x7f]|^[~#]")
NAMES = ("input_path", "checkpoint_path", "saved_model_path")


def fill(text: str, values: Mapping[str, str | None]) -> str:
    """Replace the placeholders in ``text``.

    Raises
    ------
    UsageError
        If a placeholder is used whose option was not given.
    """
    for name, value in values.items():
        mark = f"%{name}%"
        if mark not in text:
            continue
        if value is None:
            raise UsageError(f"{mark} is used but --{name} is not given.", f"Add --{name} URI.")
        text = text.replace(mark, value)
    return text


def fill_spec(spec: JobSpec) -> JobSpec:
    """The spec with every placeholder replaced; ``passed_on`` names those that were used."""
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
    """A command with its placeholders replaced by values that its shell leaves as they are.

    Raises
    ------
    UsageError
        If a value has a character that the shell acts on.
    """
    fetched = {item.name: item.uri for item in spec.inputs}.get(fetched_input(spec) or "")
    for name in NAMES:
        value = fetched if name == "input_path" and fetched else values[name]
        if f"%{name}%" in command and value and (found := _SHELL.search(value)):
            raise UsageError(
                f"The value of %{name}% has {found[0]!r}, on which the shell of the command acts.",
                "Give a path without it, or read it from a variable of --env in the program.",
            )
    return fill(command, values)


def fetched_input(spec: JobSpec) -> str | None:
    """Name of the fetched input that ``%input_path%`` means; None if it means the plain URI.

    The one called PATH, else that of the same URI as ``--input_path``, else, where there is no
    ``--input_path``, the first.
    """
    if any(item.name == "PATH" for item in spec.inputs):
        return "PATH"
    for item in spec.inputs:
        if spec.input_path in (None, item.uri):
            return item.name
    return None


def _filled(env: Mapping[str, str], values: Mapping[str, str | None]) -> dict[str, str]:
    return {key: fill(value, values) for key, value in env.items()}
