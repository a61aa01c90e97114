"""Walks docs/refusals.md: every row that needs no cluster is provoked as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from submarine_jobs.commands import execute
from submarine_jobs.config import OWN_VARIABLES, SITE_VARIABLE
from submarine_jobs.config.loader import SHARED_VARIABLES
from submarine_jobs.errors import SubmarineError
from submarine_jobs.frontends import Frontend
from submarine_jobs.options.unsupported import UNSUPPORTED
from submarine_jobs.program import CellCollection
from tests.trusting import trusted

PAGE = Path(__file__).parents[4] / "docs" / "refusals.md"
ON_A_CLUSTER = "On a cluster"


class Notebook(Frontend):
    kind = "notebook"
    command = "%submarine"

    def __init__(self) -> None:
        super().__init__()
        self.collection = CellCollection()
        self.namespace = {"x_train": [1]}


class Shell(Frontend):
    kind = "cli"


def rows() -> list[tuple[str, str, int, str]]:
    found = []
    section = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[2].isdigit() and not section.startswith(ON_A_CLUSTER):
            found.append((cells[0], cells[1].strip("`"), int(cells[2]), cells[3]))
    return found


def prepare(given: str) -> None:
    for name, content in re.findall(r"`([^`]+)`: `([^`]+)`", given):
        Path(name).write_text(content + "\n", encoding="utf-8")
        Path(name).chmod(0o644)
        if given.endswith(", confirmed"):
            trusted(Path(name))


def check_dry_run(words: list[str], frontend: Frontend, refused: SubmarineError) -> None:
    """Compare a refused ``run`` with its dry run: the same exit code, the same sentence."""
    if words[0] != "run":
        return
    dry = ["run", "--dry-run", *words[1:]]
    caught: SubmarineError | None = None
    try:
        outcome = execute(dry, frontend)
    except SubmarineError as error:
        caught = error
    if caught is not None:
        # The corrected line of a refusal repeats the options that were typed.
        said_dry = str(caught).replace("submarine run --dry-run", "submarine run")
        assert (said_dry, caught.exit_code) == (str(refused), refused.exit_code)
        return
    assert outcome.exit_code == refused.exit_code
    errors = [item for item in outcome.value["findings"] if item["level"] == "error"]
    said = [f"{item['message']} {item['fix']}".strip() for item in errors]
    said += outcome.value["refusals"]
    assert any(str(refused).startswith(sentence) for sentence in said), (said, str(refused))


@pytest.mark.slow
@pytest.mark.parametrize(("given", "typed", "exit_code", "sentence"), rows())
def test_each_row_of_the_table(
    given: str,
    typed: str,
    exit_code: int,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = ("SUBMARINE_PROFILE", "SUBMARINE_CONFIG", SITE_VARIABLE)
    for variable in (*OWN_VARIABLES, *SHARED_VARIABLES, *others):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("print('hello')\n", encoding="utf-8")
    prepare(given)
    if Path("site.toml").exists():
        monkeypatch.setenv(SITE_VARIABLE, str(tmp_path / "site.toml"))
    frontend = Notebook() if typed.startswith("%") else Shell()
    words = shlex.split(typed)[1:]
    with pytest.raises(SubmarineError) as caught:
        execute(words, frontend)
    check_dry_run(words, frontend, caught.value)
    pattern = ".*".join(re.escape(part) for part in sentence.replace("\\|", "|").split("…"))
    assert re.fullmatch(pattern, str(caught.value), re.DOTALL), str(caught.value)
    assert caught.value.exit_code == exit_code
    assert not list((tmp_path / "state").glob("jobs/*/*")), "something was submitted"


def test_the_table_names_every_option_of_a_later_release() -> None:
    page = PAGE.read_text(encoding="utf-8")
    missing = [one.names[0] for one in UNSUPPORTED if not any(name in page for name in one.names)]
    assert missing == []


def test_no_refusal_is_a_stack_trace() -> None:
    assert len(rows()) > 70
    assert "Traceback" not in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("verb", "hint"),
    [
        ("kill", "did you mean cancel?"),
        ("PS", "did you mean list?"),
        ("status", "did you mean show?"),
        ("log", "did you mean logs?"),
        ("frobnicate", "`submarine --help` lists them."),
    ],
)
def test_a_verb_of_another_tool_is_known_by_its_name_here(verb: str, hint: str) -> None:
    with pytest.raises(SubmarineError) as caught:
        execute([verb], Frontend())
    assert str(caught.value) == f"No such command {verb}; {hint}"


def test_a_program_that_is_not_there_has_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, words in (("a.py", "There is a.py beside it."), ("b.py", "There are a.py, b.py")):
        Path(name).touch()
        # It is said first, also where there is no cluster.
        for where in (["--backend", "local"], []):
            with pytest.raises(SubmarineError, match=re.escape(words)):
                execute(["run", "train.py", *where], Frontend())
    for number in range(6):
        Path(f"{number}.ipynb").touch()
    hint = "There are 0.ipynb, 1.ipynb, 2.ipynb, 3.ipynb, 4.ipynb and 1 more beside it."
    with pytest.raises(SubmarineError, match=re.escape(hint)):
        execute(["run", "train.ipynb", "--backend", "local"], Frontend())
