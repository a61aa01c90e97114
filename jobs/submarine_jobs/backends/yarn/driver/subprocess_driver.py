"""The driver as it is asked by a process that stays small: each call in a process of its own.

skein, gRPC and cryptography are loaded there and go away with it (``apart``). Which driver runs is
seen from its file as ever, so that a call costs one such process where a driver lives.
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
from submarine_jobs.concurrency import ApartError, call_apart
from submarine_jobs.model import Profile

#: Seconds over the limits of a driver's start and of the call, on a busy machine.
_SPARE = 30.0
_PATHS = ("hadoop_conf_dir", "java_home", "state_dir")


class DriverApart(Driver):
    """The driver of one profile, asked from other processes; see ``Driver``."""

    def channel(self, *, start: bool = True) -> ChannelApart:
        """See ``Driver.channel``; one that runs is pinged by the call that comes next."""
        channel = ChannelApart(self._profile, self._conf)
        if self.running() is None:
            if not start:
                raise DriverUnreachableError("No YARN driver runs.")
            channel.ask(start_driver, timeout=0.0)
        with contextlib.suppress(OSError):
            os.utime(self.directory / "last-use")
        return channel


class ChannelApart:
    """What ``DriverChannel`` does, from another process each time."""

    def __init__(self, profile: Profile, conf: HadoopConf) -> None:
        self._whose = {**vars(profile), "settings": dict(profile.settings)}
        self._conf = str(conf.directory)

    def ask(self, function: Callable[..., Any], *arguments: Any, timeout: float) -> Any:
        """Call one of the functions below; a process without an answer is a driver without one."""
        limit = START_SECONDS + timeout + _SPARE
        try:
            return call_apart(function, self._whose, self._conf, *arguments, seconds=limit)
        except ApartError as exc:
            raise DriverUnreachableError(exc.message) from exc

    def close(self) -> None:
        """Nothing is open."""

    def ping(self, timeout: float) -> None:
        """See ``DriverChannel.ping``."""
        self.ask(ping, timeout, timeout=timeout)

    def submit(self, spec: Mapping[str, Any], timeout: float) -> str:
        """See ``DriverChannel.submit``."""
        return str(self.ask(submit, spec, timeout, timeout=timeout))

    def kill(self, application_id: str, timeout: float) -> None:
        """See ``DriverChannel.kill``."""
        self.ask(kill, application_id, timeout, timeout=timeout)


def start_driver(profile: Mapping[str, Any], conf: str) -> None:
    """Have a driver run."""
    _driver(profile, conf).channel()


def ping(profile: Mapping[str, Any], conf: str, timeout: float) -> None:
    """Raise unless the driver that runs answers."""
    _driver(profile, conf).call(lambda channel: channel.ping(timeout), start=False)


def submit(profile: Mapping[str, Any], conf: str, spec: Mapping[str, Any], timeout: float) -> str:
    """Submit an application."""
    return _driver(profile, conf).call(lambda channel: channel.submit(spec, timeout))


def kill(profile: Mapping[str, Any], conf: str, application_id: str, timeout: float) -> None:
    """Kill an application."""
    _driver(profile, conf).call(lambda channel: channel.kill(application_id, timeout))


def _driver(profile: Mapping[str, Any], conf: str) -> Driver:
    paths = {name: Path(profile[name]) for name in _PATHS if profile[name] is not None}
    return Driver(Profile(**{**profile, **paths}), HadoopConf(Path(conf)))
