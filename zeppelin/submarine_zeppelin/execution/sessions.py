"""The interpreters that the server asked for: one for each session and entry of the group."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from submarine_zeppelin.interface import Interpreter, Server, entries as interpreters

log = logging.getLogger(__name__)


class NotCreatedError(Exception):
    """The server speaks of an interpreter that it did not create here."""


class Sessions:
    """Interpreters by session and class name; safe from any thread.

    Parameters
    ----------
    learn
        Told the properties of each, which may hold secrets.
    """

    def __init__(self, server: Server, learn: Callable[[Mapping[str, str]], None]) -> None:
        self._server = server
        self._learn = learn
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str], Interpreter] = {}

    def create(self, session: str, class_name: str, properties: Mapping[str, str]) -> None:
        """Make an interpreter; one that is there stays, since the server may ask again.

        Raises
        ------
        NotCreatedError
            If the group has no entry of that class name.
        """
        self._learn(properties)
        with self._lock:
            if (session, class_name) in self._made:
                return
            try:
                made = interpreters.make(class_name, dict(properties), self._server, session)
            except KeyError:
                raise NotCreatedError(
                    f"The group has no entry {class_name[:120]!r}: install it anew with "
                    "`submarine zeppelin install`."
                ) from None
            self._made[session, class_name] = made

    def get(self, session: str, class_name: str) -> Interpreter:
        """An interpreter that was created.

        Raises
        ------
        NotCreatedError
            If it was not, or was closed.
        """
        with self._lock:
            found = self._made.get((session, class_name))
        if found is None:
            raise NotCreatedError(
                f"The session {session[:80]!r} has no interpreter {class_name[:120]!r}: restart "
                "the interpreter."
            )
        return found

    def close(self, session: str, class_name: str) -> None:
        """End one, if it is there."""
        with self._lock:
            made = self._made.pop((session, class_name), None)
        if made is not None:
            _close(made)

    def close_all(self) -> None:
        """End all of them, side by side: one may be slow."""
        with self._lock:
            made, self._made = list(self._made.values()), {}
        threads = [threading.Thread(target=_close, args=(one,), daemon=True) for one in made]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _close(interpreter: Interpreter) -> None:
    try:
        interpreter.close()
    except Exception:
        log.exception("%s could not be closed", type(interpreter).__name__)
