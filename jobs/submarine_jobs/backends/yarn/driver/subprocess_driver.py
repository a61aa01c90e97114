"""Calls to the driver in short-lived subprocesses, for processes with low memory use.

skein, gRPC and cryptography are loaded in the subprocess only. If a driver is running, according
to its file, a call takes one subprocess.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from submarine_jobs.backends.yarn.cluster import HadoopConf
from submarine_jobs.backends.yarn.driver.driver import Driver
from submarine_jobs.backends.yarn.driver.process import START_SECONDS
from submarine_jobs.backends.yarn.driver.skein_calls import DriverUnreachableError
from submarine_jobs.concurrency import SubprocessCallError, call_in_subprocess
from submarine_jobs.model import Profile
from submarine_runtime.translation import _

#: Seconds added to the limits of a driver start and of a call, for a busy machine.
_SPARE = 30.0
_PATHS = ("hadoop_conf_dir", "java_home", "keytab", "state_dir")


class SubprocessDriver(Driver):
    """The driver of one profile, called from subprocesses; see ``Driver``."""

    def channel(self, *, start: bool = True) -> SubprocessChannel:
        """See ``Driver.channel``; a running driver is pinged by the next call."""
        channel = SubprocessChannel(self._profile, self._conf)
        if self.running() is None:
            if not start:
                raise DriverUnreachableError(_("No YARN driver runs."))
            channel.run(start_driver, timeout=0.0)
        with contextlib.suppress(OSError):
            os.utime(self.directory / "last-use")
        return channel


class SubprocessChannel:
    """The calls of ``DriverChannel``, each in a subprocess."""

    def __init__(self, profile: Profile, conf: HadoopConf) -> None:
        self._profile = {**vars(profile), "settings": dict(profile.settings)}
        self._conf = str(conf.directory)

    def run(self, function: Callable[..., Any], *arguments: Any, timeout: float) -> Any:
        """Call one of the functions below; a missing response counts as an unreachable driver."""
        limit = START_SECONDS + timeout + _SPARE
        try:
            return call_in_subprocess(
                function, self._profile, self._conf, *arguments, seconds=limit
            )
        except SubprocessCallError as exc:
            raise DriverUnreachableError(exc.message) from exc

    def close(self) -> None:
        """Do nothing: no connection is open."""

    def ping(self, timeout: float) -> None:
        """See ``DriverChannel.ping``."""
        self.run(ping, timeout, timeout=timeout)

    def submit(self, spec: Mapping[str, Any], timeout: float) -> str:
        """See ``DriverChannel.submit``."""
        return str(self.run(submit, spec, timeout, timeout=timeout))

    def kill(self, application_id: str, user: str, timeout: float) -> None:
        """See ``DriverChannel.kill``."""
        self.run(kill, application_id, user, timeout, timeout=timeout)


def start_driver(profile: Mapping[str, Any], conf: str) -> None:
    """Start a driver if none is running."""
    _driver(profile, conf).channel()


def ping(profile: Mapping[str, Any], conf: str, timeout: float) -> None:
    """Raise unless the running driver answers."""
    _driver(profile, conf).call(lambda channel: channel.ping(timeout), start=False)


def submit(profile: Mapping[str, Any], conf: str, spec: Mapping[str, Any], timeout: float) -> str:
    """Submit an application."""
    return _driver(profile, conf).call(lambda channel: channel.submit(spec, timeout))


def kill(
    profile: Mapping[str, Any], conf: str, application_id: str, user: str, timeout: float
) -> None:
    """Kill an application."""
    _driver(profile, conf).call(lambda channel: channel.kill(application_id, user, timeout))


def _driver(profile: Mapping[str, Any], conf: str) -> Driver:
    paths = {name: Path(profile[name]) for name in _PATHS if profile[name] is not None}
    return Driver(Profile(**{**profile, **paths}), HadoopConf(Path(conf)))
