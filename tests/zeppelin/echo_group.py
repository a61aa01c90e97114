"""An interpreter group of the simplest kind, in a process of ours: started by Zeppelin in tests.

Each line of a paragraph is an order. A run is counted before anything else is done, so that a test
sees how often a paragraph was really run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from submarine_zeppelin.execution import sessions
from submarine_zeppelin.interface import (
    Code,
    Completion,
    Context,
    Interpreter,
    Kind,
    Message,
    Output,
    ParagraphGoneError,
    Result,
    Server,
)
from submarine_zeppelin.service import main

CLASS_NAME = "echo"


class Echo(Interpreter):
    def __init__(self, properties: Mapping[str, str], server: Server, session: str) -> None:
        super().__init__(properties, server, session)
        self._cancelled: set[str] = set()
        self._active: dict[str, Path] = {}
        self._percent: dict[str, int] = {}
        self._told: dict[str, Path] = {}

    def interpret(self, text: str, context: Context, output: Output) -> Result:
        self._cancelled.discard(context.paragraph_id)
        said: list[Message] = []
        code = Code.KEEP
        for line in text.strip().splitlines():
            word, _, rest = line.partition(" ")
            order = getattr(self, f"_do_{word}", None)
            if order is None:
                raise ValueError(f"no order {word}")
            answer = order(rest, context, output)
            if answer is False:
                return Result(Code.KEEP)
            if isinstance(answer, Message):
                said.append(answer)
                code = Code.SUCCESS
            if isinstance(answer, Result):
                return answer
        return Result(code, tuple(said))

    def _do_count(self, rest: str, context: Context, output: Output) -> None:
        with Path(rest).open("a") as file:
            file.write(f"{context.paragraph_id} {context.recovering}\n")

    def _do_say(self, rest: str, context: Context, output: Output) -> Message:
        return Message(Kind.TEXT, rest)

    def _do_who(self, rest: str, context: Context, output: Output) -> Message:
        return Message(Kind.TEXT, f"{context.user} {self.session} {sorted(context.options)}")

    def _do_fail(self, rest: str, context: Context, output: Output) -> Result:
        return Result(Code.ERROR, (Message(Kind.TEXT, rest),))

    def _do_raise(self, rest: str, context: Context, output: Output) -> None:
        raise RuntimeError(rest)

    def _do_raise_property(self, rest: str, context: Context, output: Output) -> None:
        raise RuntimeError(f"property is {self.properties.get(rest)}")

    def _do_html(self, rest: str, context: Context, output: Output) -> None:
        output.show([Message(Kind.HTML, rest)])

    def _do_lines(self, rest: str, context: Context, output: Output) -> None:
        for number in range(int(rest)):
            output.append(f"line {number} of an output\n")

    def _do_percent(self, rest: str, context: Context, output: Output) -> None:
        self._percent[context.paragraph_id] = int(rest)

    def _do_list(self, rest: str, context: Context, output: Output) -> Message:
        found = self.server.paragraphs(context.note_id, context.user)
        return Message(Kind.TEXT, "\n".join(f"{one.title}|{one.text!r}" for one in found))

    def _do_link(self, rest: str, context: Context, output: Output) -> None:
        output.link("JOB", rest)

    def _do_put(self, rest: str, context: Context, output: Output) -> None:
        name, _, value = rest.partition(" ")
        self.server.resources.put(name, json.loads(value))

    def _do_get(self, rest: str, context: Context, output: Output) -> Message:
        return Message(Kind.TEXT, json.dumps(self.server.resources.get(rest)))

    def _do_child(self, rest: str, context: Context, output: Output) -> None:
        with Path(rest).open("w") as file:
            child = subprocess.Popen(["sleep", "1000"])
            file.write(str(child.pid))

    def _do_await(self, rest: str, context: Context, output: Output) -> bool:
        """Until a file is there, or the run is cancelled."""
        while not Path(rest).exists():
            if context.paragraph_id in self._cancelled:
                return False
            time.sleep(0.02)
        return True

    def _do_deaf(self, rest: str, context: Context, output: Output) -> None:
        while not Path(rest).exists():
            time.sleep(0.02)

    def _do_active(self, rest: str, context: Context, output: Output) -> None:
        """What it began is active until the file is there."""
        self._active[context.paragraph_id] = Path(rest)

    def _do_later(self, rest: str, context: Context, output: Output) -> None:
        """Go on showing after the end: a number, until a file is there.

        A second file is made where the paragraph has gone.
        """
        over, _, gone = rest.partition(" ")

        def show() -> None:
            number = 0
            try:
                while not Path(over).exists():
                    number += 1
                    output.show([Message(Kind.HTML, f"<b>number {number}</b>")])
                    time.sleep(0.2)
                output.show([Message(Kind.HTML, "<b>over</b>")])
            except ParagraphGoneError:
                Path(gone).touch()

        threading.Thread(target=show, daemon=True).start()

    def _do_oncancel(self, rest: str, context: Context, output: Output) -> None:
        """A file is made when the run is cancelled."""
        self._told[context.paragraph_id] = Path(rest)

    def serial_key(self, context: Context) -> str:
        return context.title or context.note_id

    def active(self, context: Context) -> bool:
        path = self._active.get(context.paragraph_id)
        return path is not None and not path.exists()

    def cancel(self, context: Context) -> None:
        if told := self._told.get(context.paragraph_id):
            told.touch()
        self._cancelled.add(context.paragraph_id)

    def progress(self, context: Context) -> int:
        return self._percent.get(context.paragraph_id, 0)

    def completion(self, text: str, cursor: int, context: Context) -> list[Completion]:
        return [Completion(f"after {text[:cursor]}", "value", "meta")]


def make(class_name: str, properties: Mapping[str, str], server: Server, session: str) -> Echo:
    if class_name != CLASS_NAME:
        raise KeyError(class_name)
    return Echo(properties, server, session)


if __name__ == "__main__":
    sessions.make_interpreter = make  # type: ignore[attr-defined]
    sys.exit(main())
