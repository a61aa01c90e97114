"""Forms in the text of paragraphs on a real Zeppelin server, with jobs of the local backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.zeppelin.page import Page
from tests.zeppelin.server import Zeppelin, output_of

pytestmark = [pytest.mark.cluster, pytest.mark.full]
TEXT = "%submarine.python\nprint(f'${rate=0.1}', '${checkbox:on=x|y,x(X)|y|z}')"
SIMPLE = "%submarine.python(form=simple)\nprint('${name}', '${city=b,b(Bern)|z}', '${sum}')"
RUN = "%submarine run forms --memory ${memory=300M,300M|400M} --wait"


@pytest.fixture
def local_zeppelin(zeppelin_home: Path) -> Iterator[Zeppelin]:
    server = Zeppelin(zeppelin_home / "forms", {"SUBMARINE_BACKEND": "local"})
    server.install(**{"submarine.allow.service.user": "true"})
    try:
        server.start()
        yield server
    finally:
        server.close()


def test_forms_in_the_text(local_zeppelin: Zeppelin) -> None:
    note = local_zeppelin.note("text", ("", TEXT), ("", SIMPLE), ("", RUN))
    own, simple, run = note.paragraphs
    # Their values are not known to the process.
    assert "Paragraph 1: the value of its form ${rate=...}" in output_of(note.run(run))
    first = note.run(own)
    assert output_of(first) == "0.1 x,y\n"
    forms = first["settings"]["forms"]
    assert list(forms) == ["rate", "on"]
    assert forms["on"]["options"][0] == {"value": "x", "displayName": "X"}
    assert output_of(note.run(simple)) == " b \n"
    with Page(local_zeppelin, note) as page:
        page.run(own, TEXT, rate="5", on=["z"])
        shown = note.awaited(own, lambda now: "5 z" in output_of(now))
        assert list(shown["settings"]["forms"]) == ["rate", "on"]
        page.run(simple, SIMPLE, name="Eve", city="z", sum="2")
        shown = note.awaited(simple, lambda now: "Eve z 2" in output_of(now))
        assert list(shown["settings"]["forms"]) == ["name", "city", "sum"]
        page.run(run, RUN, memory="400M")
        done = note.awaited(run, lambda now: "Eve z 2" in output_of(now))
    done = note.ended(run)
    assert done["status"] == "FINISHED", output_of(done)
    assert "5 z" in output_of(done)
    assert done["settings"]["params"] == {"memory": "400M"}
    # After a change of its text.
    note.change(simple, SIMPLE + "\n")
    assert "its form ${name} is not known" in output_of(note.run(run))
