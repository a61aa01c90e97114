"""Convert messages of a kernel to a paragraph's output: text, tables, images, tracebacks.

Tracebacks contain paragraph names and lines in place of IPython's execution numbers.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from submarine_jobs.text import one_line
from submarine_runtime.translation import _
from submarine_zeppelin.display import OutputBuffer, convert_mime_bundle, terminal_html
from submarine_zeppelin.interface import DEFAULT_LIMIT, Kind
from submarine_zeppelin.local.context_server import ContextServer
from submarine_zeppelin.local.kernel import Kernel

_COLOUR = r"(?:\x1b\[[0-9;]*m)*"
_COLOURS = re.compile(_COLOUR)
#: IPython's name of an execution in a traceback, with or without colors.
_CELL_LABEL = re.compile(
    rf"Cell{_COLOUR} {_COLOUR}In{_COLOUR}\s?{_COLOUR}\[{_COLOUR}(\d+){_COLOUR}\]"
)
_MAX_NAMES = 2000


class PythonSession:
    """The Python session of a note."""

    def __init__(self, kernel: Kernel, context: ContextServer) -> None:
        self.kernel = kernel
        self.context = context
        #: Held while a paragraph runs.
        self.lock = threading.Lock()
        #: Execution number -> name of the paragraph.
        self.paragraph_names: OrderedDict[int, str] = OrderedDict()
        self.modules: dict[str, str] = {}

    def remember(self, count: object, name: str) -> None:
        """Record the name of the paragraph of an execution."""
        if isinstance(count, int):
            self.paragraph_names[count] = name
            while len(self.paragraph_names) > _MAX_NAMES:
                self.paragraph_names.popitem(last=False)

    def replace_numbers(self, text: str) -> str:
        """Replace execution numbers in a traceback by paragraph names."""
        return _CELL_LABEL.sub(lambda m: self.paragraph_names.get(int(m[1]), m[0]), text)


class ExecutionOutput:
    """Writes the messages of one execution to an output buffer."""

    def __init__(self, output: OutputBuffer, session: PythonSession, name: str) -> None:
        self.output = output
        self._name = name
        self._session = session

    def handle(self, kind: str, content: Mapping[str, Any]) -> None:
        """Handle a message of the kernel."""
        if kind == "stream":
            self.output.write(str(content.get("text", "")))
        elif kind == "execute_input":
            self._session.remember(content.get("execution_count"), self._name)
        elif kind in ("display_data", "execute_result", "update_display_data"):
            self._display(kind, content)
        elif kind == "clear_output":
            self.output.clear(wait=bool(content.get("wait")))
        elif kind == "error":
            self._error(content)
        else:
            self.output.refresh()

    def handle_payload(self, items: object) -> bool:
        """Show help from ``?`` in a reply's payload, and return whether the process must end.

        Other payloads, which edit cells, are ignored.
        """
        ends = False
        for item in items if isinstance(items, list) else ():
            source = item.get("source") if isinstance(item, dict) else None
            if source == "page" and isinstance(item.get("data"), dict):
                words = item["data"].get("text/plain")
                self.output.write(f"{words}\n" if isinstance(words, str) else "")
            elif source == "ask_exit":
                ends = not item.get("keepkernel")
        return ends

    def describe_error(self, reply: Mapping[str, Any]) -> str:
        """Describe the exception of an execution, ``ValueError in line 3``; empty if none."""
        if reply.get("status") != "error":
            return ""
        lines = reply.get("traceback")
        text = "\n".join(str(line) for line in lines) if isinstance(lines, list) else ""
        named = _COLOURS.sub("", self._session.replace_numbers(text))
        places = re.findall(rf"{re.escape(self._name)}, line (\d{{1,9}})", named)
        where = _(" in line {places}").format(places=places[-1]) if self._name and places else ""
        return f"{one_line(str(reply.get('ename')), 100)}{where}"

    def _display(self, kind: str, content: Mapping[str, Any]) -> None:
        data = content.get("data")
        if not isinstance(data, dict):
            return
        display = str((content.get("transient") or {}).get("display_id") or "")
        for output_kind, text in convert_mime_bundle(data):
            if kind == "update_display_data":
                self.output.update(display, output_kind, text)
            elif output_kind is Kind.TEXT:
                self.output.write(text if text.endswith("\n") else text + "\n")
            else:
                self.output.add(output_kind, text, display)

    def _error(self, content: Mapping[str, Any]) -> None:
        lines = content.get("traceback")
        text = "\n".join(str(line) for line in lines) if isinstance(lines, list) else ""
        text = text or f"{content.get('ename')}: {content.get('evalue')}"
        page = terminal_html(self._session.replace_numbers(text), DEFAULT_LIMIT)
        self.output.add(Kind.HTML, page)
