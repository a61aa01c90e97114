"""Code that a note's kernel executes to pack variables for a job. Standard library only.

``values`` sends the text of this file and sets ``NAMES``, the variables to pack; ``LIBRARY``, a zip
of the modules that pack them; ``TARGET``, the file to write; ``LIMIT``, its maximum size; and
``VARIABLES``, the variables of the session. Errors are written to ``TARGET`` + ".json".
"""

# mypy: ignore-errors
# ruff: noqa: F821

from __future__ import annotations

import json
import sys


def _pack(variables):
    own = [name for name in variables if name[:1] != "_" and name not in ("In", "Out")]
    missing = [name for name in NAMES if name not in variables]
    if missing:
        return {"missing": missing[0], "own": own[:2000]}
    known = set(sys.modules)
    sys.path.insert(0, LIBRARY)
    try:
        # cost: the library can be imported here only.
        from submarine_runtime.values import ValuesError, pack_values
    finally:
        sys.path.remove(LIBRARY)
        for name in set(sys.modules) - known:
            if name.partition(".")[0] == "submarine_runtime":
                del sys.modules[name]
    try:
        pack_values({name: variables[name] for name in NAMES}, TARGET, limit=LIMIT)
    except ValuesError as error:
        return {"wrong": str(error)[:2000]}
    return {}


with open(TARGET + ".json", "w", encoding="utf-8") as _file:
    json.dump(_pack(VARIABLES), _file)
