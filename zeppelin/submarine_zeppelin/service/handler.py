"""What Zeppelin's server calls: each method answers, whatever happens.

An exception that the protocol does not declare drops the connection, and the server then calls up
to three times; one that it declares is shown to users as a stack of Java. So nothing of either
leaves here. Applications, resources and Angular objects of other interpreters we have none of.
"""

# ruff: noqa: D102, N802, N815  (names and meanings are Zeppelin's)

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from submarine_zeppelin.execution import UNKNOWN, Execution, Executions, NotCreatedError, Sessions
from submarine_zeppelin.interface import Code, Kind, Message, Result
from submarine_zeppelin.thrift import context_of, protocol, wire_completion, wire_result

log = logging.getLogger(__name__)
Method = TypeVar("Method", bound=Callable[..., Any])
#: Values of ``${...}`` are left in the code: it is the user's. Forms are ours to give.
FORM_TYPE = "NATIVE"


def _answers(default: Any) -> Callable[[Method], Method]:
    """A method whose failure is logged, and answered with ``default``."""

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def safely(self: Handler, *arguments: Any) -> Any:
            try:
                return method(self, *arguments)
            except NotCreatedError as error:
                log.warning("%s: %s", method.__name__, error)
            except Exception:
                log.exception("%s failed", method.__name__)
            return default() if callable(default) else default

        return safely  # type: ignore[return-value]

    return decorate


class Handler:
    """The methods of Zeppelin's RemoteInterpreterService, by their names there.

    Parameters
    ----------
    initialised
        Told the server's properties, which may hold secrets.
    reconnected
        Told where a server is that has come back.
    shut_down
        Asked to end this process; returns at once.
    """

    def __init__(
        self,
        sessions: Sessions,
        executions: Executions,
        initialised: Callable[[Mapping[str, str]], None],
        reconnected: Callable[[str, int], None],
        shut_down: Callable[[], None],
    ) -> None:
        self._sessions = sessions
        self._executions = executions
        self._initialised = initialised
        self._reconnected = reconnected
        self._shut_down = shut_down
        self._local = threading.local()

    @_answers(None)
    def init(self, properties: dict[str, str] | None) -> None:
        self._initialised(properties or {})

    @_answers(None)
    def createInterpreter(
        self,
        group: str,
        session: str,
        class_name: str,
        properties: dict[str, str] | None,
        user: str,
    ) -> None:
        # Where this fails, the paragraph says so.
        self._sessions.create(session, class_name, properties or {})

    @_answers(None)
    def open(self, session: str, class_name: str) -> None:
        """Nothing: what is needed is opened by the first paragraph."""

    @_answers(None)
    def close(self, session: str, class_name: str) -> None:
        log.info("%s of session %s is closed", class_name, session)
        self._executions.closing(self._sessions.get(session, class_name))
        self._sessions.close(session, class_name)

    @_answers(None)
    def reconnect(self, host: str, port: int) -> None:
        self._reconnected(host, port)

    def interpret(self, session: str, class_name: str, text: str | None, wire: Any) -> Any:
        self._local.execution = None
        try:
            interpreter = self._sessions.get(session, class_name)
            execution = self._executions.run(interpreter, text or "", context_of(wire))
            self._local.execution = execution
            return wire_result(execution.result or Result(Code.ERROR), wire)
        except NotCreatedError as error:
            said = str(error)
        except Exception:
            log.exception("a paragraph could not be run")
            said = "Submarine failed inside itself; the interpreter's log says where."
        return wire_result(Result(Code.ERROR, (Message(Kind.TEXT, said + "\n"),)), wire)

    def answered(self, *, reached: bool) -> None:
        """Whether the answer that this thread gave last has reached the server."""
        execution: Execution | None = getattr(self._local, "execution", None)
        self._local.execution = None
        if execution is not None:
            self._executions.delivered(execution, reached=reached)

    @_answers(None)
    def cancel(self, session: str, class_name: str, wire: Any) -> None:
        log.info("paragraph %s is to stop", wire.paragraphId)
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
        self._shut_down()

    @_answers(list)
    def resourcePoolGetAll(self) -> list[str]:
        return []

    @_answers(b"")
    def resourceGet(self, *_: Any) -> bytes:
        return b""

    @_answers(False)
    def resourceRemove(self, *_: Any) -> bool:
        return False

    @_answers(b"")
    def resourceInvokeMethod(self, *_: Any) -> bytes:
        return b""

    @_answers(None)
    def angularObjectUpdate(self, *_: Any) -> None:
        """Nothing: none of them is ours."""

    angularObjectAdd = angularObjectRemove = angularRegistryPush = angularObjectUpdate

    def loadApplication(self, *_: Any) -> Any:
        return protocol.RemoteApplicationResult(success=False, msg="Submarine has no applications.")

    unloadApplication = runApplication = loadApplication
