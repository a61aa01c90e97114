"""The Kerberos tickets or delegation tokens of the driver: options and environment of its JVM.

Java reads ticket caches of type FILE only, and neither ``KRB5_CONFIG`` nor ``default_ccache_name``.
A cache that ``KRB5CCNAME`` does not name as a file is copied to the directory of the driver before
each call. The copy is deleted when the driver is stopped or replaced.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from submarine_jobs.backends.yarn.cluster import (
    HadoopConf,
    Identity,
    token_file_name,
)
from submarine_jobs.errors import TicketError
from submarine_jobs.model import Profile
from submarine_runtime.kerberos import TOKEN_FILE_VARIABLE, Credential, GssError, copy_to_cache

#: Name of the copy in the directory of the driver.
TICKET_COPY = "krb5cc"


@dataclass(frozen=True)
class DriverTickets:
    """The source of the driver's tickets.

    Attributes
    ----------
    jvm_options
        Options before the main class.
    arguments
        Arguments of skein's driver.
    env
        Variables of the JVM.
    copied
        The cache file that ``refresh`` writes; empty: the JVM reads the user's own, or a keytab.
    token_file
        Delegation tokens that the JVM reads once, at its start; empty: it uses tickets.
    """

    jvm_options: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    copied: str = ""
    token_file: str = ""

    def newer_than(self, file: Path) -> bool:
        """Return whether the tokens were replaced after ``file`` was written."""
        try:
            replaced = os.stat(self.token_file).st_mtime_ns if self.token_file else 0
            return replaced > file.stat().st_mtime_ns
        except OSError:
            return False

    def refresh(self) -> None:
        """Copy the user's ticket for the JVM, if it cannot read the cache.

        The copy has mode 0600. It is replaced by a rename, because the JVM may be reading it.

        Raises
        ------
        TicketError
            If there is no valid ticket.
        """
        if not self.copied:
            return
        new = f"{self.copied}.{secrets.token_hex(6)}"
        try:
            copy_to_cache(Credential(), f"FILE:{new}")
            os.replace(new, self.copied)
        except GssError as exc:
            raise TicketError(str(exc)) from exc
        finally:
            Path(new).unlink(missing_ok=True)


def driver_tickets(profile: Profile, conf: HadoopConf, directory: Path) -> DriverTickets:
    """Return the source of the tickets of the driver in ``directory``.

    Raises
    ------
    TicketError
        If there are only the tokens of the container of this process.
    """
    if not conf.kerberos:
        return DriverTickets()
    options = []
    if configuration := _java_configuration():
        options.append(f"-Djava.security.krb5.conf={configuration}")
    if profile.keytab is not None:
        keytab = ["--keytab", str(profile.keytab), "--principal", profile.principal or ""]
        return DriverTickets(options, keytab)
    identity = Identity(profile, conf)
    identity.check_submission()
    if identity.tokens is not None:
        file = token_file_name()
        return DriverTickets(options, env={TOKEN_FILE_VARIABLE: file}, token_file=file)
    kind, _colon, path = os.environ.get("KRB5CCNAME", "").rpartition(":")
    if path and kind in ("", "FILE"):
        return DriverTickets(options, env={"KRB5CCNAME": path})
    copy = str(directory / TICKET_COPY)
    return DriverTickets(options, env={"KRB5CCNAME": copy}, copied=copy)


def ticket_source(profile: Profile) -> str:
    """Return what distinguishes the drivers of different tickets."""
    variables = (
        os.environ.get(name, "") for name in ("KRB5CCNAME", "KRB5_CONFIG", TOKEN_FILE_VARIABLE)
    )
    return "\0".join([*variables, str(profile.keytab or ""), profile.principal or ""])


def _java_configuration() -> str:
    """Return the first existing file of ``KRB5_CONFIG``, which may be a list."""
    names = os.environ.get("KRB5_CONFIG", "").split(":")
    return next((name for name in names if name and os.path.isfile(name)), "")
