"""Jobs from a notebook, on the local backend: cards, results, failures, interrupts, restarts."""

from __future__ import annotations

import contextlib
import json
import re
import time
from pathlib import Path

import nbformat

from submarine_jobs.display import MIME_TYPE
from tests.notebook.conftest import Notebook, Ran

SLOW = """%%submarine --only
import time
for i in range({n}):
    print('step', i)
    time.sleep(0.2)
"""
#: Runs until the file exists.
HELD = """%%submarine --only
import os, time
while not os.path.exists({go!r}):
    time.sleep(0.1)
"""
MODEL = """%%submarine --only --file model.py
import json

def read(x):
    y = x
    return json.loads(y)
"""
EVIL = "<script>alert(1)</script>\\x1b]0;title\\x07\\x1b[31mred\\x1b[2J\\u202e<img src=x onerror=y>"


def plain(text: str) -> str:
    return re.sub("\x1b\\[[0-9;]*m", "", text)


def text_of(ran: Ran) -> str:
    return ran.stdout + "".join(item["data"]["text/plain"] for item in ran.displays)


def states(ran: Ran) -> list[str]:
    """Return the states of the job in the execution's output."""
    return [item["data"][MIME_TYPE]["state"] for item in [*ran.displays, *ran.updates]]


def test_run_and_wait_shows_one_card_that_ends_with_the_result(notebook: Notebook) -> None:
    notebook.good("%%submarine --only --file model.py\ndef f(n):\n    return n / 4")
    notebook.good(
        "%%submarine --only\nfrom model import f\nfor i in range(3):\n    print('row', i)\n"
        "acc = f(3)"
    )
    ran = notebook.good("job = %submarine run demo --wait --return acc")
    assert len(ran.displays) == 1
    assert ran.result is None
    assert states(ran)[-1] == "SUCCEEDED"
    last = ran.updates[-1]
    assert last["transient"] == ran.displays[0]["transient"]
    assert "Returned acc: 0.75" in last["data"]["text/plain"]
    assert "| row 2" in last["data"]["text/plain"]
    data = last["data"][MIME_TYPE]
    assert data["job_id"].startswith("demo-")
    assert data["job_dir"].endswith(data["job_id"])
    assert notebook.good("job.result['acc']").result == {"text/plain": "0.75"}


def test_a_job_as_the_last_value_is_shown_once(notebook: Notebook) -> None:
    notebook.good("%%submarine --only\nprint(1)")
    ran = notebook.good("job = %submarine run demo --wait\njob")
    assert len(ran.displays) == 1
    assert len(notebook.good("job").displays) == 1
    ran = notebook.good("%submarine show last")
    assert len(ran.cards) == 1
    assert ran.cards[0]["state"] == "SUCCEEDED"


def test_updates_belong_to_the_cell_of_the_run(notebook: Notebook) -> None:
    notebook.good(SLOW.format(n=8))
    started = time.monotonic()
    ran = notebook.good("job = %submarine run demo")
    assert ran.cards[0]["state"] != "SUCCEEDED"
    other = notebook.send("import time\nfor i in range(40):\n    print(i)\n    time.sleep(0.1)")
    notebook.until(lambda: states(ran)[-1] == "SUCCEEDED")
    passed = time.monotonic() - started
    notebook.wait(other)
    assert other.displays == []
    assert other.updates == []
    assert "step 7" in ran.updates[-1]["data"]["text/plain"]
    assert len(ran.updates) <= 4 * passed + 2
    before = len(ran.updates)
    notebook.listen(1.5)
    assert len(ran.updates) == before


def test_a_failed_job_raises_the_traceback_of_its_cells(notebook: Notebook) -> None:
    notebook.good(MODEL)
    notebook.good("%%submarine --only\nfrom model import read\n\nread('{')")
    ran = notebook.run("%submarine run demo --wait")
    assert ran.ename == "JobFailedError"
    shown = plain(ran.traceback)
    assert "JSONDecodeError" in shown
    assert "Cell In[2], line 4" in shown
    assert "----> 4 read('{')" in shown
    assert "Cell In[1], line 6, in read" in shown
    assert "----> 6     return json.loads(y)" in shown
    assert re.search(r"Job demo-\d{8}-\w+ FAILED: json.decoder.JSONDecodeError: Expecting", shown)
    assert "submarine_magics" not in shown
    assert 'Cell [1] "model.py", line 6, in read' in ran.updates[-1]["data"]["text/plain"]


def test_a_changed_cell_is_not_quoted(notebook: Notebook) -> None:
    notebook.good("%%submarine --only\nx = 1\n1 / 0", cell_id="a")
    notebook.run("%submarine run demo --wait")
    notebook.restart()
    notebook.good("1")
    ran = notebook.run("%submarine wait demo")
    shown = plain(ran.traceback)
    assert ran.ename == "JobFailedError"
    assert 'Cell [1] "main.py", line 3, in <module>' in shown
    assert "ZeroDivisionError: division by zero" in shown


def test_a_failure_without_python_traceback_is_one_sentence(notebook: Notebook) -> None:
    notebook.good("%%submarine --only\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    ran = notebook.run("%submarine run demo --wait")
    assert ran.ename == "JobFailedError"
    assert "FAILED" in ran.traceback
    assert "Traceback" not in ran.traceback


def test_the_traceback_of_an_exit_code_has_its_line(notebook: Notebook) -> None:
    notebook.good("%%submarine --only\nimport sys\nsys.exit(3)")
    ran = notebook.run("%submarine run demo --wait")
    assert "----> 3 sys.exit(3)" in plain(ran.traceback)
    assert "SystemExit: 3" in plain(ran.traceback)
    assert "exit code 3" in ran.updates[-1]["data"]["text/plain"].lower()


def test_interrupting_a_wait_detaches(notebook: Notebook) -> None:
    go = notebook.folder / "go"
    notebook.good(HELD.format(go=str(go)))
    ran = notebook.send("%submarine run demo --wait")
    notebook.until(lambda: ran.updates and states(ran)[-1] == "RUNNING")
    notebook.manager.interrupt_kernel()
    notebook.wait(ran)
    assert ran.ename == "WaitInterrupted"
    assert "goes on" in ran.stdout
    assert re.search(r"%submarine cancel demo-\S+", ran.stdout)
    assert "Traceback" not in ran.traceback
    go.touch()
    notebook.good("%submarine wait last")
    assert states(ran)[-1] == "SUCCEEDED"


def test_a_failed_or_interrupted_wait_binds_its_own_job(notebook: Notebook) -> None:
    notebook.good("%%submarine --only\n1 / 0", cell_id="a")
    notebook.good("job = waited = nested = 'an earlier job'")
    assert notebook.run("job = %submarine run first --wait").ename == "JobFailedError"
    assert notebook.good("job.name").result == {"text/plain": "'first'"}
    assert notebook.run("waited = %submarine wait first").ename == "JobFailedError"
    assert notebook.good("waited.name").result == {"text/plain": "'first'"}
    notebook.good(
        "def train():\n"
        "    nested = %submarine run second --wait\n"
        "try:\n    train()\nexcept Exception as failed:\n    found = failed.job"
    )
    assert notebook.good("found.name, nested").result == {
        "text/plain": "('second', 'an earlier job')"
    }
    go = notebook.folder / "go"
    notebook.good(HELD.format(go=str(go)), cell_id="a")
    ran = notebook.send("%%time\njob = %submarine run third --wait")
    notebook.until(lambda: ran.updates and states(ran)[-1] == "RUNNING")
    notebook.manager.interrupt_kernel()
    notebook.wait(ran)
    assert ran.ename == "WaitInterrupted"
    assert notebook.good("job.name").result == {"text/plain": "'third'"}
    notebook.good("job.cancel()")


def test_last_is_the_newest_job_of_this_notebook(tmp_path: Path, kernels: Path) -> None:
    (tmp_path / "a.ipynb").write_text(nbformat.writes(nbformat.v4.new_notebook()))
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    named = {**state, "JPY_SESSION_NAME": str(tmp_path / "a.ipynb")}
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one = Notebook(tmp_path / "one", kernels, environment=named)
    with (
        contextlib.closing(one),
        contextlib.closing(Notebook(tmp_path / "two", kernels, environment=state)) as two,
    ):
        refused = two.run("%submarine cancel last")
        assert "this notebook has not submitted a job" in plain(refused.evalue)
        for notebook, name in ((one, "first"), (two, "second")):
            notebook.good("%%submarine --only\nprint(1)")
            notebook.good(f"job = %submarine run {name} --wait")
        assert one.good("job = %submarine show last\njob.name").result == {"text/plain": "'first'"}
        found = two.good("import submarine_jobs\nsubmarine_jobs.find_job('last').name")
        assert found.result == {"text/plain": "'second'"}
        # The path of the document remains valid after the kernel.
        one.restart()
        assert one.good("job = %submarine show last\njob.name").result == {"text/plain": "'first'"}


def test_interrupting_a_wait_can_cancel(notebook: Notebook) -> None:
    notebook.good(SLOW.format(n=300))
    ran = notebook.send("%submarine run demo --wait --on-interrupt cancel")
    notebook.until(lambda: ran.updates and states(ran)[-1] == "RUNNING")
    notebook.manager.interrupt_kernel()
    notebook.wait(ran)
    assert "was cancelled" in ran.stdout
    assert notebook.good("%submarine show last").cards[0]["state"] == "CANCELLED"


def test_the_job_survives_the_kernel(notebook: Notebook) -> None:
    notebook.good(SLOW.format(n=15))
    job_id = notebook.good("%submarine run demo").cards[0]["job_id"]
    notebook.restart()
    notebook.good(f"job = %submarine wait {job_id}")
    shown = notebook.good(f"%submarine show {job_id[:-2]}").cards[0]
    assert shown["job_id"] == job_id
    assert shown["state"] == "SUCCEEDED"
    assert "step 14" in text_of(notebook.good(f"%submarine logs {job_id}"))


def test_the_body_below_run_is_the_last_paragraph(notebook: Notebook) -> None:
    notebook.good("%%submarine --only\nx = 20")
    ran = notebook.good("job = None")
    ran = notebook.good("%%submarine run demo --wait --return x\nx = x + 1\nprint('in the job')")
    assert "in the job" in ran.updates[-1]["data"]["text/plain"]
    assert "in the job" not in ran.stdout
    assert "Returned x: 21" in ran.updates[-1]["data"]["text/plain"]
    rows = json.loads(notebook.good("%submarine cells --json").stdout)["cells"]
    assert [row["source"] for row in rows] == ["x = 20"]
    failed = notebook.run("%%submarine run demo --wait\n\ny = x\ny / 0")
    assert "----> 4 y / 0" in plain(failed.traceback)


def test_variables_are_expanded_and_values_sent(notebook: Notebook) -> None:
    notebook.good("%%submarine --only\ntotal = sum(rows)\nprint(name_of_it)\nname_of_it = 'x'")
    notebook.good("rows = [1, 2]\nname_of_it = 'hello'\njob_name = 'named'")
    ran = notebook.good(
        "job = %submarine run {job_name} --with rows,name_of_it --return total --wait"
    )
    assert ran.updates[-1]["data"][MIME_TYPE]["name"] == "named"
    assert "Returned total: 3" in ran.updates[-1]["data"]["text/plain"]


def test_undefined_names_are_rejected_with_the_cell_that_defines_them(notebook: Notebook) -> None:
    notebook.good("rows = [1, 2]")
    notebook.good("%%submarine\nprint(rows)")
    ran = notebook.run("%submarine run demo")
    assert ran.ename == "UsageError"
    assert "rows" in ran.traceback
    assert "--with rows" in ran.traceback
    assert "No jobs" in text_of(notebook.good("%submarine list"))


def test_text_of_a_hostile_job_is_escaped(notebook: Notebook) -> None:
    notebook.good(f'%%submarine --only\nprint("{EVIL}", flush=True)\nraise ValueError("{EVIL}")')
    ran = notebook.run("%submarine run '<img src=x>' --wait")
    assert ran.status == "error"
    for shown in (*ran.displays, *ran.updates):
        html = shown["data"]["text/html"]
        assert "<script" not in html
        assert "<img" not in html
        assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", html)
        assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", shown["data"]["text/plain"])
    assert "\x1b]" not in ran.traceback
    assert "\x1b[2J" not in ran.traceback
    assert "\u202e" not in ran.traceback
    logs = notebook.good("%submarine logs last")
    text = text_of(logs)
    assert "alert(1)" in text
    assert "\x1b]0" not in text
    assert "<script" not in "".join(d["data"].get("text/html", "") for d in logs.displays)


def test_a_long_log_does_not_flood_the_output(notebook: Notebook) -> None:
    notebook.good("%%submarine --only\nfor i in range(60000):\n    print('x' * 60, i)")
    ran = notebook.good("%submarine run demo --wait")
    assert len(json.dumps(ran.updates[-1])) < 100_000
    logs = notebook.good("%submarine logs last")
    size = len(logs.stdout) + len(json.dumps(logs.displays))
    assert size < 2_500_000


def test_completion(notebook: Notebook) -> None:
    notebook.good("%%submarine --only\nprint(1)")
    job_id = notebook.good("%submarine run demo --wait").updates[-1]["data"][MIME_TYPE]["job_id"]
    assert set(notebook.complete("%submarine r")) == {"run", "rerun"}
    assert "--memory" in notebook.complete("job = %submarine run --me")
    assert notebook.complete("%%submarine --fi") == ["--file"]
    assert "--gpu" in notebook.complete("%%submarine run x --g")
    assert job_id in notebook.complete("%submarine show de")
    assert "local" in notebook.complete("%submarine run --backend ")
    assert "print" in notebook.complete("x = 1\npri")


def test_a_notebook_asks_whether_to_trust_a_projects_file(notebook: Notebook) -> None:
    """The question is asked once; if the front end cannot ask, the command fails at once."""
    file = notebook.folder / "submarine.toml"
    file.write_text('java_home = "/opt/jdk"\n')
    refused = notebook.run("%submarine list", attended=False)
    assert f"`submarine config trust {file}`" in refused.evalue + refused.stderr
    asked = notebook.send("%submarine list")
    question = notebook.client.get_stdin_msg(timeout=60)
    notebook.client.input("y")
    assert "Trust the file?" in question["content"]["prompt"]
    assert notebook.wait(asked).status == "ok"
    assert 'java_home  "/opt/jdk"' in asked.stdout
    assert notebook.run("%submarine list", attended=False).status == "ok"
