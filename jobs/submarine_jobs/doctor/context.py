"""The context of the checks: the profile, the cluster's configuration, and cached responses.

``run`` starts small programs for the checks, with a timeout and limited output.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submarine_jobs.errors import ClusterError, ConfigError, no_cluster
from submarine_jobs.model import Profile
from submarine_jobs.options import RunOptions
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.backends.yarn import YarnBackend
    from submarine_jobs.backends.yarn.cluster import HadoopConf

_MAX_OUTPUT = 1 << 20


class DoctorContext:
    """The profile to check from this machine.

    Parameters
    ----------
    requested
        The size of the job that ``capacity`` checks.
    """

    def __init__(
        self,
        profile: Profile,
        environ: Mapping[str, str] | None = None,
        requested: RunOptions | None = None,
    ) -> None:
        self.profile = profile
        self.requested = requested or RunOptions()
        self.environ = os.environ if environ is None else environ
        self._lock = threading.Lock()
        self._yarn: YarnBackend | None = None
        self._answers: dict[str, Any] = {}

    @property
    def on_yarn(self) -> bool:
        """Whether the profile is a YARN cluster."""
        return self.profile.backend == "yarn"

    @property
    def no_cluster(self) -> str:
        """Return why there is no YARN cluster to check, as a clause; empty if there is one."""
        if self.on_yarn:
            return ""
        if self.profile.backend is None:
            return _("no cluster is configured")
        if self.profile.backend == "local":
            return _("profile {profile} runs jobs on this machine").format(
                profile=self.profile.name
            )
        return _("profile {profile} runs jobs on the backend {backend}").format(
            profile=self.profile.name, backend=self.profile.backend
        )

    @property
    def yarn(self) -> YarnBackend:
        """The cluster.

        Raises
        ------
        NoClusterError
            If the profile is none.
        """
        # cost: the YARN backend, which the checks of this machine do not need.
        from submarine_jobs.backends.yarn import YarnBackend

        with self._lock:
            if self._yarn is None:
                if not self.on_yarn:
                    raise no_cluster()
                self._yarn = YarnBackend(self.profile)
            return self._yarn

    @property
    def conf(self) -> HadoopConf:
        """The cluster's client configuration; raises ConfigError when it is none."""
        return self.yarn.conf

    @property
    def cluster_elsewhere(self) -> bool:
        """Whether there is a cluster, by a configuration that can be read, on other machines."""
        try:
            return self.on_yarn and not self.conf.on_loopback
        except ConfigError:
            return False

    def rm_response(self, path: str) -> Any:
        """Return a response of the ResourceManager's REST interface, which all checks share."""
        with self._lock:
            known = self._answers.get(path)
        if known is None:
            known = self.yarn.rm.get(path)
            with self._lock:
                self._answers[path] = known
        return known

    def rm_setting(self, name: str, default: str = "") -> str:
        """Return a value of the ResourceManager's configuration; else of the client's."""
        key = f"setting {name}"
        with self._lock:
            known = self._answers.get(key)
        if known is None:
            known = self.yarn.rm.setting(name) or self.conf.get(name, default)
            with self._lock:
                self._answers[key] = known
        return str(known)


def run(command: Sequence[str | Path], seconds: float = 10.0) -> tuple[int, str]:
    """Return exit code and output of a small program.

    Raises
    ------
    ClusterError
        If it cannot be started or takes too long.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise ClusterError(
            _("`{words}` gave no answer within {seconds:g} s.").format(
                words=words[0], seconds=seconds
            )
        ) from exc
    except OSError as exc:
        raise ClusterError(
            _("`{words}` cannot be run: {error}.").format(words=words[0], error=exc.strerror)
        ) from exc
    return done.returncode, done.stdout[:_MAX_OUTPUT].decode("utf-8", "replace")
