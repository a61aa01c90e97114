"""Time, outputs, size and memory of a paragraph that prints 10,000 lines.

A real kernel runs behind ``%submarine.python``; a page that counts replaces Zeppelin. At the same
time a paragraph of another note is run repeatedly, and must not be delayed.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from submarine_zeppelin.interface import (
    Code,
    Context,
    Kind,
    Message,
    NoteParagraph,
    Output,
    Server,
    make_interpreter,
)

PROGRAMS = {
    "plain": "for n in range({lines}): print('line', n, 'of an output')",
    "coloured": "for n in range({lines}): print(f'\\x1b[3{{n % 8}}mline {{n}}\\x1b[0m of it')",
    "flushed": "for n in range({lines}): print('line', n, 'of an output', flush=True)",
}


class Counted(Output):
    """A page that counts its output."""

    def __init__(self) -> None:
        self.sent = 0
        self.characters = 0
        self.largest = 0

    def show(self, messages: Sequence[Message]) -> None:
        """Replace the output."""
        size = sum(len(one.data) for one in messages)
        self.sent += 1
        self.characters += size
        self.largest = max(self.largest, size)

    def append(self, text: str, kind: Kind = Kind.TEXT) -> None:
        """Append to the output."""
        self.sent += 1
        self.characters += len(text)

    def link(self, label: str, url: str, tooltip: str = "") -> None:
        """Do nothing."""


class Pages(Server):
    """Notes with one paragraph each."""

    def paragraphs(self, note_id: str, user: str) -> list[NoteParagraph]:
        """Return the paragraph."""
        return [NoteParagraph(note_id, f"paragraph_{note_id}", "", "%submarine.python\npass")]

    def output(self, context: Context) -> Counted:
        """Return the page."""
        return Counted()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=10_000)
    chosen = parser.parse_args()
    python = make_interpreter("submarine_zeppelin.Python", {}, Pages(), "session")

    def run(note: str, code: str) -> tuple[float, Counted]:
        page, began = Counted(), time.monotonic()
        result = python.interpret(f"\n{code}\n", Context(note, f"paragraph_{note}"), page)
        if result.code is not Code.SUCCESS:
            raise SystemExit(f"it failed: {result.messages}")
        page.largest = max(page.largest, sum(len(one.data) for one in result.messages))
        return time.monotonic() - began, page

    began = time.monotonic()
    run("loud", "1 + 1")
    print(f"first paragraph of a note: {time.monotonic() - began:.2f} s")
    run("quick", "1 + 1")
    print("lines     seconds  outputs  characters sent  largest output  paragraph beside it (p50)")
    for name, program in PROGRAMS.items():
        over = threading.Event()
        beside: list[float] = []

        def others(over: threading.Event, beside: list[float]) -> None:
            while not over.is_set():
                beside.append(run("quick", "1 + 1")[0])

        thread = threading.Thread(target=others, args=(over, beside))
        thread.start()
        seconds, page = run("loud", program.format(lines=chosen.lines))
        over.set()
        thread.join()
        print(
            f"{name:9} {seconds:7.2f}  {page.sent:7}  {page.characters:15,}  {page.largest:14,}  "
            f"{statistics.median(beside) * 1000:.0f} ms"
        )
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    print(f"memory of the interpreter: {pages * 4 // 1024} MiB")
    python.close()


if __name__ == "__main__":
    main()
