"""Values that the interpreters of a Zeppelin share, by name: Zeppelin's resource pool.

A value stays in the process that has put it. Zeppelin's server finds it there for the others.
"""

from __future__ import annotations

import json
import logging
import threading

from submarine_runtime.translation import _
from submarine_zeppelin.interface import (
    Resources,
    ResourceValue,
    from_java,
    java_class,
    to_java,
)
from submarine_zeppelin.thrift import EventClient, EventRefusedError, ServerUnavailableError

log = logging.getLogger(__name__)
#: Limits of one process: number of values, and characters of their texts.
MAX_VALUES, MAX_TEXT = 1000, 64 << 20


class ResourcePool(Resources):
    """The values of this process, and access to those of the others. Thread-safe."""

    def __init__(self, events: EventClient) -> None:
        self._events = events
        self._lock = threading.Lock()
        self._values: dict[str, ResourceValue] = {}

    def put(self, name: str, value: ResourceValue) -> None:
        """Set a value; see ``Resources``."""
        java_class(value)
        with self._lock:
            others = [one for key, one in self._values.items() if key != name]
            texts = sum(len(one) for one in [*others, value] if isinstance(one, str))
            if len(others) >= MAX_VALUES or texts > MAX_TEXT:
                raise ValueError(
                    _("shared values are limited to {count} and {size} MiB in all").format(
                        count=MAX_VALUES, size=MAX_TEXT >> 20
                    )
                )
            self._values[name] = value

    def get(self, name: str) -> ResourceValue | None:
        """Return a value of this process or another; see ``Resources``."""
        with self._lock:
            if name in self._values:
                return self._values[name]
        try:
            for text in self._events.resources():
                found = json.loads(text)
                resource = found.get("resourceId") or {}
                if resource.get("name") == name and not resource.get("paragraphId"):
                    return from_java(self._events.resource(json.dumps(resource)))
        except (ServerUnavailableError, EventRefusedError) as error:
            log.warning("a shared value was not read: %s", error)
            raise ValueError(_("Zeppelin's server does not answer")) from None
        return None

    def remove(self, name: str) -> bool:
        """Remove a value of this process; return whether there was one."""
        with self._lock:
            return self._values.pop(name, None) is not None

    def describe(self) -> list[str]:
        """Return the descriptions of all values of this process, as JSON."""
        with self._lock:
            values = list(self._values.items())
        return [
            json.dumps(
                {
                    "serializable": True,
                    "resourceId": {"resourcePoolId": self._events.group, "name": name},
                    "className": java_class(value),
                }
            )
            for name, value in values
        ]

    def serialized(self, name: str) -> bytes:
        """Return a value of this process for Zeppelin's server; empty if there is none."""
        with self._lock:
            value = self._values.get(name)
        return b"" if value is None else to_java(value)
