"""The interpreters of the group: ``%submarine``, ``%submarine.python``, ``%submarine.sh``.

Import the module of an interpreter on its creation, so that the process starts fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

from submarine_zeppelin.interface.interpreter import Interpreter, Server


class Entry(NamedTuple):
    """One interpreter of the group: name, Zeppelin's key, Python module, language of the editor.

    Attributes
    ----------
    name
        Name after ``%`` or ``%submarine.``: ``submarine``, ``python`` or ``sh``.
    class_name
        Key of the interpreter for Zeppelin's server.
    module
        Python module with the class.
    language
        Language of the paragraph editor.
    """

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
#: Class names of Zeppelin's former Submarine interpreter, so that settings made for it still work.
LEGACY_CLASSES = {
    "org.apache.zeppelin.submarine.SubmarineInterpreter": "submarine",
    "org.apache.zeppelin.submarine.PySubmarineInterpreter": "python",
    "org.apache.zeppelin.submarine.SubmarineShellInterpreter": "sh",
}
_BY_CLASS = {entry.class_name: entry.name for entry in ENTRIES} | LEGACY_CLASSES


def make_interpreter(
    class_name: str, properties: Mapping[str, str], server: Server, session: str
) -> Interpreter:
    """Create the interpreter of a class name for one session.

    Raises
    ------
    KeyError
        If the group has no such class name.
    """
    name = _BY_CLASS[class_name]
    entry = next(entry for entry in ENTRIES if entry.name == name)
    # Jobs and kernels are not imported before an interpreter needs them.
    interpreter_class = import_module(entry.module).INTERPRETER
    interpreter: Interpreter = interpreter_class(properties, server, session)
    return interpreter
