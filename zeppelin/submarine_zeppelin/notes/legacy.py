"""Commands and form of Zeppelin's former Submarine interpreter, as command lines of ``run``.

That interpreter has buttons and a list on a page; here they are lines of a paragraph and fields of
a Zeppelin form.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _
from submarine_zeppelin.interface import (
    NETWORK,
    Context,
    flag_property,
    number_property,
    text_property,
)

DASHBOARD, USAGE, CLEAN = "DASHBOARD", "USAGE", "CLEAN"
JOB_RUN, JOB_STOP = "JOB_RUN", "JOB_STOP"
TENSORBOARD_RUN, TENSORBOARD_STOP = "TENSORBOARD_RUN", "TENSORBOARD_STOP"
#: Actions in the list of the form, with their labels.
ACTIONS = {
    "SHOW": "Show",
    JOB_RUN: _("Run the job"),
    JOB_STOP: _("Stop the job"),
    TENSORBOARD_RUN: _("Start TensorBoard"),
    TENSORBOARD_STOP: _("Stop TensorBoard"),
}
_WORDS = {
    **{word: word for word in (DASHBOARD, USAGE, CLEAN, *list(ACTIONS)[1:])},
    "OLD_UI": DASHBOARD,
    "CLEAN_RUNTIME_CACHE": CLEAN,
}
_VERBS = {"JOB_LIST": ["list"], "JOB_SHOW": ["show", "last"]}
_INVALID_CHARACTERS = re.compile(r"[^a-z0-9-]+")
#: A checkpoint path with at most this number of parts may contain other files.
MAX_SHALLOW_PARTS = 3


def parse_command(line: str) -> str | None:
    """Return the command of a line, in any case and with a blank or ``_``; None if it is none."""
    return _WORDS.get("_".join(line.upper().split()))


def translate_command_line(words: Sequence[str]) -> list[str]:
    """Convert a command line of the Submarine launcher to this project's command line."""
    result = list(words)
    if result[:2] == ["yarn", "jar"]:
        result = result[3:]
    if result[:1] in (["submarine"], ["%submarine"]):
        result = result[1:]
    if result[:1] == ["job"] and len(result) > 1:
        result = result[1:]
    if result[:1] == ["help"]:
        result = [*result[1:2], "--help"]
    return _VERBS.get("_".join(result).upper(), result)


@dataclass(frozen=True)
class FormFields:
    """Values of the form."""

    action: str = "SHOW"
    input_path: str = ""
    worker_launch_cmd: str = ""
    ps_launch_cmd: str = ""
    clean_checkpoint: bool = False

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> FormFields:
        """Read the values that Zeppelin sends. Missing and malformed values are empty."""

        def text(name: str) -> str:
            value = params.get(name)
            return value.strip() if isinstance(value, str) else ""

        ticked = params.get("clean_checkpoint")
        action = text("command")
        return cls(
            action if action in ACTIONS else "SHOW",
            text("input_path"),
            text("worker_launch_cmd"),
            text("ps_launch_cmd"),
            ticked in (True, "true") or (isinstance(ticked, list) and bool(ticked)),
        )

    def form(self, *, distributed: bool, checkpoint: str) -> dict[str, Any]:
        """Return the form. It does not keep the action, so that the action is not repeated."""
        params: dict[str, Any] = {
            "command": "SHOW",
            "checkpoint_path": checkpoint,
            "input_path": self.input_path,
            "worker_launch_cmd": self.worker_launch_cmd,
        }
        forms = {
            "command": _select("command", "Command", ACTIONS),
            "checkpoint_path": _text_box(
                "checkpoint_path", _("Checkpoint path (from the settings)")
            ),
            "input_path": _text_box("input_path", _("Input path (%input_path%)")),
            "worker_launch_cmd": _text_box("worker_launch_cmd", _("Worker launch command")),
        }
        if distributed:
            params["ps_launch_cmd"] = self.ps_launch_cmd
            forms["ps_launch_cmd"] = _text_box("ps_launch_cmd", _("PS launch command"))
        params["clean_checkpoint"] = []
        forms["clean_checkpoint"] = {
            "type": "CheckBox",
            "name": "clean_checkpoint",
            "displayName": "",
            "defaultValue": [],
            "hidden": False,
            "options": [
                {"value": "true", "displayName": _("Clean the checkpoint path before the run")}
            ],
        }
        return {"params": params, "forms": forms}


def job_name(context: Context) -> str:
    """Return the name of a note's dashboard job, from user and note as in Zeppelin."""
    return _name(f"{context.user}-{context.note_id}")


def tensorboard_name(context: Context) -> str:
    """Return the job name of a user's TensorBoard."""
    return _name(f"{context.user}-tb")


def is_distributed(properties: Mapping[str, str]) -> bool:
    """Whether the dashboard's jobs have parameter servers."""
    return flag_property(properties, "machinelearning.distributed.enable")


def checkpoint_path(properties: Mapping[str, str], context: Context) -> str:
    """Return the checkpoint directory of a note's dashboard job; empty: the job directory."""
    base = text_property(properties, "tf.checkpoint.path").replace("${username}", context.user)
    return f"{base.rstrip('/')}/{context.note_id}" if base else ""


def check_cleanable(path: str) -> None:
    """Reject a path that may contain more than checkpoints.

    Raises
    ------
    UsageError
        If the path has at most ``MAX_SHALLOW_PARTS`` parts.
    """
    parts = [part for part in posixpath.normpath(urlsplit(path).path).split("/") if part]
    if len(parts) <= MAX_SHALLOW_PARTS or ".." in parts:
        raise UsageError(
            _(
                "The checkpoint path {path} is not cleaned: it has {count} parts and needs at "
                "least {max_shallow_parts}, so that no other files are removed."
            ).format(path=path[:200], count=len(parts), max_shallow_parts=MAX_SHALLOW_PARTS + 1),
            _("Set tf.checkpoint.path to a deeper directory, or clear the checkbox."),
        )


def run_words(properties: Mapping[str, str], fields: FormFields, context: Context) -> list[str]:
    """Return the command line of ``run`` for the form and the settings."""
    if not fields.worker_launch_cmd:
        raise UsageError(
            _("The form has no worker launch command."),
            _("Enter one, such as python main.py; main.py consists of the note's paragraphs."),
        )
    words = ["run", f"--name={job_name(context)}"]
    for option, value in (
        ("input_path", fields.input_path),
        ("checkpoint_path", checkpoint_path(properties, context)),
    ):
        words += [f"--{option}={value}"] if value else []
    workers = 1
    if is_distributed(properties):
        workers = number_property(properties, "tf.worker.services.num") or 1
        words += _role("ps", "parameter", properties, fields.ps_launch_cmd)
    words += [f"--num_workers={workers}"]
    words += _role("worker", "worker", properties, fields.worker_launch_cmd)[1:]
    if flag_property(properties, "tf.tensorboard.enable"):
        words.append("--tensorboard")
    if network := text_property(properties, NETWORK):
        words.append(f"--conf=docker_network={network}")
    return words


def tensorboard_words(context: Context) -> list[str]:
    """Return the command line of ``run`` for a TensorBoard of all the user's jobs."""
    return ["run", f"--name={tensorboard_name(context)}", "--num_workers=0", "--tensorboard"]


def _role(role: str, service: str, properties: Mapping[str, str], command: str) -> list[str]:
    def value(name: str) -> str:
        return text_property(properties, f"tf.{service}.services.{name}")

    count = number_property(properties, f"tf.{service}.services.num")
    sizes = f"memory={value('memory')},vcores={value('cpu')},gpu={value('gpu')}"
    words = [f"--num_{role}={count}", f"--{role}_resources={sizes}"]
    if image := value("docker.image"):
        words.append(f"--{role}_docker_image={image}")
    return [*words, f"--{role}_launch_cmd={command}"] if command else words


def _name(text: str) -> str:
    return _INVALID_CHARACTERS.sub("-", text.lower()).strip("-")[:64] or "job"


def _text_box(name: str, shown: str) -> dict[str, Any]:
    return {
        "type": "TextBox",
        "name": name,
        "displayName": shown,
        "defaultValue": "",
        "hidden": False,
    }


def _select(name: str, shown: str, options: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "Select",
        "name": name,
        "displayName": shown,
        "defaultValue": "SHOW",
        "hidden": False,
        "options": [{"value": key, "displayName": words} for key, words in options.items()],
    }
