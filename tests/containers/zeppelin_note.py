"""A note of Zeppelin whose paragraphs run in the real interpreter process, in the cell.

`python -m tests.containers.zeppelin_note PLAN`: runs the paragraphs of the plan, a JSON object, and
prints what each shows. A stand-in takes the place of Zeppelin's server: it keeps the note, and
takes the registration and the output of the process.
"""

from __future__ import annotations

import getpass
import json
import os
import sys
import threading
from typing import Any

from submarine_zeppelin.installation import start_trial_process
from submarine_zeppelin.interface import ENTRIES
from submarine_zeppelin.thrift import protocol
from tests.unit.zeppelin.execution.fake_server import FakeZeppelin

NOTE, SESSION = "2jcell", "session"
#: Seconds for one paragraph, the end of its job included.
PATIENCE = 200.0


class NoteServer(FakeZeppelin):
    """Zeppelin's event service with the paragraphs of one note."""

    def __init__(self, paragraphs: list[dict[str, Any]]) -> None:
        super().__init__()
        self._paragraphs = paragraphs
        self.registered, self.port = threading.Event(), 0

    def registerInterpreterProcess(self, info: Any) -> None:
        self.port = info.port
        self.registered.set()

    def getParagraphList(self, user: str, note: str) -> list[Any]:
        return [
            protocol.ParagraphInfo(
                noteId=note,
                paragraphId=f"p{index}",
                paragraphTitle=one["title"],
                paragraphText=one["text"],
            )
            for index, one in enumerate(self._paragraphs)
        ]


def run(plan: dict[str, Any]) -> list[dict[str, str]]:
    """Run the paragraphs of `%submarine`; return their codes and texts."""
    paragraphs, properties = plan["paragraphs"], plan["properties"]
    server: Any = NoteServer(paragraphs)
    runner = [sys.executable, "-m", "submarine_zeppelin"]
    # Zeppelin's launcher passes the properties with such names as variables too.
    upper = {name: value for name, value in properties.items() if name == name.upper()}
    entry = next(one for one in ENTRIES if one.name == "submarine")
    user, found = getpass.getuser(), []
    environment = {**os.environ, **upper}
    with start_trial_process(runner, environment, events=server, timeout=PATIENCE) as up:
        up.client.init(properties)
        for one in ENTRIES:
            up.client.createInterpreter(NOTE, SESSION, one.class_name, properties, user)
        for index, paragraph in enumerate(paragraphs):
            whole = paragraph["text"]
            head, _, text = whole.partition(" ")
            if head != "%submarine":
                continue
            context = protocol.RemoteInterpreterContext(
                noteId=NOTE, noteName="cell", paragraphId=f"p{index}", paragraphText=whole,
                paragraphTitle=paragraph["title"], replName="submarine",
                authenticationInfo=json.dumps({"user": user}), config="{}", noteGui="{}",
                gui=json.dumps({"params": paragraph["params"], "forms": {}}), localProperties={},
            )  # fmt: skip
            result = up.client.interpret(SESSION, entry.class_name, text, context)
            shown = server.shown.get(f"p{index}", ())
            texts = [one.data for one in (*shown, *(result.msg or ()))]
            found.append({"code": str(result.code), "text": "\n".join(texts)})
    return found


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
