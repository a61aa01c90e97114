"""Settings of the Azkaban server: ``[azkaban]`` of submarine.toml, variables, options.

They contain no password; see ``credentials``.
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
from submarine_runtime.translation import _
from submarine_workflows.model import ScheduleError, read_timezone

URL_VARIABLE = "SUBMARINE_AZKABAN_URL"
VARIABLES = {
    URL_VARIABLE: "url",
    "SUBMARINE_AZKABAN_USER": "user",
    "SUBMARINE_AZKABAN_PROJECT": "project",
}


@dataclass(frozen=True)
class Settings:
    """Effective settings.

    Attributes
    ----------
    url
        URL of the web server, without a trailing slash.
    user
        Azkaban user.
    project
        Name of the project; empty: that of the workflow.
    timezone
        Time zone of the web server; empty if it is unknown.
    ca
        File with the CA certificates for the server; empty: the system's.
    outputs
        Location of executed notebooks; empty: a folder of the execution, which Azkaban deletes.
    program
        Command that calls ``submarine`` on an executor.
    named_by_project
        ``file:line`` if a project's file names the URL; empty if the user has named it.
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
    """Return scheme, host and port of a URL; the port is always included."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{parts.hostname}:{port}".lower()


def is_unencrypted(url: str) -> bool:
    """Return whether a connection to ``url`` is unencrypted: HTTP to another machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = host == "localhost"
    return parts.scheme != "https" and not here


def require_https(url: str) -> None:
    """Raise ConfigError if ``url`` is plain HTTP to another machine."""
    if is_unencrypted(url):
        raise ConfigError(
            _("{url} is not https, so others could read the password in transit.").format(
                url=printable(url, 100)
            ),
            _(
                "Use the https URL of this Azkaban server, or a tunnel (`ssh -L`) and its URL "
                "on this machine."
            ),
        )


def load_settings(
    options: Mapping[str, str | None] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """Return the settings; options override variables and files.

    Raises
    ------
    ConfigError
        If the server or user is missing, or a value is invalid.
    """
    environ = os.environ if environ is None else environ
    found = load_section("azkaban", environ=environ, cwd=cwd)
    values = _effective_values(found, options, environ)
    if not values.get("url"):
        raise ConfigError(
            _("No Azkaban server is configured."),
            _(
                'Write `url = "https://azkaban.example.org:8443"` under [azkaban] in '
                "submarine.toml, or set SUBMARINE_AZKABAN_URL."
            ),
        )
    if not values.get("user"):
        raise ConfigError(
            _("No Azkaban user is configured."),
            _(
                "Write `user = ...` under [azkaban] in submarine.toml, or set "
                "SUBMARINE_AZKABAN_USER."
            ),
        )
    item, typed = found.get("url"), (options or {}).get("url") or environ.get(URL_VARIABLE)
    project = item.where if item is not None and not item.personal and not typed else ""
    return Settings(**{**values, "url": _checked_url(values["url"])}, named_by_project=project)


def _effective_values(
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
            raise ConfigError(_("timezone under [azkaban]: {error}").format(error=exc)) from None
    return values


def _check_ca(path: Path) -> None:
    shown = printable(path, 200)
    if not path.is_file():
        raise ConfigError(
            _("ca under [azkaban] names {shown}, which is not a file.").format(shown=shown)
        )
    if unsafe := check_file(path, path.stat(), foreign=True):
        raise ConfigError(
            _("{shown}, which ca under [azkaban] names, {reason}.").format(
                shown=shown, reason=unsafe.reason
            ),
            unsafe.fix,
        )


def _checked_url(url: str) -> str:
    parts = urlsplit(url)
    try:
        fit = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        fit = False
    if not fit or parts.query or parts.fragment:
        raise ConfigError(
            _("{url} is not the URL of an Azkaban server;").format(url=printable(url, 100)),
            _("use the form https://azkaban.example.org:8443."),
        )
    if "@" in parts.netloc:
        raise ConfigError(
            _("The URL of Azkaban contains a user or password;"),
            _("set `user`, and store the password in a file."),
        )
    require_https(url)
    return url.rstrip("/")
