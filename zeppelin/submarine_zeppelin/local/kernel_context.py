"""Code that a note's kernel executes at its start: the object ``z`` of Zeppelin. Standard library.

``kernel`` sends the text of this file and sets ``SOCKET``, the address of the interpreter, which
has the values of the forms and the shared resources. Each call uses a new connection. In a
container ``SOCKET`` is empty: a call is then a request for input, with a prompt that begins with
``PROMPT``.
"""

# mypy: ignore-errors
# ruff: noqa: F821, N802, N803, N806  (Zeppelin defines the names)

from __future__ import annotations

import importlib
import io
import json
import socket
import threading


class ZeppelinContext:
    """Forms of this paragraph, and values that the interpreters of this Zeppelin share."""

    def input(self, name, defaultValue=""):
        """Show a text field; return its text."""
        return _call("form", kind="TextBox", name=name, default=str(defaultValue))

    textbox = input

    def password(self, name):
        """Show a field for a password; return its text, or None."""
        return _call("form", kind="Password", name=name)

    def select(self, name, options, defaultValue=""):
        """Show a list of options, values or pairs of a value and its text; return a value."""
        pairs = _pairs(options)
        if defaultValue in ("", None) and pairs:
            defaultValue = pairs[0][0]
        found = _call("form", kind="Select", name=name, default=defaultValue, options=pairs)
        return next((value for value, _ in pairs if _same(value, found)), found)

    def checkbox(self, name, options, defaultChecked=()):
        """Show boxes, one for each option; return the list of the checked values."""
        pairs = _pairs(options)
        default = list(defaultChecked)
        found = _call("form", kind="CheckBox", name=name, default=default, options=pairs)
        return [value for value, _ in pairs if any(_same(value, one) for one in found or ())]

    def put(self, name, value):
        """Share a text, a number, a boolean, or a DataFrame, which is stored as a table."""
        if any(kind.__name__ == "DataFrame" for kind in type(value).__mro__):
            value = value.to_csv(sep="\t", index=False)
        elif type(value).__module__ == "numpy" and hasattr(value, "item"):
            value = value.item()
        if not isinstance(value, (str, bool, int, float)):
            raise TypeError(
                f"z.put: {name} is a {type(value).__name__}; share a text, number, boolean or "
                "DataFrame"
            )
        _call("put", name=name, value=value)

    def get(self, name):
        """Return a shared value; None if there is none of this name."""
        return _call("get", name=name)

    def getAsDataFrame(self, name):
        """Return a shared table as a DataFrame."""
        pandas = importlib.import_module("pandas")  # which the kernel may not have

        text = self.get(name)
        if not isinstance(text, str):
            raise KeyError(f"z.getAsDataFrame: there is no table {name}")
        return pandas.read_csv(io.StringIO(text), sep="\t")

    def contains(self, name):
        """Return whether there is a shared value of this name."""
        return _call("get", name=name) is not None

    def remove(self, name):
        """Remove a value that this interpreter process shares."""
        _call("remove", name=name)

    def show(self, value, **_):
        """Show a DataFrame as a table, a figure, or the text of a value."""
        display = importlib.import_module("IPython.display").display
        if getattr(value, "__name__", "") == "matplotlib.pyplot":
            value.show()
        elif hasattr(value, "toPandas"):
            display(value.toPandas())
        elif isinstance(value, str):
            print(value)
        else:
            display(value)

    __setitem__, __getitem__, __delitem__, __contains__ = put, get, remove, contains
    add = put

    def __repr__(self):
        return "<forms and shared values of Zeppelin>"


def _pairs(options):
    return [
        list(option[:2])
        if isinstance(option, (tuple, list)) and len(option) > 1
        else [option, None]
        for option in options
    ]


def _same(value, found):
    return value == found or str(value) == str(found)


def _call(operation, **fields):
    call = json.dumps({"op": operation, **fields})
    answer = json.loads(
        (_sent(call) if SOCKET else _requested(call)) or '{"error": "the paragraph has ended"}'
    )
    if "error" in answer:
        raise RuntimeError(f"z: {answer['error']}")
    return answer.get("value")


def _sent(call):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(SOCKET)
        connection.sendall(call.encode() + b"\n")
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as file:
            return file.read()


def _requested(call):
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("z: in a container only the main thread of the session can use it")
    kernel = importlib.import_module("IPython").get_ipython().kernel
    allowed = kernel._allow_stdin
    kernel._allow_stdin = True  # The interpreter refuses other requests for input.
    try:
        return kernel.raw_input(PROMPT + call)
    finally:
        kernel._allow_stdin = allowed
