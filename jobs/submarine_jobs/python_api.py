"""``submarine_jobs.run`` and ``predict``: convert keyword arguments to arguments of the command.

The command parses the values: ``memory="8G"`` has the meaning of ``--memory 8G``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from submarine_jobs.commands.grammar import execute, grammar
from submarine_jobs.datasets import Dataset, is_frame, read_results, without_index
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.inputs import PREDICTIONS
from submarine_jobs.options import format_param, quote_value
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client import Job, Session
    from submarine_jobs.config import Config

#: Keywords with Python values that are not the text of one option.
SPECIAL = ("args", "values", "returns", "roles", "params", "inputs")


class PythonFrontend(Frontend):
    """The front end of a Python program, with a given session."""

    def __init__(self, session: Session, values: Mapping[str, Any]) -> None:
        super().__init__()
        self._session = session
        self.namespace = values

    def session(self, config: Config) -> Session:
        """Return the given session if the profile is the same."""
        if config.profile == self._session.profile:
            return self._session
        return super().session(config)


def run_from_python(session: Session, name: str, *, wait: bool, **options: Any) -> Job:
    """Submit a job described by keyword arguments; see ``submarine_jobs.run``."""
    return _submitted(session, ["run", "--name", name], options, wait=wait)


def predict_from_python(
    session: Session, model: str | None, data: Any, *, wait: bool, **options: Any
) -> Any:
    """Submit a prediction; see ``submarine_jobs.predict``."""
    for name in ("columns", "keys"):
        if (value := options.get(name)) is not None and not isinstance(value, str):
            options[name] = ",".join(value)
    command = ["predict", *([] if model is None else [model])]
    others = dict(options.pop("inputs", None) or {})
    given = {} if data is None else {"data": without_index(data)}
    frame = is_frame(data) and not options.get("output")
    if not frame:
        return _submitted(session, command, {**options, "inputs": {**given, **others}}, wait=wait)
    storage, root = session.backend(options.get("backend")).job_root()
    path = f"{root}/{PREDICTIONS}/{uuid.uuid4().hex}"
    options["output"] = storage.url(path)
    try:
        _submitted(session, command, {**options, "inputs": {**given, **others}}, wait=True)
        results = read_results(storage, path, data)
    except BaseException:
        storage.delete(path, recursive=True)
        raise
    if type(results).__module__.partition(".")[0] in ("pandas", "pyarrow"):
        storage.delete(path, recursive=True)  # Spark reads it later.
    return results


def _submitted(session: Session, command: list[str], options: dict[str, Any], *, wait: bool) -> Job:
    values = dict(options.pop("values", None) or {})
    if inputs := options.get("inputs"):
        options["inputs"] = _input_uris(session, inputs, options.get("backend"))
    words = [*command, *to_arguments(options, values, command[0])]
    if session.profile.name not in ("default", ""):
        words[1:1] = ["--profile", session.profile.name]
    outcome = execute(words, PythonFrontend(session, values))
    if outcome.job is None:
        raise UsageError(
            _("The options ask for no job."), _("Leave dry_run and help to the shell.")
        )
    if wait:
        outcome.job.wait_success()
    return outcome.job


def _input_uris(session: Session, inputs: Mapping[str, Any], backend: str | None) -> dict[str, str]:
    """Return the URI of each input; upload a frame or arrays, unless the cluster has them.

    A text is a URI, as on the command line.
    """
    uris: dict[str, str] = {}
    for name, value in inputs.items():
        if isinstance(value, Dataset):
            uris[name] = value.uri
        elif isinstance(value, str):
            uris[name] = value
        else:
            uris[name] = session.put_data(None, value, backend=backend).uri
    return uris


def to_arguments(
    options: Mapping[str, Any], values: Mapping[str, Any], verb: str = "run"
) -> list[str]:
    """Return the command-line arguments for ``options``."""
    known = known_options(verb)
    words: list[str] = []
    for key, value in options.items():
        if key in SPECIAL:
            continue
        # The command rejects an unknown keyword with an error message.
        words += _option_arguments(
            _spelling(known[key], key) if key in known else f"--{key}", value
        )
    for name, role in (options.get("roles") or {}).items():
        words += ["--role", role_text(name, role)]
    for name, value in (options.get("params") or {}).items():
        # Quoted if the value is a string: "0.1" stays a string.
        words += ["--param", format_param(name, value)]
    for name, uri in (options.get("inputs") or {}).items():
        words += ["--input", f"{name}={uri}"]
    if values:
        words += ["--with", ",".join(values)]
    if names := options.get("returns"):
        words += ["--return", names if isinstance(names, str) else ",".join(names)]
    if arguments := options.get("args"):
        given = [arguments] if isinstance(arguments, str) else arguments
        words += ["--", *map(str, given)]
    return words


def role_text(name: str, role: Any) -> str:
    """Return the text of ``--role`` for 2 or ``{"instances": 2, "memory": "4G"}``.

    The keys are the words of ``--role``, with ``_`` for ``-``; a list repeats its word.

    Raises
    ------
    UsageError
        If the value is neither a number nor a mapping.
    """
    if isinstance(role, Mapping):
        parts = dict(role)
        count = parts.pop("instances", None)
        words = [name if count is None else f"{name}={count}"]
        for key, value in parts.items():
            words += _role_arguments(key.replace("_", "-"), value)
        return ",".join(words)
    if isinstance(role, bool) or not isinstance(role, int):
        raise UsageError(
            _("roles: {name!r} is {role!r:.40}, neither a number nor a dict.").format(
                name=name, role=role
            ),
            _('Write roles={"reader": 2} or roles={"reader": {"instances": 2, "memory": "4G"}}.'),
        )
    return f"{name}={role}"


def _role_arguments(word: str, value: Any) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return [word]
    if isinstance(value, Mapping):
        value = [f"{key}={item}" for key, item in value.items()]
    if isinstance(value, str) or not isinstance(value, Iterable):
        value = [value]
    return [f"{word}={quote_value(str(item))}" for item in value]


def _option_arguments(option: str, value: Any) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return [option]
    if isinstance(value, Mapping):
        return [f"{option}={key}={item}" for key, item in value.items()]
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [f"{option}={item}" for item in value]
    # One word: the value of a flag is refused, and is not the next option or a program.
    return [f"{option}={value}"]


def _spelling(option: click.Option, keyword: str) -> str:
    return next(name for name in option.opts if _keyword(name) == keyword)


def _keyword(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def known_options(verb: str = "run") -> dict[str, click.Option]:
    """Return the option of each keyword: ``python_env`` -> ``--python-env``."""
    command = grammar().get_command(click.Context(grammar()), verb)
    if command is None:
        raise RuntimeError(f"the grammar has no verb {verb}")
    return {
        _keyword(name): option
        for option in command.params
        if isinstance(option, click.Option)
        for name in option.opts
        if name.startswith("--")
    }
