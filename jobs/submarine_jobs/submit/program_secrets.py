"""Read the values of ``--secret`` from their sources, for one submission.

A spec has the names and the files as they were typed, so ``rerun`` and schedules read the values
again. No message contains a value.
"""

from __future__ import annotations

import importlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from submarine_jobs.concurrency import call_with_timeout
from submarine_jobs.errors import UsageError
from submarine_jobs.model import JobSpec, Profile
from submarine_jobs.options import format_secret, parse_secret
from submarine_runtime.translation import _

#: Maximum of the values in bytes: of one, and of all, which are part of one environment.
MAX_SECRET_VALUE = 64 * 1024
MAX_SECRET_VALUES = 512 * 1024
_MAX_KEYTAB = 1 << 20
#: Service in the keyring; the user name is the name of the variable.
KEYRING_SERVICE = "jupyter-submarine"
KEYRING_SECONDS = 60.0


def read_secrets(spec: JobSpec) -> dict[str, str]:
    """Return NAME -> value for the ``--secret`` options of a spec.

    Raises
    ------
    UsageError
        If a value is missing, or cannot be a variable; the message names the source.
    """
    found: dict[str, str] = {}
    for name, file in spec.secrets.items():
        parse_secret(format_secret(name, file))  # The spec of a rerun comes from a file.
        found[name] = value = _from_file(name, file) if file else _from_here(name)
        source = file or _("its source")
        if not value:
            raise UsageError(
                _("--secret {name}: the value in {source} is empty.").format(
                    name=name, source=source
                ),
                _("Store the value there, or leave --secret {name} out.").format(name=name),
            )
        if "\0" in value or not _is_text(value):
            raise UsageError(
                _(
                    "--secret {name}: the value in {source} has a NUL byte or is not UTF-8, so it "
                    "cannot be an environment variable."
                ).format(name=name, source=source),
                _("Send the file with --file, and protect it."),
            )
        if len(value.encode()) > MAX_SECRET_VALUE:
            raise _too_long(name, source)
    if sum(len(value.encode()) for value in found.values()) > MAX_SECRET_VALUES:
        raise UsageError(_("The values of --secret have more than 512 KiB together."))
    return found


def readable_secret_files(spec: JobSpec) -> list[str]:
    """Return a warning for each file of ``--secret`` that other users can read."""
    found = []
    for name, file in spec.secrets.items():
        path = Path(file).expanduser()
        try:
            mode = stat.S_IMODE(path.stat().st_mode) if file else 0
        except (OSError, ValueError):  # `read_secrets` reports it.
            continue
        if mode & (stat.S_IRGRP | stat.S_IROTH):
            found.append(
                _(
                    "--secret {name}: other users can read {file} (mode {mode:04o}); protect it "
                    "with chmod 600."
                ).format(name=name, file=file, mode=mode)
            )
    return found


def read_keytab(spec: JobSpec, profile: Profile) -> bytes | None:
    """Return the keytab of ``--distribute_keytab``; None if it is not sent.

    Raises
    ------
    UsageError
        If there is none, it cannot be read, or it is longer than 1 MiB.
    """
    if not spec.distribute_keytab:
        return None
    if profile.keytab is None:
        raise UsageError(
            _("--distribute_keytab sends the keytab to the job, and none is set."),
            _("Add --keytab FILE and --principal NAME."),
        )
    try:
        with profile.keytab.open("rb") as file:
            data = file.read(_MAX_KEYTAB + 1)
    except OSError as error:
        raise UsageError(
            _("The keytab {path} cannot be read: {error}.").format(
                path=profile.keytab, error=error.strerror
            )
        ) from None
    if len(data) > _MAX_KEYTAB:
        raise UsageError(
            _("{path} is longer than 1 MiB, which no keytab is.").format(path=profile.keytab),
            _("Name the keytab with --keytab FILE."),
        )
    return data


def secret_sources(secrets: Mapping[str, str]) -> list[str]:
    """Return each name with its source, for display."""
    return [
        _("{name} from {file}").format(name=name, file=file)
        if file
        else _("{name} from the environment or the keyring").format(name=name)
        for name, file in secrets.items()
    ]


def _is_text(value: str) -> bool:
    """Whether the value is UTF-8; other bytes are surrogates in ``os.environ``."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _too_long(name: str, source: str) -> UsageError:
    return UsageError(
        _("--secret {name}: the value in {source} is longer than 64 KiB.").format(
            name=name, source=source
        ),
        _("Name a file that holds the value only."),
    )


def _from_file(name: str, file: str) -> str:
    """Return the content of a file without its last newline."""
    path = Path(file).expanduser()
    try:
        # A pipe without a writer would block.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as opened:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            data = opened.read(MAX_SECRET_VALUE + 3) if regular else b""
    except FileNotFoundError:
        raise UsageError(
            _("--secret {name}: there is no file {path}.").format(name=name, path=path.absolute()),
            _("Store the value there, or name another file: --secret {name}=FILE.").format(
                name=name
            ),
        ) from None
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            _("--secret {name}: the file {path} cannot be read: {error}.").format(
                name=name, path=path, error=reason
            ),
            _("Make it readable for you, or name another file: --secret {name}=FILE.").format(
                name=name
            ),
        ) from None
    if not regular:
        raise UsageError(
            _("--secret {name}: {path} is not a regular file.").format(name=name, path=path),
            _("Name a file; rerun and schedules read it again."),
        )
    content = data.removesuffix(b"\n").removesuffix(b"\r") if data.endswith(b"\n") else data
    if len(content) > MAX_SECRET_VALUE:
        raise _too_long(name, file)
    return content.decode("utf-8", "surrogateescape")


def _from_here(name: str) -> str:
    """Return the variable of this process, or else the password of the keyring."""
    value = os.environ.get(name)
    if value is not None:
        return value
    where = _("the package keyring, which may hold it too, is not installed")
    try:
        # cost: an optional package, of which the keyring's own backends may open a connection.
        keyring = importlib.import_module("keyring")
    except ImportError:
        pass
    else:
        try:
            # A keyring may ask for its own password, and then waits for the user.
            kept = call_with_timeout(
                KEYRING_SECONDS, lambda: keyring.get_password(KEYRING_SERVICE, name)
            )
        except Exception as error:  # Backends of the keyring raise exceptions of their own.
            where = _("the keyring does not answer ({kind})").format(kind=type(error).__name__)
        else:
            if isinstance(kept, str):
                return kept
            where = _("the keyring has no password of {service} for it").format(
                service=KEYRING_SERVICE
            )
    raise UsageError(
        _(
            "--secret {name}: the environment variable {name} is not set in the process that "
            "submits the job, and {where}."
        ).format(name=name, where=where),
        _(
            "Set the variable there, name a file with --secret {name}=FILE, or store it with "
            "`keyring set {service} {name}`."
        ).format(name=name, service=KEYRING_SERVICE),
    )
