"""The three entries of the group: ``%submarine``, ``%submarine.python``, ``%submarine.sh``.

What each needs is imported when its first paragraph comes: the process must be ready at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

from submarine_zeppelin.interface.interpreter import Interpreter, Server


class Entry(NamedTuple):
    """One entry of the group: its name, the key by which Zeppelin asks for it, where it lives."""

    name: str
    class_name: str
    module: str
    language: str


ENTRIES = (
    Entry(
        "submarine",
        "submarine_zeppelin.Submarine",
        "submarine_zeppelin.submarine.interpreter",
        "sh",
    ),
    Entry("python", "submarine_zeppelin.Python", "submarine_zeppelin.local.python", "python"),
    Entry("sh", "submarine_zeppelin.Shell", "submarine_zeppelin.local.shell", "sh"),
)
#: The class names of Zeppelin's former interpreter: settings that were made for it go on to work.
FORMER = {
    "org.apache.zeppelin.submarine.SubmarineInterpreter": "submarine",
    "org.apache.zeppelin.submarine.PySubmarineInterpreter": "python",
    "org.apache.zeppelin.submarine.SubmarineShellInterpreter": "sh",
}
_BY_CLASS = {entry.class_name: entry.name for entry in ENTRIES} | FORMER


def make(
    class_name: str, properties: Mapping[str, str], server: Server, session: str
) -> Interpreter:
    """The interpreter of a class name, for one session; cheap.

    Raises
    ------
    KeyError
        If there is none of that name.
    """
    name = _BY_CLASS[class_name]
    entry = next(entry for entry in ENTRIES if entry.name == name)
    found = import_module(entry.module).INTERPRETER
    made: Interpreter = found(properties, server, session)
    return made
