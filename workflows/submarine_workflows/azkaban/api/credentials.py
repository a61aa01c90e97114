"""Where Azkaban's password comes from: a variable, a file that is the user's alone, a question.

Never an option or a key of a configuration file, which others can see. Each password belongs to one
address, which the user has named: a project's configuration may name an Azkaban, and gets none.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import platformdirs

from submarine_jobs.config import check_private, load_section, user_section
from submarine_jobs.errors import ConfigError
from submarine_workflows.azkaban.api.settings import URL_VARIABLE, Settings, origin_of

VARIABLE = "SUBMARINE_AZKABAN_PASSWORD"
_MAX_BYTES = 4096

Ask = Callable[[str], str]


def find_password(
    settings: Settings, ask: Ask | None, environ: Mapping[str, str] | None = None
) -> str:
    """The password of ``settings.user``.

    Parameters
    ----------
    ask
        Shows a question and reads an answer that nobody sees; None: nobody can be asked.

    Raises
    ------
    ConfigError
        If there is none, or others can read the file that it is in.
    """
    environ = os.environ if environ is None else environ
    if environ.get(VARIABLE) and _is_of_variable(settings, environ):
        return environ[VARIABLE]
    own = default_file(settings)
    for path in (own, _named_file(settings, environ)):
        if path is not None and path.exists():
            return read_password(path)
    if ask is None:
        if environ.get(VARIABLE):
            raise ConfigError(
                f"{VARIABLE} is not sent to {settings.origin}, which "
                f"{settings.named_by_project or '--url'} names and not you.",
                f"If that is your Azkaban, set {URL_VARIABLE}={settings.url} as well, or put the "
                f"password in {own}, readable by you alone (chmod 600).",
            )
        raise ConfigError(
            f"The password of {settings.user} at {settings.origin} is not known here.",
            f"Put it in {own}, readable by you alone (chmod 600), or in {VARIABLE}.",
        )
    return ask(f"Password of {settings.user} at {settings.origin}")


def _is_of_variable(settings: Settings, environ: Mapping[str, str]) -> bool:
    """Whether the variable's password is for this Azkaban: the one that the user configured.

    An address that was typed with ``--url`` counts where no other is configured.
    """
    own = user_section("azkaban", environ=environ).get("url")
    url = environ.get(URL_VARIABLE) or (own.value if own is not None else "")
    return origin_of(url) == settings.origin if url else not settings.named_by_project


def default_file(settings: Settings) -> Path:
    """The file of this Azkaban's password where no other is named."""
    folder = Path(platformdirs.user_config_dir("jupyter-submarine")) / "azkaban"
    host = settings.origin.partition("://")[2].replace(":", "_")
    return folder / f"{host}.password"


def read_password(path: Path) -> str:
    """The first line of a file that only its owner can read.

    Raises
    ------
    ConfigError
        If others can read it too, it is not this user's, or it is empty.
    """
    try:
        with path.open("rb") as file:
            seen = os.fstat(file.fileno())
            _check_owner(path, seen)
            line = file.read(_MAX_BYTES).split(b"\n", 1)[0].rstrip(b"\r")
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror}.") from None
    if not line:
        raise ConfigError(f"The first line of {path} is empty.", "Write the password there.")
    return line.decode("utf-8", "replace")


def _check_owner(path: Path, seen: os.stat_result) -> None:
    if not stat.S_ISREG(seen.st_mode):
        raise ConfigError(f"{path} is no file.")
    if unsafe := check_private(path, seen):
        raise ConfigError(f"{path} holds a password and {unsafe.reason}.", unsafe.fix)


def _named_file(settings: Settings, environ: Mapping[str, str]) -> Path | None:
    """``password_file`` of the user's own configuration, for the Azkaban that is named there."""
    if (foreign := load_section("azkaban", environ=environ).get("password_file")) is None:
        return None
    if not foreign.personal:
        raise ConfigError(
            f"{foreign.where}: a project's configuration names no password_file;",
            "put it in your own submarine.toml.",
        )
    url = user_section("azkaban", environ=environ).get("url")
    if url is None or origin_of(url.value) != settings.origin:
        return None
    return Path(foreign.value)
