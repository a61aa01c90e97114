"""Delegation tokens for the users of a JupyterHub, by the keytab of the hub.

``provide_tokens`` is for ``jupyterhub_config.py``. The keytab stays with the hub: the server of a
user gets a file with tokens of that user only, and cannot act as another user. The tokens have no
renewer. YARN therefore neither renews nor cancels them at the end of a job, and one pair serves
many jobs until the renewal interval of the cluster is over. The hub replaces it before that.

A user must have a Unix account on the machine of the hub, as ``LocalProcessSpawner`` requires.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import logging
import os
import pwd
import stat
import tempfile
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from submarine_jobs.backends.yarn.cluster import HadoopConf, Identity, client_tokens
from submarine_jobs.errors import ConfigError, SubmarineError
from submarine_jobs.model import Profile
from submarine_runtime.kerberos import (
    TOKEN_FILE_VARIABLE,
    NoTokenError,
    Token,
    fetch_tokens,
    token_bytes,
)
from submarine_runtime.translation import _

Hook = Callable[[Any], Awaitable[None]]
#: A quarter of the default of Hadoop's renewal intervals, which is a day.
INTERVAL = 6 * 3600.0
#: Seconds until the next attempt after a failure.
RETRY = 60.0
_log = logging.getLogger(__name__)


class SpawnError(Exception):
    """A server does not start; JupyterHub shows ``jupyterhub_message`` to its user."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.jupyterhub_message = message


class TokenFiles:
    """The token files of all servers of a hub, in one directory that only the hub can change.

    Parameters
    ----------
    directory
        Owned by the hub; users may enter it, and read the file that they own.
    keytab, principal
        The keys of the hub, a proxy user of Hadoop (``hadoop.proxyuser.NAME.*``).
    hadoop_conf_dir
        Client configuration of the cluster.
    ca_file
        See the setting ``ca_file``.
    """

    def __init__(
        self, directory: Path, keytab: Path, principal: str, hadoop_conf_dir: Path, ca_file: str
    ) -> None:
        self._directory = _own_directory(directory)
        self._keytab, self._principal = keytab, principal
        self._conf = HadoopConf(hadoop_conf_dir)
        self._settings = {"ca_file": ca_file} if ca_file else {}
        self._lock = threading.Lock()

    def path(self, user: str, server: str = "") -> Path:
        """Return the file of a server; a named server has its own."""
        if "/" in user or user.startswith("."):
            raise ConfigError(
                _("The user name {user!r} cannot have a token file.").format(user=user)
            )
        name = f"{user}.{hashlib.sha256(server.encode()).hexdigest()[:16]}" if server else user
        return self._directory / name

    def write(self, user: str, path: Path, *, renew: bool = False) -> None:
        """Write fresh tokens of a user, readable by the account of that name only.

        Parameters
        ----------
        renew
            Do nothing if the file has been removed meanwhile.

        Raises
        ------
        ConfigError
            If the user has no account.
        NoTokenError
            If the cluster gives no tokens.
        """
        try:
            account = pwd.getpwnam(user)
        except KeyError:
            raise ConfigError(
                _("{user} has no Unix account on the machine of the hub.").format(user=user)
            ) from None
        data = token_bytes(self._tokens(user))
        descriptor, temporary = tempfile.mkstemp(dir=self._directory, prefix=".")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                os.fchown(file.fileno(), account.pw_uid, account.pw_gid)
            with self._lock:
                if path.exists() or not renew:
                    os.replace(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)

    def remove(self, path: Path) -> None:
        """Remove the file of a server that has ended."""
        with self._lock:
            path.unlink(missing_ok=True)

    def refresh(self) -> bool:
        """Replace the tokens in all files; return whether that succeeded."""
        succeeded = True
        for path in sorted(self._directory.iterdir()):
            if path.name.startswith("."):
                continue
            try:
                # The owner is the user: names of files need no parsing.
                self.write(pwd.getpwuid(path.stat().st_uid).pw_name, path, renew=True)
            except (NoTokenError, SubmarineError, OSError, KeyError) as exc:
                _log.warning("submarine: no fresh tokens in %s: %s", path, exc)
                succeeded = False
        return succeeded

    def _tokens(self, user: str) -> list[Token]:
        profile = Profile(
            backend="yarn",
            keytab=self._keytab,
            principal=self._principal,
            proxy_user=user,
            settings=self._settings,
        )
        access = Identity(profile, self._conf).access
        urls = self._conf.webhdfs, self._conf.resourcemanagers
        return client_tokens(self._conf, fetch_tokens(*urls, access, renewer=""))


def provide_tokens(
    config: Any,
    *,
    keytab: str,
    principal: str,
    hadoop_conf_dir: str,
    directory: str,
    interval: float = INTERVAL,
    ca_file: str = "",
) -> None:
    """Give each server tokens of its user: HDFS and ResourceManager, by ``pre_spawn_hook``.

    Hooks that are configured before this call also run.

    Parameters
    ----------
    config
        The object ``c`` of ``jupyterhub_config.py``.
    keytab, principal
        The keys of the hub, a proxy user of Hadoop. No user may read the keytab.
    hadoop_conf_dir
        Client configuration of the cluster.
    directory
        Directory for the token files; it is created. It must survive a restart of the hub without
        its servers, and should be in memory (``/run``).
    interval
        Seconds after which the tokens are replaced; less than the renewal intervals of the cluster
        (``dfs.namenode.delegation.token.renew-interval`` and
        ``yarn.resourcemanager.delegation.token.renew-interval``).
    ca_file
        Certificates of the authority of the cluster's HTTPS servers, in PEM; by default those that
        ``ssl-client.xml`` names.

    Raises
    ------
    ConfigError
        If the directory can be changed by others.
    """
    files = TokenFiles(Path(directory), Path(keytab), principal, Path(hadoop_conf_dir), ca_file)
    before = config.Spawner.get("pre_spawn_hook"), config.Spawner.get("post_stop_hook")

    async def pre_spawn(spawner: Any) -> None:
        await _call(before[0], spawner)
        path = files.path(spawner.user.name, spawner.name)
        try:
            await asyncio.to_thread(files.write, spawner.user.name, path)
        except (NoTokenError, SubmarineError, OSError) as exc:
            text = _("The cluster gives no tokens for {user}: {error}")
            raise SpawnError(text.format(user=spawner.user.name, error=exc)) from exc
        spawner.environment = {**spawner.environment, TOKEN_FILE_VARIABLE: str(path)}

    async def post_stop(spawner: Any) -> None:
        files.remove(files.path(spawner.user.name, spawner.name))
        await _call(before[1], spawner)

    config.Spawner.pre_spawn_hook = pre_spawn
    config.Spawner.post_stop_hook = post_stop
    threading.Thread(
        target=_keep_fresh, args=(files, interval), name="submarine-tokens", daemon=True
    ).start()


def _keep_fresh(files: TokenFiles, interval: float) -> None:
    """Replace all tokens, now and then once an interval; servers outlive a restart of the hub."""
    pause = threading.Event()
    while True:
        succeeded = files.refresh()
        pause.wait(interval if succeeded else min(RETRY, interval))


async def _call(hook: Any, spawner: Any) -> None:
    result = hook(spawner) if hook else None
    if inspect.isawaitable(result):
        await result


def _own_directory(path: Path) -> Path:
    """Create a directory that users may enter but not list or change; refuse another's."""
    path.mkdir(parents=True, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise ConfigError(
            _("{path} is not a directory of the hub's own user.").format(path=path),
            _("Name another directory for the token files."),
        )
    path.chmod(0o711)
    return path
