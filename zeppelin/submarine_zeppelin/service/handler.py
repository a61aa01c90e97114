"""Methods that Zeppelin's server calls. Each method returns an answer, also after an error.

An exception that the protocol does not declare closes the connection, and the server repeats the
call up to three times; a declared exception is shown to users as a Java stack trace. Applications
and Angular objects are not supported.
"""

# ruff: noqa: D102, N802, N815  (Zeppelin defines the names and meanings)

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from submarine_runtime.translation import _
from submarine_zeppelin.execution import (
    UNKNOWN,
    Execution,
    Executions,
    InterpreterSessions,
    ResourcePool,
    UnknownInterpreterError,
)
from submarine_zeppelin.interface import Code, Kind, Message, Result
from submarine_zeppelin.thrift import FORM_TYPE, context_of, protocol, wire_completion, wire_result

log = logging.getLogger(__name__)
Method = TypeVar("Method", bound=Callable[..., Any])


def _answers(default: Any) -> Callable[[Method], Method]:
    """Decorate a method: log its exceptions and return ``default`` for them."""

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def safely(self: Handler, *arguments: Any) -> Any:
            try:
                return method(self, *arguments)
            except UnknownInterpreterError as error:
                log.warning("%s: %s", method.__name__, error)
            except Exception:
                log.exception("%s failed", method.__name__)
            return default() if callable(default) else default

        return safely  # type: ignore[return-value]

    return decorate


class Handler:
    """Methods of Zeppelin's RemoteInterpreterService, under the names of the service.

    Parameters
    ----------
    on_init
        Called with the server's properties, which may contain secrets.
    on_reconnect
        Called with the address of a restarted server.
    on_shutdown
        Requests the end of this process and returns at once.
    """

    def __init__(
        self,
        sessions: InterpreterSessions,
        executions: Executions,
        resources: ResourcePool,
        on_init: Callable[[Mapping[str, str]], None],
        on_reconnect: Callable[[str, int], None],
        on_shutdown: Callable[[], None],
    ) -> None:
        self._sessions = sessions
        self._executions = executions
        self._resources = resources
        self._on_init = on_init
        self._on_reconnect = on_reconnect
        self._on_shutdown = on_shutdown
        self._local = threading.local()

    @_answers(None)
    def init(self, properties: dict[str, str] | None) -> None:
        self._on_init(properties or {})

    @_answers(None)
    def createInterpreter(
        self,
        group: str,
        session: str,
        class_name: str,
        properties: dict[str, str] | None,
        user: str,
    ) -> None:
        # After a failure the paragraph shows the error.
        self._sessions.create(session, class_name, properties or {})

    @_answers(None)
    def open(self, session: str, class_name: str) -> None:
        """Do nothing: the first paragraph opens what it needs."""

    @_answers(None)
    def close(self, session: str, class_name: str) -> None:
        log.info("%s of session %s is closed", class_name, session)
        self._executions.expect_close(self._sessions.get(session, class_name))
        self._sessions.close(session, class_name)

    @_answers(None)
    def reconnect(self, host: str, port: int) -> None:
        self._on_reconnect(host, port)

    def interpret(self, session: str, class_name: str, text: str | None, wire: Any) -> Any:
        self._local.execution = None
        try:
            interpreter = self._sessions.get(session, class_name)
            execution = self._executions.run(interpreter, text or "", context_of(wire))
            self._local.execution = execution
            return wire_result(execution.result or Result(Code.ERROR), wire)
        except UnknownInterpreterError as error:
            message = str(error)
        except Exception:
            log.exception("a paragraph could not be run")
            message = _("Internal error in Submarine. See the interpreter's log.")
        return wire_result(Result(Code.ERROR, (Message(Kind.TEXT, message + "\n"),)), wire)

    def result_sent(self, *, delivered: bool) -> None:
        """Record whether the last answer of this thread has reached the server."""
        execution: Execution | None = getattr(self._local, "execution", None)
        self._local.execution = None
        if execution is not None:
            self._executions.result_sent(execution, delivered=delivered)

    @_answers(None)
    def cancel(self, session: str, class_name: str, wire: Any) -> None:
        log.info("cancelling paragraph %s", wire.paragraphId)
        self._executions.cancel(self._sessions.get(session, class_name), context_of(wire))

    @_answers(0)
    def getProgress(self, session: str, class_name: str, wire: Any) -> int:
        progress = self._sessions.get(session, class_name).progress(context_of(wire))
        return max(0, min(100, int(progress)))

    @_answers(FORM_TYPE)
    def getFormType(self, session: str, class_name: str) -> str:
        return FORM_TYPE

    @_answers(list)
    def completion(
        self, session: str, class_name: str, text: str | None, cursor: int, wire: Any
    ) -> list[Any]:
        text = text or ""
        interpreter = self._sessions.get(session, class_name)
        found = interpreter.completion(text, max(0, min(cursor, len(text))), context_of(wire))
        return [wire_completion(one) for one in found]

    @_answers(UNKNOWN)
    def getStatus(self, session: str, paragraph: str) -> str:
        return self._executions.status(paragraph)

    @_answers(None)
    def shutdown(self) -> None:
        self._on_shutdown()

    @_answers(list)
    def resourcePoolGetAll(self) -> list[str]:
        return self._resources.describe()

    @_answers(b"")
    def resourceGet(self, note: str | None, paragraph: str | None, name: str) -> bytes:
        return self._resources.serialized(name)

    @_answers(False)
    def resourceRemove(self, note: str | None, paragraph: str | None, name: str) -> bool:
        return self._resources.remove(name)

    @_answers(b"")
    def resourceInvokeMethod(self, *_: Any) -> bytes:
        return b""

    @_answers(None)
    def angularObjectUpdate(self, *_: Any) -> None:
        """Do nothing: the interpreters have no Angular objects."""

    angularObjectAdd = angularObjectRemove = angularRegistryPush = angularObjectUpdate

    def loadApplication(self, *_unused: Any) -> Any:
        return protocol.RemoteApplicationResult(
            success=False, msg=_("Submarine has no applications.")
        )

    unloadApplication = runApplication = loadApplication
