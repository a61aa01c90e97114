"""Read the table ``[locked]`` of the site file: keys that no other source can change, and limits.

``loader`` applies the keys, ``submit.site_limits`` the limits. Both run in the user's process, so
they guide users; YARN's queues and ACLs are the enforcement.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from submarine_jobs.errors import ConfigError
from submarine_runtime.translation import _

LOCKED = "locked"
#: Keys that can be locked, besides ``settings.NAME``; ``user`` and ``state_dir`` differ by user.
LOCKABLE = (
    *("backend", "hadoop_conf_dir", "java_home", "job_root"),
    *("python_env", "queue", "timeout"),
)


@dataclass(frozen=True)
class Locks:
    """The locks of the site file; the fields are the keys of ``[locked]``.

    Parameters
    ----------
    keys
        Dotted keys of the site file whose values there are final. One without ``profiles.`` applies
        to every profile.
    queues, images
        Names or patterns (``*``, ``?``, ``[...]``) of the queues and Docker images that a job may
        use; None: all.
    max_gpus_per_job
        Maximum of the GPUs of all tasks of a job; None: no limit.
    """

    keys: tuple[str, ...] = ()
    queues: tuple[str, ...] | None = None
    images: tuple[str, ...] | None = None
    max_gpus_per_job: int | None = None

    def keys_of(self, profile: str) -> set[str]:
        """Return the keys of this profile that are locked, without ``profiles.NAME.``."""
        own = f"profiles.{profile}."
        found = {key.removeprefix(own) for key in self.keys if key.startswith(own)}
        return found | {key for key in self.keys if not key.startswith("profiles.")}

    def allows_queue(self, name: str) -> bool:
        """Return whether a job may use this queue; ``root.`` at the start has no meaning."""
        return self.queues is None or any(
            fnmatchcase(queue_name(name), queue_name(pattern)) for pattern in self.queues
        )

    def allows_image(self, name: str) -> bool:
        """Return whether a job may use this Docker image."""
        return self.images is None or any(fnmatchcase(name, pattern) for pattern in self.images)

    def describe(self) -> dict[str, str]:
        """Return what is locked, as text by the key of ``[locked]``; empty if nothing is."""
        listed = {"keys": self.keys or None, "queues": self.queues, "images": self.images}
        found = {
            name: ", ".join(values) or _("none")
            for name, values in listed.items()
            if values is not None
        }
        if self.max_gpus_per_job is not None:
            found["max_gpus_per_job"] = str(self.max_gpus_per_job)
        return found


def queue_name(text: str) -> str:
    """Return the name of a queue without the root, which is above every queue."""
    return text.removeprefix("root.")


def read_locks(
    table: Mapping[str, Any], where: Callable[[str], str], values: Mapping[str, Any]
) -> Locks:
    """Check the values of ``[locked]``, whose keys are known, and return them.

    Parameters
    ----------
    where
        Returns the place of a dotted key, for messages.
    values
        The values that the site file sets, by dotted key.

    Raises
    ------
    ConfigError
        If a value has the wrong type, or a key is locked that cannot be locked or is not set.
    """
    keys = _names(table, "keys", where) or ()
    for key in keys:
        _check_key(key, where(f"{LOCKED}.keys"), values)
    queues = _names(table, "queues", where)
    if queues == ():
        raise ConfigError(
            _("{where}: queues is empty, so that no job could be submitted.").format(
                where=where(f"{LOCKED}.queues")
            ),
            _('Name the allowed queues, for example queues = ["ml", "ml-*"], or remove the key.'),
        )
    most = table.get("max_gpus_per_job")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 0):
        raise ConfigError(
            _("{where}: max_gpus_per_job must be a whole number from 0.").format(
                where=where(f"{LOCKED}.max_gpus_per_job")
            )
        )
    return Locks(keys, queues, _names(table, "images", where), most)


def _names(
    table: Mapping[str, Any], key: str, where: Callable[[str], str]
) -> tuple[str, ...] | None:
    if key not in table:
        return None
    names = table[key]
    if not isinstance(names, list) or not all(
        isinstance(name, str) and name.strip() for name in names
    ):
        raise ConfigError(
            _("{where}: {key} must be a list of texts in quotes.").format(
                where=where(f"{LOCKED}.{key}"), key=key
            )
        )
    return tuple(names)


def _check_key(key: str, where: str, values: Mapping[str, Any]) -> None:
    if key in values:
        name = key
        if key.startswith("profiles."):
            # The name of a profile may contain dots, the keys of a profile do not, except settings.
            _before, dot, setting = key.partition(".settings.")
            name = f"settings.{setting}" if dot else key.rpartition(".")[2]
        if name in LOCKABLE or name.startswith("settings."):
            return
        raise ConfigError(
            _("{where}: {key!r} cannot be locked;").format(where=where, key=key[:80]),
            _("these can: {names} and settings.NAME.").format(names=", ".join(LOCKABLE)),
        )
    close = difflib.get_close_matches(key, values, 1)
    hint = (
        _("did you mean {suggestion}?").format(suggestion=close[0])
        if close
        else _("set the value that all users get, or remove the key from the list.")
    )
    raise ConfigError(
        _("{where} locks {key!r}, which this file does not set;").format(where=where, key=key[:80]),
        hint,
    )
