"""The packed Python environments in the job root of a backend."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from submarine_jobs.config import make_private
from submarine_jobs.environments import (
    EnvironmentCache,
    check_env,
    check_target,
    find_provided,
    keys_of,
    provide_environment,
    publish_archive,
    write_environment,
)
from submarine_jobs.errors import UsageError
from submarine_jobs.submit import environments_in_use
from submarine_runtime.protocol.layout import RUNTIME_CACHE
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client.session import Session
    from submarine_jobs.environments import Progress, ProvidedEnvironment
    from submarine_jobs.model import PythonEnv


class PackedEnvironments:
    """Build, find and remove the environments of a job root.

    Parameters
    ----------
    backend
        Name of the backend; None: the profile's.

    Attributes
    ----------
    cache
        The environments that are packed.
    """

    def __init__(self, session: Session, backend: str | None = None) -> None:
        self._backend = session.backend(backend)
        self._state_dir = session.profile.state_dir
        self._storage, root = self._backend.job_root()
        self._directory = f"{root}/{RUNTIME_CACHE}"
        self.cache = EnvironmentCache(self._storage, self._directory)

    def build(self, env: PythonEnv, progress: Progress) -> ProvidedEnvironment | None:
        """Build, pack and upload an environment, unless the cluster has it.

        Raises
        ------
        UsageError
            If it cannot be built or packed, or the backend packs none.
        """
        self._check(env)
        return provide_environment(env, self._storage, self._directory, self._state_dir, progress)

    def find(self, env: PythonEnv, progress: Progress) -> ProvidedEnvironment | None:
        """Return an environment if the cluster has it; nothing is built or uploaded.

        Raises
        ------
        UsageError
            If it could not be built or packed, or the backend packs none.
        """
        self._check(env)
        return find_provided(env, self._storage, self._directory, self._state_dir, progress)

    def publish(self, env: PythonEnv, uri: str, progress: Progress) -> int:
        """Build or pack an environment as one archive that all users may read; return its size.

        Raises
        ------
        UsageError
            If it cannot be packed, the file exists, or its directory is not for all users.
        """
        self._check(env)
        check_target(uri, self._storage)
        make_private(self._state_dir)
        with tempfile.TemporaryDirectory(
            prefix="environment-publish-", dir=self._state_dir
        ) as directory:
            archive = Path(directory) / "environment.tar.gz"
            write_environment(env, archive, self._state_dir, progress)
            progress("uploading", 0, archive.stat().st_size)
            return publish_archive(archive, uri, self._storage)

    def in_use(self) -> set[str] | None:
        """Return the keys of the environments of unfinished jobs; None if they are not known."""
        names = environments_in_use(self._backend)
        return None if names is None else keys_of(names)

    def _check(self, env: PythonEnv) -> None:
        if self._backend.name == "local":
            raise UsageError(
                _("Jobs on this machine use its environments as they are; none is packed."),
                _("Choose the backend of a cluster."),
            )
        check_env(env, self._storage)
