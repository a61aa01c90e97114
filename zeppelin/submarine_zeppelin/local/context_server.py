"""Answer the calls of a note's object ``z``: forms of the paragraph, and shared resources.

The calls come from the user's program over a Unix socket in the private directory of its kernel,
or, from a container, in messages of the kernel.
"""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _
from submarine_zeppelin.interface import Context, Resources, ResourceValue
from submarine_zeppelin.notes import SIMPLE, templates_of

log = logging.getLogger(__name__)
#: Maximum size of a call in bytes, and of forms in a paragraph; seconds of a call.
MAX_CALL, MAX_FORMS, TIMEOUT = 32 << 20, 200, 60.0
_MAX_NAME = 200
_KINDS = ("TextBox", "Password", "Select", "CheckBox")


class Forms:
    """Dynamic forms of one run.

    Parameters
    ----------
    params
        Values that the page has sent.
    forms
        Forms that Zeppelin has made.
    """

    def __init__(
        self, params: Mapping[str, Any], forms: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        self._params = dict(params)
        self._forms: dict[str, Mapping[str, Any]] = dict(forms or {})

    def add(self, call: Mapping[str, Any]) -> Any:
        """Add a form; return its value."""
        name, kind = _name(call), call.get("kind")
        if kind not in _KINDS or (len(self._forms) >= MAX_FORMS and name not in self._forms):
            raise ValueError(_("there are too many forms"))
        default = call.get("default")
        label = str(call.get("label") or name)[:_MAX_NAME]
        hidden = call.get("hidden") is True
        form = {"type": kind, "name": name, "displayName": label, "hidden": hidden}
        if kind != "Password":
            form["defaultValue"] = default
        if kind in ("Select", "CheckBox"):
            form["options"] = [
                {"value": value, "displayName": text} if text is not None else {"value": value}
                for value, text in call["options"]
            ]
        self._forms[name] = form
        value = self._params.get(name)
        if value is None:
            value = default
        if kind == "CheckBox" and not isinstance(value, list):
            value = default
        if value is not None:
            self._params[name] = value
        return value

    def to_json(self) -> dict[str, Any]:
        """Return the forms for the result of the run."""
        return {"params": self._params, "forms": self._forms}


def paragraph_forms(context: Context) -> Forms:
    """Return the forms in the text of a paragraph.

    Raises
    ------
    UsageError
        If there are too many.
    """
    forms = Forms(context.params, context.forms if context.form_mode == SIMPLE else None)
    try:
        for template in templates_of(context):
            forms.add(template.call())
    except ValueError:
        raise UsageError(
            _("The paragraph has more than {limit} forms.").format(limit=MAX_FORMS),
            _("If these texts are not forms, add (form=native) to its first line."),
        ) from None
    return forms


class ContextServer:
    """Answers calls over one socket until it is closed.

    Attributes
    ----------
    forms
        Forms of the paragraph that runs.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._socket: socket.socket | None = None
        self.forms = Forms({})

    def start(self, path: Path) -> None:
        """Listen on a new socket."""
        self.close()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        listener.listen(16)
        self._socket = listener
        threading.Thread(
            target=self._accept, args=(listener,), daemon=True, name="submarine-z"
        ).start()

    def close(self) -> None:
        """Stop listening."""
        listener, self._socket = self._socket, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _address = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(TIMEOUT)
                connection.sendall(self.answer(_received(connection)).encode())

    def answer(self, data: bytes) -> str:
        """Return the answer to one call, both in JSON."""
        return json.dumps(self._answer(data if len(data) <= MAX_CALL else b"null"))

    def _answer(self, data: bytes) -> dict[str, Any]:
        try:
            call = json.loads(data)
            operation = call.get("op")
            if operation == "form":
                return {"value": self.forms.add(call)}
            if operation == "put":
                self._resources.put(_name(call), _value(call.get("value")))
            elif operation == "get":
                return {"value": self._resources.get(_name(call))}
            elif operation == "remove":
                self._resources.remove(_name(call))
            else:
                raise ValueError(_("there is no such call"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            return {"error": str(error)[:500]}
        except Exception:
            log.exception("a call of z failed")
            return {"error": _("Internal error in Submarine. See the interpreter's log.")}
        return {}


def _received(connection: socket.socket) -> bytes:
    data = bytearray()
    while chunk := connection.recv(1 << 16):
        data += chunk
        if len(data) > MAX_CALL:
            return b"null"
    return bytes(data)


def _name(call: Mapping[str, Any]) -> str:
    name = call.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME:
        raise ValueError(_("a name has 1 to {limit} characters").format(limit=_MAX_NAME))
    return name


def _value(value: object) -> ResourceValue:
    if not isinstance(value, str | bool | int | float):
        raise TypeError(_("only texts, numbers and booleans can be shared"))
    return value
