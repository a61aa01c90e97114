"""Find the password of Azkaban: a variable, a private file of the user, or a prompt.

Options and configuration files are not supported, because other users can read them. Each password
is bound to one address that the user has named. A project's configuration may name an Azkaban
server, but that server receives no password.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import platformdirs

from submarine_jobs.config import check_private, load_section, user_section
from submarine_jobs.errors import ConfigError
from submarine_runtime.translation import _
from submarine_workflows.azkaban.api.settings import URL_VARIABLE, Settings, origin_of

VARIABLE = "SUBMARINE_AZKABAN_PASSWORD"
_MAX_BYTES = 4096

Ask = Callable[[str], str]


def find_password(
    settings: Settings, ask: Ask | None, environ: Mapping[str, str] | None = None
) -> str:
    """Return the password of ``settings.user``.

    Parameters
    ----------
    ask
        Prompts for a password without echo; None if no prompt is possible.

    Raises
    ------
    ConfigError
        If there is none, or other users can read its file.
    """
    environ = os.environ if environ is None else environ
    if environ.get(VARIABLE) and _variable_applies(settings, environ):
        return environ[VARIABLE]
    own = default_file(settings)
    for path in (own, _configured_file(settings, environ)):
        if path is not None and path.exists():
            return read_password(path)
    if ask is None:
        if environ.get(VARIABLE):
            raise ConfigError(
                _(
                    "{variable} is not sent to {origin}, which {named_by_project} names, but "
                    "your configuration does not."
                ).format(
                    variable=VARIABLE,
                    origin=settings.origin,
                    named_by_project=settings.named_by_project or "--url",
                ),
                _(
                    "If it is your server, set {url_variable}={url} too, or put the password "
                    "in {own}, readable by you alone (chmod 600)."
                ).format(url_variable=URL_VARIABLE, url=settings.url, own=own),
            )
        raise ConfigError(
            _("There is no password of {user} at {origin}.").format(
                user=settings.user, origin=settings.origin
            ),
            _("Put it in {own}, readable by you alone (chmod 600), or in {variable}.").format(
                own=own, variable=VARIABLE
            ),
        )
    return ask(
        _("Password of {user} at {origin}").format(user=settings.user, origin=settings.origin)
    )


def _variable_applies(settings: Settings, environ: Mapping[str, str]) -> bool:
    """Return whether the variable's password is for the Azkaban server that the user configured.

    An address given with ``--url`` is used if none is configured.
    """
    own = user_section("azkaban", environ=environ).get("url")
    url = environ.get(URL_VARIABLE) or (own.value if own is not None else "")
    return origin_of(url) == settings.origin if url else not settings.named_by_project


def default_file(settings: Settings) -> Path:
    """Return the default password file of an Azkaban server."""
    folder = Path(platformdirs.user_config_dir("jupyter-submarine")) / "azkaban"
    host = settings.origin.partition("://")[2].replace(":", "_")
    return folder / f"{host}.password"


def read_password(path: Path) -> str:
    """Return the first line of a private file.

    Raises
    ------
    ConfigError
        If other users can read it, it has another owner, or it is empty.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            _check_owner(path, status)
            line = file.read(_MAX_BYTES).split(b"\n", 1)[0].rstrip(b"\r")
    except OSError as exc:
        raise ConfigError(
            _("{path} cannot be read: {strerror}.").format(path=path, strerror=exc.strerror)
        ) from None
    if not line:
        raise ConfigError(
            _("The first line of {path} is empty.").format(path=path),
            _("Write the password there."),
        )
    return line.decode("utf-8", "replace")


def _check_owner(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(_("{path} is not a regular file.").format(path=path))
    if unsafe := check_private(path, status):
        raise ConfigError(
            _("{path} contains a password and {reason}.").format(path=path, reason=unsafe.reason),
            unsafe.fix,
        )


def _configured_file(settings: Settings, environ: Mapping[str, str]) -> Path | None:
    """Return ``password_file`` of the user's configuration, if it names this Azkaban server."""
    if (foreign := load_section("azkaban", environ=environ).get("password_file")) is None:
        return None
    if not foreign.personal:
        raise ConfigError(
            _("{where}: password_file is not allowed in a project's configuration;").format(
                where=foreign.where
            ),
            _("set it in your own submarine.toml."),
        )
    url = user_section("azkaban", environ=environ).get("url")
    if url is None or origin_of(url.value) != settings.origin:
        return None
    return Path(foreign.value)
