"""Convert and validate the value of each key of a profile; raise ValueError or UsageError."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from submarine_jobs.config.backend_registry import backend_settings, check_backend_name
from submarine_jobs.config.file import KNOWN_SETTINGS
from submarine_jobs.errors import ConfigError
from submarine_jobs.model import parse_duration, parse_python_env
from submarine_runtime import network
from submarine_runtime.translation import _

_MAX_TIMEOUT = 3600.0
#: Seconds. A client publishes its intent again every ``intent.RENEW_EVERY`` seconds.
LEAST_SUBMIT_GRACE, _MAX_GRACE = 6.0, 86400.0
_MAX_HDFS_WAIT = 1440


def python_of(python_env: str, host_python: str) -> str:
    """Return the interpreter of ``--python-env`` in a container.

    Parameters
    ----------
    python_env
        ``host``, ``path:DIR``, ``auto``, ``archive:URI`` or ``docker:IMAGE``.
    host_python
        Interpreter of ``host``.

    Raises
    ------
    UsageError
        For any other form.
    """
    return parse_python_env(python_env).interpreter(host_python)


def one_line(value: Any) -> str:
    """Return the value as one line of text, else raise ValueError."""
    text = str(value)
    if "\0" in text or "\n" in text or not text.strip():
        raise ValueError(_("must be one line of text"))
    return text


def _directory(value: Any) -> Path:
    path = Path(one_line(value)).expanduser()
    if not path.is_absolute():
        raise ValueError(_("must be an absolute path"))
    return path


def _file(value: Any) -> Path:
    path = _directory(value)
    if not path.is_file():
        raise ValueError(_("there is no such file"))
    return path


def _backend(value: Any) -> str:
    return check_backend_name(one_line(value))


def _timeout(value: Any) -> float:
    seconds = parse_duration(str(value))
    if not 0 < seconds <= _MAX_TIMEOUT:
        raise ValueError(_("must lie between 1s and 1h"))
    return seconds


def _python_env(value: Any) -> str:
    python_of(one_line(value), "")
    return one_line(value)


CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "backend": _backend,
    "hadoop_conf_dir": _directory,
    "java_home": _directory,
    "job_root": one_line,
    "keytab": _file,
    "principal": one_line,
    "proxy_user": one_line,
    "python_env": _python_env,
    "queue": one_line,
    "state_dir": _directory,
    "timeout": _timeout,
    "user": one_line,
}


def hdfs_wait(settings: Mapping[str, str]) -> float | None:
    """Return ``hdfs_wait_minutes`` in seconds; None if it is not set.

    Raises
    ------
    ValueError
        If it is not a number of minutes in its range.
    """
    text = settings.get("hdfs_wait_minutes")
    if text is None:
        return None
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0.1 <= minutes <= _MAX_HDFS_WAIT:
        raise ValueError(
            _("must be a number of minutes from 0.1 to {limit}").format(limit=_MAX_HDFS_WAIT)
        )
    return 60.0 * minutes


def check_setting(name: str, value: str, where: str, backend: str | None = None) -> None:
    """Reject an unknown setting or an invalid value; ``where`` is its source.

    Parameters
    ----------
    backend
        The name of the profile's backend, which may have settings of its own.
    """
    if name not in KNOWN_SETTINGS:
        known = (*KNOWN_SETTINGS, *backend_settings(backend))
        if name in known:
            return
        close = difflib.get_close_matches(name, known, 1)
        hint = (
            _("did you mean {suggestion}?").format(suggestion=close[0])
            if close
            else _("known are {known}.").format(known=", ".join(known))
        )
        raise ConfigError(
            _("There is no setting {name!r} ({where});").format(name=name[:60], where=where), hint
        )
    if name == "port_range":
        network.parse_port_range(value)  # Loaded by its use only.
    if name == "submit_grace" and not LEAST_SUBMIT_GRACE <= parse_duration(value) <= _MAX_GRACE:
        raise ValueError(_("must lie between {least:g}s and 1d").format(least=LEAST_SUBMIT_GRACE))
