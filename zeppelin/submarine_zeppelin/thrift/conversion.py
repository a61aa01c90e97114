"""Between the protocol's structures and ours. What does not fit is left out, never refused.

A paragraph whose form or settings are odd is to run all the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from submarine_zeppelin.interface import Code, Completion, Context, Result
from submarine_zeppelin.thrift.event_client import wire_message
from submarine_zeppelin.thrift.idl import protocol

#: Who acts where Zeppelin authenticates nobody; its own name for them.
ANONYMOUS = "anonymous"
_RECOVER = "isRecover"


def context_of(wire: Any) -> Context:
    """Where and for whom a paragraph runs."""
    options = {str(key): str(value) for key, value in (wire.localProperties or {}).items()}
    recovering = options.pop(_RECOVER, "").lower() == "true"
    identity = json_object(wire.authenticationInfo)
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
        params=_object(json_object(wire.gui).get("params")),
        config=json_object(wire.config),
        recovering=recovering,
    )


def wire_result(result: Result, wire: Any) -> Any:
    """What ``interpret`` answers; the server retries where any of it is missing."""
    return protocol.RemoteInterpreterResult(
        code=Code(result.code).value,
        msg=[wire_message(message) for message in result.messages],
        config=_given(wire.config),
        gui=_given(wire.gui) if result.forms is None else json.dumps(dict(result.forms)),
        noteGui=_given(wire.noteGui),
    )


def wire_completion(completion: Completion) -> Any:
    """A proposal as the protocol has it."""
    return protocol.InterpreterCompletion(
        name=completion.name, value=completion.value, meta=completion.meta
    )


def json_object(text: str | None) -> dict[str, Any]:
    """The object that a JSON text holds, or an empty one."""
    try:
        return _object(json.loads(text or "{}"))
    except (ValueError, RecursionError):
        return {}


def _object(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _given(text: str | None) -> str:
    """A JSON object as it came, to the letter."""
    return text if text and json_object(text) else "{}"
