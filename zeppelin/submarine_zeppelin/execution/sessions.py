"""Interpreters that the server created, by session and class name."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from submarine_runtime.translation import _
from submarine_zeppelin.interface import Interpreter, Server, make_interpreter

log = logging.getLogger(__name__)


class UnknownInterpreterError(Exception):
    """The server refers to an interpreter that was not created in this process."""


class InterpreterSessions:
    """Interpreters by session and class name. Thread-safe.

    Parameters
    ----------
    on_properties
        Called with the properties of each new interpreter, which may contain secrets.
    """

    def __init__(self, server: Server, on_properties: Callable[[Mapping[str, str]], None]) -> None:
        self._server = server
        self._on_properties = on_properties
        self._lock = threading.Lock()
        self._interpreters: dict[tuple[str, str], Interpreter] = {}

    def create(self, session: str, class_name: str, properties: Mapping[str, str]) -> None:
        """Create an interpreter. An existing one is kept, because the server may repeat the call.

        Raises
        ------
        UnknownInterpreterError
            If the group has no interpreter with that class name.
        """
        self._on_properties(properties)
        with self._lock:
            if (session, class_name) in self._interpreters:
                return
            try:
                interpreter = make_interpreter(class_name, dict(properties), self._server, session)
            except KeyError:
                raise UnknownInterpreterError(
                    _(
                        "The group has no interpreter {class_name!r}. Run `submarine zeppelin "
                        "install` again."
                    ).format(class_name=class_name[:120])
                ) from None
            self._interpreters[session, class_name] = interpreter

    def get(self, session: str, class_name: str) -> Interpreter:
        """Return an interpreter that was created.

        Raises
        ------
        UnknownInterpreterError
            If it was not created, or was closed.
        """
        with self._lock:
            interpreter = self._interpreters.get((session, class_name))
        if interpreter is None:
            raise UnknownInterpreterError(
                _(
                    "The session {session!r} has no interpreter {class_name!r}. Restart the "
                    "interpreter."
                ).format(session=session[:80], class_name=class_name[:120])
            )
        return interpreter

    def close(self, session: str, class_name: str) -> None:
        """Close an interpreter if it exists."""
        with self._lock:
            interpreter = self._interpreters.pop((session, class_name), None)
        if interpreter is not None:
            _close(interpreter)

    def close_all(self) -> None:
        """Close all interpreters in parallel."""
        with self._lock:
            interpreters, self._interpreters = list(self._interpreters.values()), {}
        threads = [
            threading.Thread(target=_close, args=(one,), daemon=True) for one in interpreters
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _close(interpreter: Interpreter) -> None:
    try:
        interpreter.close()
    except Exception:
        log.exception("%s could not be closed", type(interpreter).__name__)
