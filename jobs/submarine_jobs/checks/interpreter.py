"""Run a short program with the interpreter of a job, for facts that only it knows."""

from __future__ import annotations

import json
import os
import subprocess

from submarine_runtime.translation import _


class InterpreterError(Exception):
    """The interpreter gave no usable answer; the message is the reason."""


def run_script(python: str, arguments: list[str], stdin: str, timeout: float) -> list[object]:
    """Return the JSON list that a short program prints."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    try:
        answer = subprocess.run(
            [python, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd="/",
            env=environment,
            check=True,
        )
        found = json.loads(answer.stdout)
    except FileNotFoundError:
        raise InterpreterError(_("is not on this machine")) from None
    except subprocess.TimeoutExpired:
        raise InterpreterError(
            _("did not answer within {timeout:g} s").format(timeout=timeout)
        ) from None
    except (OSError, subprocess.SubprocessError, ValueError):
        raise InterpreterError(_("could not be queried")) from None
    if not isinstance(found, list):
        raise InterpreterError(_("could not be queried"))
    return found
