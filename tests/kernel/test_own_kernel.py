"""Settings of the kernel's kernelspec, and help in the inspector."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.notebook.conftest import TIMEOUT, Notebook

Opened = Callable[[Mapping[str, Any]], Notebook]


def test_the_kernelspec_decides_where_and_how_jobs_run(opened: Opened) -> None:
    defaults = {"memory": "333M", "param": {"lr": 0.5}}
    notebook = opened({"backend": "local", "queue": "ml", "run": defaults})
    # Processes that the kernel starts use the same settings.
    assert notebook.good("!echo $SUBMARINE_QUEUE").stdout.strip() == "ml"
    notebook.good("%%submarine --only\nprint('lr', SUBMARINE)")
    dry = notebook.good("%submarine run x --dry-run --force --json").stdout
    spec = json.loads(dry)["spec"]
    assert spec["roles"][0]["resources"]["memory"] == 333
    assert (spec["params"], spec["queue"]) == ({"lr": 0.5}, "ml")
    typed = notebook.good("%submarine run x --dry-run --force --json --memory 1G").stdout
    assert json.loads(typed)["spec"]["roles"][0]["resources"]["memory"] == 1024


@pytest.mark.parametrize(
    ("submarine", "message"),
    [
        ({"quue": "ml"}, "has no setting 'quue'"),
        ({"run": {"gpuu": 1}}, "'gpuu' is not an option"),
    ],
)
def test_an_invalid_kernelspec_prevents_runs_only(
    opened: Opened, submarine: Mapping[str, Any], message: str
) -> None:
    notebook = opened(submarine)
    assert notebook.good("6 * 7").result == {"text/plain": "42"}
    notebook.good("%submarine list")
    failed = notebook.run("%submarine run x")
    assert message in failed.evalue


def inspected(notebook: Notebook, code: str, cursor: int | None = None) -> str | None:
    """Return the text of the inspector; None if it finds nothing."""
    reply = notebook.client.inspect(code, cursor, reply=True, timeout=TIMEOUT)["content"]
    assert reply["status"] == "ok"
    return str(reply["data"]["text/plain"]) if reply["found"] else None


def test_the_inspector_knows_verbs_and_options(opened: Opened) -> None:
    notebook = opened({})
    line = "job = %submarine run digits --gpu 2 --memory 8G"
    on_gpu = inspected(notebook, line, line.index("gpu") + 1)
    assert on_gpu is not None
    assert on_gpu.startswith("--gpu N")
    assert inspected(notebook, line, line.index(" 2") + 1) == on_gpu
    on_run = inspected(notebook, line, line.index("digits") + 3)
    assert on_run is not None
    assert "Run a program, a notebook or the collected cells" in on_run
    assert "--gpu" in on_run
    assert "collected cells" in (inspected(notebook, "x = 1\n%submarine") or "")
    assert "--only" in (inspected(notebook, "%%submarine --on") or "")
    assert "install" in (inspected(notebook, "%submarine kernel") or "")
    for nothing in ("%submarine runn", "%submarine run --gpuu", "%submarine_x runn"):
        assert inspected(notebook, nothing) is None, nothing
    # Other words are inspected by IPython.
    notebook.good("def mine(a):\n    'My own text of submarine.'")
    assert "My own text" in (inspected(notebook, "mine") or "")
    assert "Change the current working" in (inspected(notebook, "%cd") or "")


def test_a_question_mark_shows_the_same(opened: Opened) -> None:
    notebook = opened({})

    def paged(code: str) -> str:
        message = notebook.client.execute(code)
        reply = notebook.client.get_shell_msg(timeout=TIMEOUT)
        while reply["parent_header"].get("msg_id") != message:
            reply = notebook.client.get_shell_msg(timeout=TIMEOUT)
        assert reply["content"]["status"] == "ok", reply["content"]
        return "".join(item["data"]["text/plain"] for item in reply["content"]["payload"])

    assert paged("%submarine run --gpu?").startswith("--gpu N")
    assert "Cancel a job" in paged("%submarine cancel?")
    assert "Jobs" in paged("%submarine?")
    assert "--only" in paged("%%submarine?")
