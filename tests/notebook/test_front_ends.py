"""Headless execution, a terminal, subshells, and the kernelspec."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_notebook

from submarine_jobs.display import MIME_TYPE
from tests.notebook.conftest import TIMEOUT, Notebook, Ran, clean_environment

ROOT = Path(__file__).resolve().parents[2]


def execute(folder: Path, monkeypatch: pytest.MonkeyPatch, *sources: str) -> nbformat.NotebookNode:
    """Run cells headless in ipykernel's own kernel; return the executed document."""
    for name, value in clean_environment(folder).items():
        monkeypatch.setenv(name, value)
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    client = NotebookClient(
        notebook,
        timeout=300,  # TensorFlow on a busy machine
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        extra_arguments=["--log-level=40"],
    )
    with contextlib.suppress(CellExecutionError):
        client.execute()
    return notebook


def test_a_headless_notebook_ends_with_final_cards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed = execute(
        tmp_path,
        monkeypatch,
        "%load_ext submarine_magics",
        "%%submarine --only\nprint('hello from the job')\nacc = 0.5",
        "job = %submarine run demo --return acc",
        "%submarine wait last",
    )
    cards = [
        output["data"]
        for cell in executed.cells
        for output in cell.outputs
        if output.output_type == "display_data" and MIME_TYPE in output["data"]
    ]
    assert [card[MIME_TYPE]["state"] for card in cards] == ["SUCCEEDED", "SUCCEEDED"]
    html, _ = HTMLExporter().from_notebook_node(executed)
    assert html.count("hello from the job") >= 2
    assert "Returned acc" in html
    nbformat.validate(executed)


def test_a_failed_job_fails_a_headless_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed = execute(
        tmp_path,
        monkeypatch,
        "%load_ext submarine_magics",
        "%%submarine --only\nprint(1)\n1 / 0",
        "%submarine run demo --wait",
        "never = 1",
    )
    errors = [output for output in executed.cells[2].outputs if output.output_type == "error"]
    assert [error.ename for error in errors] == ["JobFailedError"]
    assert executed.cells[3].outputs == []
    assert executed.cells[3].execution_count is None


def test_subshells_work(notebook: Notebook) -> None:
    go = notebook.folder / "go"
    notebook.good(
        "%%submarine --only\nimport os, time\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.1)\nprint('end')"
    )
    created = _control(notebook, "create_subshell_request")["subshell_id"]
    ran = notebook.send("job = %submarine run demo --wait")
    notebook.until(lambda: bool(ran.displays))
    side = _send_to_subshell(notebook, created, "%%submarine\nside = 6 * 7\nprint('side', side)")
    notebook.until(lambda: "side 42" in side.stdout)
    assert not ran.status
    go.touch()
    notebook.wait(ran)
    assert "side 42" not in ran.stdout
    assert side.updates == []
    assert ran.updates[-1]["data"][MIME_TYPE]["state"] == "SUCCEEDED"
    rows = json.loads(notebook.good("%submarine cells --json").stdout)["cells"]
    assert [row["source"].split("\n")[0] for row in rows] == ["import os, time", "side = 6 * 7"]


def _control(notebook: Notebook, kind: str) -> dict[str, str]:
    message = notebook.client.session.msg(kind)
    notebook.client.control_channel.send(message)
    return dict(notebook.client.get_control_msg(timeout=TIMEOUT)["content"])


def _send_to_subshell(notebook: Notebook, subshell: str, code: str) -> Ran:
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": True}
    message = notebook.client.session.msg("execute_request", content)
    message["header"]["subshell_id"] = subshell
    notebook.client.shell_channel.send(message)
    ran = notebook.ran[message["header"]["msg_id"]] = Ran(message["header"]["msg_id"])
    return ran


def test_a_terminal_gets_text(tmp_path: Path) -> None:
    cells = (
        "%load_ext submarine_magics",
        "%%submarine --only\nprint('from the job')",
        "job = %submarine run demo --wait",
        "job",
        "%submarine cells",
    )
    code = "\n".join(f"get_ipython().run_cell({cell!r})" for cell in cells)
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", "-c", code],
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,  # TensorFlow on a busy machine
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "from the job\n" in done.stdout
    assert "SUCCEEDED" in done.stderr + done.stdout
    assert "main.py" in done.stdout
    assert "<div" not in done.stdout
    assert "<Job demo-" not in done.stdout


def test_no_question_is_asked_in_a_headless_run(notebook: Notebook) -> None:
    ran = notebook.good(
        "from submarine_magics.magics import SubmarineMagics\n"
        "SubmarineMagics.of(get_ipython()).frontend.confirm('Really?')",
        attended=False,
    )
    assert ran.result == {"text/plain": "False"}


def test_loading_twice_and_by_the_other_name(tmp_path: Path, kernels: Path) -> None:
    with contextlib.closing(Notebook(tmp_path, kernels, "python3")) as notebook:
        notebook.good("%load_ext submarine_kernel")
        notebook.good("%load_ext submarine_magics")
        notebook.good("%%submarine\nx = 1")
        assert notebook.good("%unload_ext submarine_magics").status == "ok"


def test_loading_imports_nothing_heavy(notebook: Notebook) -> None:
    ran = notebook.good(
        "import sys\nheavy = ('tensorflow', 'skein', 'grpc', 'hdfs_native', 'numpy', 'click')\n"
        "[name for name in heavy if name in sys.modules]"
    )
    assert ran.result == {"text/plain": "[]"}


def test_the_example_has_four_collected_cells_and_no_outputs() -> None:
    from submarine_jobs.program import bundle_from_notebook, marked_cells, read_notebook

    path = ROOT / "examples" / "digits.ipynb"
    cells = marked_cells(read_notebook(path))
    assert [cell.filename for cell in cells] == ["model.py", "model.py", "main.py", "main.py"]
    assert set(bundle_from_notebook(path).files) == {"model.py", "main.py"}
    raw = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in raw.cells)
    assert all(cell.get("execution_count") is None for cell in raw.cells)


@pytest.mark.full
def test_the_example_trains_as_it_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorflow")
    example = nbformat.read(ROOT / "examples" / "digits.ipynb", as_version=4)
    sources = [cell.source for cell in example.cells if cell.cell_type == "code"]
    executed = execute(tmp_path, monkeypatch, *sources)
    assert executed.cells[-1].outputs, "the last cell did not run"
    text = "".join(o.get("text", "") for cell in executed.cells for o in cell.outputs)
    assert "test accuracy of the loaded model: 0.9" in text
