"""What the messages of a kernel become in a paragraph: text, tables, pictures, tracebacks.

Tracebacks name paragraphs and their lines in the place of IPython's numbers of executions. Runs
nothing (``kernel``) and decides nothing of when a paragraph runs (``python``).
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from submarine_jobs.text import one_line
from submarine_zeppelin.display import Screen, terminal_html
from submarine_zeppelin.interface import Kind, properties as settings
from submarine_zeppelin.local.kernel import Kernel

TABLE = "application/vnd.submarine.table+json"
_COLOUR = r"(?:\x1b\[[0-9;]*m)*"
_COLOURS = re.compile(_COLOUR)
#: IPython's name of an execution in a traceback, in colours or without.
_PLACE = re.compile(rf"Cell{_COLOUR} {_COLOUR}In{_COLOUR}\s?{_COLOUR}\[{_COLOUR}(\d+){_COLOUR}\]")
_MAX_PLACES = 2000


class Session:
    """The Python session of one note."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        #: One paragraph at a time.
        self.turn = threading.Lock()
        #: Number of an execution -> what the paragraph is called.
        self.places: OrderedDict[int, str] = OrderedDict()
        self.modules: dict[str, str] = {}

    def remember(self, count: object, name: str) -> None:
        """Which paragraph an execution was."""
        if isinstance(count, int):
            self.places[count] = name
            while len(self.places) > _MAX_PLACES:
                self.places.popitem(last=False)

    def named(self, text: str) -> str:
        """A traceback with paragraphs in the place of numbers of executions."""
        return _PLACE.sub(lambda m: self.places.get(int(m[1]), m[0]), text)


class Shown:
    """What the messages of one execution become."""

    def __init__(self, screen: Screen, session: Session) -> None:
        self.screen = screen
        self.name = ""
        self._session = session

    def hear(self, kind: str, content: Mapping[str, Any]) -> None:
        """One message of the kernel."""
        if kind == "stream":
            self.screen.text(str(content.get("text", "")))
        elif kind == "execute_input":
            self._session.remember(content.get("execution_count"), self.name)
        elif kind in ("display_data", "execute_result", "update_display_data"):
            self._display(kind, content)
        elif kind == "clear_output":
            self.screen.clear(wait=bool(content.get("wait")))
        elif kind == "error":
            self._error(content)
        else:
            self.screen.tick()

    def payload(self, items: object) -> bool:
        """What a reply carries besides: help that ``?`` asked for; whether the program is to end.

        Other payloads, which edit cells, mean nothing in a note.
        """
        ends = False
        for item in items if isinstance(items, list) else ():
            source = item.get("source") if isinstance(item, dict) else None
            if source == "page" and isinstance(item.get("data"), dict):
                words = item["data"].get("text/plain")
                self.screen.text(f"{words}\n" if isinstance(words, str) else "")
            elif source == "ask_exit":
                ends = not item.get("keepkernel")
        return ends

    def raised(self, reply: Mapping[str, Any]) -> str:
        """What an execution raised, ``ValueError in line 3``; empty: nothing."""
        if reply.get("status") != "error":
            return ""
        lines = reply.get("traceback")
        text = "\n".join(str(line) for line in lines) if isinstance(lines, list) else ""
        named = _COLOURS.sub("", self._session.named(text))
        places = re.findall(rf"{re.escape(self.name)}, line (\d{{1,9}})", named)
        where = f" in line {places[-1]}" if self.name and places else ""
        return f"{one_line(str(reply.get('ename')), 100)}{where}"

    def _display(self, kind: str, content: Mapping[str, Any]) -> None:
        data = content.get("data")
        if not isinstance(data, dict):
            return
        display = str((content.get("transient") or {}).get("display_id") or "")
        for made, words in of_bundle(data):
            if kind == "update_display_data":
                self.screen.renew(display, made, words)
            elif made is Kind.TEXT:
                self.screen.text(words if words.endswith("\n") else words + "\n")
            else:
                self.screen.put(made, words, display)

    def _error(self, content: Mapping[str, Any]) -> None:
        lines = content.get("traceback")
        text = "\n".join(str(line) for line in lines) if isinstance(lines, list) else ""
        text = text or f"{content.get('ename')}: {content.get('evalue')}"
        page = terminal_html(self._session.named(text), settings.OUTPUT_LIMIT)
        self.screen.put(Kind.HTML, page)


def of_bundle(data: Mapping[str, Any]) -> list[tuple[Kind, str]]:
    """The form of a MIME bundle that Zeppelin shows best."""
    table = data.get(TABLE)
    if isinstance(table, dict) and isinstance(table.get("table"), str):
        found = [(Kind.TABLE, table["table"])]
        if table.get("rows") != table.get("shown"):
            found.append(
                (Kind.TEXT, f"The first {table.get('shown'):,} of {table.get('rows'):,} rows.")
            )
        return found
    if isinstance(data.get("image/png"), str):
        return [(Kind.IMG, data["image/png"].replace("\n", ""))]
    if isinstance(data.get("image/jpeg"), str):
        picture = data["image/jpeg"].replace("\n", "")
        return [(Kind.HTML, f'<img src="data:image/jpeg;base64,{picture}">')]
    for kind in ("text/html", "image/svg+xml"):
        if isinstance(data.get(kind), str):
            return [(Kind.HTML, data[kind])]
    plain = data.get("text/plain")
    return [(Kind.TEXT, plain)] if isinstance(plain, str) else []
