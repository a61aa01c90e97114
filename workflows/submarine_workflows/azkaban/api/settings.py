"""Which Azkaban and as whom: ``[azkaban]`` of submarine.toml, variables, options.

Holds no password: that is ``credentials``'s.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from submarine_jobs.config import SectionValue, check_file, load_section
from submarine_jobs.errors import ConfigError
from submarine_jobs.text import printable
from submarine_workflows.model import ScheduleError, read_timezone

URL_VARIABLE = "SUBMARINE_AZKABAN_URL"
VARIABLES = {
    URL_VARIABLE: "url",
    "SUBMARINE_AZKABAN_USER": "user",
    "SUBMARINE_AZKABAN_PROJECT": "project",
}


@dataclass(frozen=True)
class Settings:
    """What is in force.

    Attributes
    ----------
    url
        Of the web server, without a slash at its end.
    user
        Azkaban's user.
    project
        Name of the project; empty: that of the workflow.
    timezone
        The web server's; empty: not known.
    ca
        File with the certificates that the server's is checked by; empty: the usual ones.
    outputs
        Where executed notebooks go; empty: a folder of the execution, which Azkaban removes.
    program
        How ``submarine`` is called on an executor.
    named_by_project
        ``file:line`` where a project's file names the address; empty: the user has named it.
    """

    url: str
    user: str
    project: str = ""
    timezone: str = ""
    ca: str = ""
    outputs: str = ""
    program: str = "submarine"
    named_by_project: str = ""

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return origin_of(self.url)


def origin_of(url: str) -> str:
    """Scheme, host and port of an address, the port always there."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{parts.hostname}:{port}".lower()


def is_plain(url: str) -> bool:
    """Whether what is sent to ``url`` can be read on its way: http to another machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = host == "localhost"
    return parts.scheme != "https" and not here


def refuse_plain(url: str) -> None:
    """Raise ConfigError if ``url`` is plain HTTP to another machine."""
    if is_plain(url):
        raise ConfigError(
            f"{printable(url, 100)} is no https, and over it the password could be read on its way "
            "by others.",
            "Use the https address of this Azkaban, or a tunnel to it (`ssh -L`) and its address "
            "on this machine.",
        )


def load_settings(
    options: Mapping[str, str | None] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """The settings, options first.

    Raises
    ------
    ConfigError
        If no Azkaban or no user is named, or a value means nothing.
    """
    environ = os.environ if environ is None else environ
    found = load_section("azkaban", environ=environ, cwd=cwd)
    values = _in_force(found, options, environ)
    if not values.get("url"):
        raise ConfigError(
            "No Azkaban is named.",
            'Write `url = "https://azkaban.example.org:8443"` under [azkaban] in submarine.toml, '
            "or set SUBMARINE_AZKABAN_URL.",
        )
    if not values.get("user"):
        raise ConfigError(
            "No user of Azkaban is named.",
            "Write `user = ...` under [azkaban] in submarine.toml, or set SUBMARINE_AZKABAN_USER.",
        )
    item, typed = found.get("url"), (options or {}).get("url") or environ.get(URL_VARIABLE)
    project = item.where if item is not None and not item.personal and not typed else ""
    return Settings(**{**values, "url": _checked_url(values["url"])}, named_by_project=project)


def local_settings(
    options: Mapping[str, str | None] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> dict[str, str]:
    """What is said of Azkaban, whether or not it is enough to reach one: for a project's zip."""
    environ = os.environ if environ is None else environ
    found = load_section("azkaban", environ=environ, cwd=cwd)
    return _in_force(found, options, environ)


def _in_force(
    found: Mapping[str, SectionValue],
    options: Mapping[str, str | None] | None,
    environ: Mapping[str, str],
) -> dict[str, str]:
    values = {key: item.value for key, item in found.items() if key != "password_file"}
    for variable, key in VARIABLES.items():
        if environ.get(variable):
            values[key] = environ[variable]
    values.update({key: value for key, value in (options or {}).items() if value})
    if values.get("ca"):
        _check_ca(Path(values["ca"]))
    if zone := values.get("timezone"):
        try:
            read_timezone(zone)
        except ScheduleError as exc:
            raise ConfigError(f"timezone under [azkaban]: {exc}") from None
    return values


def _check_ca(path: Path) -> None:
    shown = printable(path, 200)
    if not path.is_file():
        raise ConfigError(f"ca under [azkaban] names {shown}, no file.")
    if unsafe := check_file(path, path.stat(), foreign=True):
        raise ConfigError(f"{shown}, which ca under [azkaban] names, {unsafe.reason}.", unsafe.fix)


def _checked_url(url: str) -> str:
    parts = urlsplit(url)
    try:
        fit = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        fit = False
    if not fit or parts.query or parts.fragment:
        raise ConfigError(
            f"{printable(url, 100)} is no address of an Azkaban;",
            "write it like https://azkaban.example.org:8443.",
        )
    if "@" in parts.netloc:
        raise ConfigError(
            "The address of Azkaban has a user or password in it;",
            "name the user by `user`, and keep the password in a file.",
        )
    refuse_plain(url)
    return url.rstrip("/")
