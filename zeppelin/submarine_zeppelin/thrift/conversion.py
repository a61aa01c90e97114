"""Convert between structures of the thrift protocol and types of ``interface``.

Malformed forms and settings are ignored, so that the paragraph still runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from submarine_zeppelin.interface import ANONYMOUS, Code, Completion, Context, Result
from submarine_zeppelin.thrift.event_client import wire_message
from submarine_zeppelin.thrift.idl import protocol

#: Zeppelin does not replace ``${...}`` in the code, except in paragraphs with the option
#: ``form=simple``, and the interpreter provides the forms.
FORM_TYPE = "NATIVE"
_RECOVER = "isRecover"


def context_of(wire: Any) -> Context:
    """Convert the context of a run."""
    options = {str(key): str(value) for key, value in (wire.localProperties or {}).items()}
    recovering = options.pop(_RECOVER, "").lower() == "true"
    identity = json_object(wire.authenticationInfo)
    gui = json_object(wire.gui)
    roles = identity.get("roles")
    return Context(
        note_id=wire.noteId or "",
        paragraph_id=wire.paragraphId or "",
        note_name=wire.noteName or "",
        title=wire.paragraphTitle or "",
        text=wire.paragraphText or "",
        user=str(identity.get("user") or ANONYMOUS),
        roles=tuple(str(role) for role in roles) if isinstance(roles, list) else (),
        options=options,
        params=_object(gui.get("params")),
        forms=_object(gui.get("forms")),
        config=json_object(wire.config),
        recovering=recovering,
    )


def wire_result(result: Result, wire: Any) -> Any:
    """Convert a result for ``interpret``. The server retries if a field is missing."""
    return protocol.RemoteInterpreterResult(
        code=Code(result.code).value,
        msg=[wire_message(message) for message in result.messages],
        config=_valid_object(wire.config),
        gui=_valid_object(wire.gui) if result.forms is None else json.dumps(dict(result.forms)),
        noteGui=_valid_object(wire.noteGui),
    )


def wire_completion(completion: Completion) -> Any:
    """Convert a completion."""
    return protocol.InterpreterCompletion(
        name=completion.name, value=completion.value, meta=completion.meta
    )


def json_object(text: str | None) -> dict[str, Any]:
    """Parse a JSON object; return an empty one if the text is not an object."""
    try:
        return _object(json.loads(text or "{}"))
    except (ValueError, RecursionError):
        return {}


def _object(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _valid_object(text: str | None) -> str:
    """Return the text of a JSON object unchanged, or ``{}``."""
    return text if text and json_object(text) else "{}"
