"""Code that a note's kernel executes to pack variables for a job. Standard library only.

``values`` sends the text of this file and sets ``NAMES``, the variables to pack; ``LIBRARY``, a zip
of the modules that pack them; ``TARGET``, the file to write; ``LIMIT``, its maximum size; and
``VARIABLES``, the variables of the session. Errors are written to ``TARGET`` + ".json". If
``TARGET`` is empty, the file and the errors are sent in a message of the type ``MIME``.
"""

# mypy: ignore-errors
# ruff: noqa: F821

from __future__ import annotations

import base64
import importlib
import json
import os
import sys
import tempfile


def _pack(variables, target, scratch):
    own = [name for name in variables if name[:1] != "_" and name not in ("In", "Out")]
    missing = [name for name in NAMES if name not in variables]
    if missing:
        return {"missing": missing[0], "own": own[:2000]}
    library = os.path.join(scratch, "library.zip")
    with open(library, "wb") as file:
        file.write(LIBRARY)
    known = set(sys.modules)
    sys.path.insert(0, library)
    try:
        # cost: the library can be imported here only.
        from submarine_runtime.values import ValuesError, pack_values
    finally:
        sys.path.remove(library)
        for name in set(sys.modules) - known:
            if name.partition(".")[0] == "submarine_runtime":
                del sys.modules[name]
    try:
        pack_values({name: variables[name] for name in NAMES}, target, limit=LIMIT)
    except ValuesError as error:
        return {"wrong": str(error)[:2000]}
    return {}


def _send(report, target):
    data = b""
    if not report:
        with open(target, "rb") as file:
            data = file.read()
    display = importlib.import_module("IPython.display")
    values = base64.b64encode(data).decode()
    display.publish_display_data({MIME: {"report": report, "values": values}})


with tempfile.TemporaryDirectory(prefix="submarine-values-") as _scratch:
    _target = TARGET or os.path.join(_scratch, "values.zip")
    _report = _pack(VARIABLES, _target, _scratch)
    if TARGET:
        with open(TARGET + ".json", "w", encoding="utf-8") as _file:
            json.dump(_report, _file)
    else:
        _send(_report, _target)
