"""The changes that CONTRIBUTING.md describes, made in a copy of the tree."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    *("runtime", "jobs", "magics", "kernel", "minicluster", "server_ext", "workflows", "zeppelin"),
)
REASON = """    BEAD_LOST = Meaning(
        "bead_lost",
        State.FAILED,
        _("A bead of the abacus was lost."),
        _("Count the beads and run the job again."),
        retry_helps=True,
    )

    def __str__"""

#: Print what `submarine show` prints for a job with the new reason.
SHOW_REASON = """
from submarine_jobs.display import text
from submarine_jobs.model import JobView
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.record import JobRecord
from submarine_runtime.protocol.states import State

record = JobRecord("abacus-1", "abacus", State.FAILED, reason=EndReason.BEAD_LOST)
print(text(JobView(record)))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("tree")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    return copy


def run(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the packages of the copy."""
    path = [str(tree), *(str(tree / name) for name in PACKAGES)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    command = [sys.executable, *words]
    return subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, timeout=400
    )


def check(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run tests of the copy."""
    return run(tree, "-m", "pytest", "-q", "-p", "no:playwright", "-p", "no:cacheprovider", *words)


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_an_end_reason_is_two_files(tree: Path) -> None:
    edit(
        tree / "runtime/submarine_runtime/protocol/reasons.py",
        "    def __str__",
        REASON,
    )
    page = (
        "tests/unit/project/test_docs.py",
        "-k",
        "test_end_reasons_page_agrees_with_the_protocol",
    )
    assert check(tree, *page).returncode == 1
    assert run(tree, "-m", "tests.unit.project.test_docs").returncode == 0
    assert "`bead_lost`" in (tree / "docs/end-reasons.md").read_text(encoding="utf-8")
    assert run(tree, "scripts/messages.py").returncode == 0
    for words in (page, ("tests/unit/project/test_messages.py",)):
        done = check(tree, *words)
        assert done.returncode == 0, done.stdout
    shown = run(tree, "-c", SHOW_REASON)
    assert "A bead of the abacus was lost." in shown.stdout, shown
    assert "Count the beads and run the job again." in shown.stdout


def test_a_framework_is_two_files(tree: Path) -> None:
    page = tree / "docs/frameworks.md"
    found = re.search(
        r"```python\n(\"\"\"Abacus.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
    )
    assert found
    (tree / "runtime/submarine_runtime/frameworks/abacus.py").write_text(found[1])
    assert check(tree, "tests/unit/frameworks/test_frameworks.py").returncode == 1
    row = "| `mxnet` | `mxnet` |"
    edit(page, row, f"| `abacus` | `abacus` | workers | all workers | no |\n{row}")
    row = "| `mxnet` | `DMLC_ROLE`"
    edit(page, row, f"| `abacus` | `ABACUS_PEERS` `ABACUS_ID` |\n{row}")
    edit(page, "except `mxnet` and `any`;", "except `abacus`, `mxnet` and `any`;")
    done = check(tree, "tests/unit/frameworks/test_frameworks.py")
    assert done.returncode == 0, done.stdout
    code = "from submarine_jobs.cli import main; main()"
    shown = run(tree, "-c", code, "run", "--help")
    assert "abacus" in shown.stdout, shown


OPTION = """    account: str | None = option(
        "--account", metavar="NAME", help="Account that the job is charged to."
    )
"""
#: A test for the copy: completion in a note of Zeppelin.
COMPLETION = """\
from tests.local.zeppelin.test_zeppelin_workflow import note

def test_an_option_of_a_note(note):
    found = note.entry("Submarine").completion("run --acc", 9, note.context("p-flow"))
    assert [one.value for one in found] == ["--account"]
"""


def test_an_option_is_four_files(tree: Path) -> None:
    (tree / "job.py").write_text("print('beads')\n")
    code = "import sys; from submarine_jobs.cli import main; sys.exit(main())"
    words = ("-c", code, "run", "--backend=local", "--account=ads", "--dry-run", "--json", "job.py")
    assert "No such option --account" in run(tree, *words).stdout
    field = "    priority: int | None = option(\n"
    edit(tree / "jobs/submarine_jobs/options/run_options.py", field, OPTION + field)
    field = "    priority: int | None = None\n"
    declaration = "    account: str | None = None\n"
    edit(tree / "runtime/submarine_runtime/protocol/spec.py", field, declaration + field)

    effects = "tests/local/jobs/test_option_effects.py"
    tests = (
        "tests/unit/project/test_commands_docs.py",
        "tests/unit/project/test_messages.py",
        f"{effects}::test_every_option_has_a_row_and_every_row_an_option",
    )
    failed = check(tree, *tests).stdout
    for test in ("declared_options[Cluster]", "test_messages.py::", "has_a_row"):
        assert re.search(f"^FAILED .*{re.escape(test)}", failed, re.MULTILINE), failed
    row = "| `--priority N` |"
    added = "| `--account NAME` | | account that the job is charged to |\n"
    edit(tree / "docs/commands.md", row, added + row)
    row = '    (_JOB, "--priority",'
    edit(tree / effects, row, f'    (_JOB, "--account", "--account", "ads"),\n{row}')
    assert run(tree, "scripts/messages.py").returncode == 0
    (tree / "tests/local/zeppelin/test_account.py").write_text(COMPLETION)
    done = check(
        tree,
        *tests,
        f"{effects}::test_the_option_has_an_effect[run --account]",
        "tests/unit/jobs/options/test_run_arguments.py",
        "tests/local/zeppelin/test_account.py",
    )
    assert done.returncode == 0, done.stdout
    help_text = run(tree, "-c", code, "run", "--help").stdout
    assert "--account NAME" in help_text
    planned = json.loads(run(tree, *words).stdout)
    assert planned["spec"]["account"] == "ads"
