"""Named datasets and frames in jobs of the local backend."""

from __future__ import annotations

import json
import time
import venv
from pathlib import Path
from typing import Any

import pytest

import submarine_jobs
from submarine_jobs.commands.grammar import execute
from submarine_jobs.datasets import verification
from submarine_jobs.errors import UsageError
from tests.frontends import RecordingFrontend

np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setattr(submarine_jobs, "_sessions", {})
    monkeypatch.chdir(tmp_path)


def command(*words: str, kind: str = "cli", namespace: dict[str, Any] | None = None) -> Any:
    frontend = RecordingFrontend(kind)
    frontend.namespace = namespace
    return execute(words, frontend)


def test_a_job_reads_a_dataset_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    for number in range(4):
        (tmp_path / "train" / f"{number}.txt").write_text("x" * (number + 1))
    stored = command("data", "put", "letters", "train")
    assert stored.value["uploaded"] == 10
    assert command("data", "put", "again", "train").value["uploaded"] == 0
    (tmp_path / "read.py").write_text(
        "import os\n"
        "folder = os.environ['SUBMARINE_INPUT_TRAIN']\n"
        "found = {name: open(f'{folder}/{name}').read() for name in sorted(os.listdir(folder))}\n"
        "path = os.environ['SUBMARINE_INPUT_PATH']\n"
    )
    job = submarine_jobs.run(
        "read",
        program="read.py",
        memory="256M",
        inputs={"TRAIN": "data:letters"},
        input_path="data:letters",
        returns=["found", "path"],
        wait=True,
    )
    assert job.result["found"] == {f"{n}.txt": "x" * (n + 1) for n in range(4)}
    uri = stored.value["uri"]
    assert job.directory.spec().inputs[0].uri == uri
    # A repetition reads the same content after the name was given to other data.
    (tmp_path / "train" / "0.txt").write_text("other")
    command("data", "put", "letters", "train", "--replace")
    assert job.rerun(yes=True).wait_success(60)
    assert submarine_jobs.find_data("letters").uri != uri
    dry = command("run", "read.py", "--input", "TRAIN=data:letters:shard", "--dry-run")
    assert submarine_jobs.find_data("letters").uri in json.dumps(dry.value)
    with pytest.raises(UsageError, match="There is no dataset letter"):
        command("run", "read.py", "--input", "TRAIN=data:letter")


def test_data_of_running_jobs_is_kept(tmp_path: Path) -> None:
    data = submarine_jobs.put_data("ones", np.ones(3))
    (tmp_path / "wait.py").write_text(
        "import os, time\nwhile not os.path.exists(GO):\n    time.sleep(0.05)\n".replace(
            "GO", repr(str(tmp_path / "go"))
        )
    )
    job = submarine_jobs.run("wait", program="wait.py", memory="256M", inputs={"A": data})
    try:
        with pytest.raises(UsageError, match=f"ones is an input of jobs.*{job.id}"):
            command("data", "rm", "ones")
        submarine_jobs.put_data("same", np.ones(3))
        assert command("data", "rm", "ones").value["freed"] == 0
        assert Path(data.uri.removeprefix("file://")).exists()
    finally:
        (tmp_path / "go").touch()
    assert job.wait_success(60)
    assert command("data", "rm", "same").value["freed"] == data.size
    assert not Path(data.uri.removeprefix("file://")).exists()
    assert command("data", "list").value == []


FRAME = (
    "import hashlib, pandas\n"
    "kind = type(frame).__module__.split('.')[0]\n"
    "table = frame if kind == 'pandas' else frame.to_pandas()\n"
    "dtypes = [str(one) for one in table.dtypes]\n"
    "index = [str(table.index.dtype), str(table.index.name)]\n"
    "digest = hashlib.sha256(pandas.util.hash_pandas_object(table).to_numpy()).hexdigest()\n"
    "ordered = bool(table['c'].cat.ordered)\n"
    "categories = list(table['c'].cat.categories)\n"
)
RETURNS = ["kind", "dtypes", "index", "digest", "ordered", "categories"]


def a_frame() -> Any:
    number = 300
    return pd.DataFrame(
        {
            "c": pd.Categorical(
                ["b", "a", "b"] * (number // 3), categories=["z", "b", "a"], ordered=True
            ),
            "t": pd.date_range("2026-03-28", periods=number, freq="h", tz="Europe/Berlin"),
            "i": pd.array([1, None, 3] * (number // 3), dtype="Int64"),
            "o": ["x", None, "y"] * (number // 3),
        },
        index=pd.Index([f"r{n}" for n in range(number)], name="key"),
    )


def with_frame(value: Any) -> Any:
    return submarine_jobs.run(
        "frame", program="frame.py", memory="512M", values={"frame": value}, returns=RETURNS
    )


@pytest.mark.full
def test_a_program_sees_the_same_frame_in_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "frame.py").write_text(FRAME)
    frame = a_frame()
    jobs = [with_frame(frame)]
    monkeypatch.setattr(verification, "THRESHOLD", 1000)
    jobs += [with_frame(frame), with_frame(frame)]
    objects = frame.astype({"o": object})
    jobs.append(with_frame(objects))
    for job in jobs:
        job.wait_success(90)
    stored = [[item.name for item in job.directory.spec().inputs] for job in jobs]
    # Texts as objects are not what Parquet gives back, so they stay in values.zip.
    assert stored == [[], ["WITH_FRAME_0"], ["WITH_FRAME_0"], []]
    assert jobs[1].directory.spec().inputs == jobs[2].directory.spec().inputs
    small, large, again, as_objects = ({name: job.result[name] for name in RETURNS} for job in jobs)
    assert small == large == again
    assert small["dtypes"] == ["category", "datetime64[us, Europe/Berlin]", "Int64", "str"]
    assert (small["ordered"], small["categories"]) == (True, ["z", "b", "a"])
    assert as_objects["dtypes"][3] == "object"
    # values.zip has the names only; the job's directory does not contain the frame.
    assert len(submarine_jobs.list_data()) == 0
    (unnamed,) = command("data", "list").value
    assert (unnamed["name"], unnamed["rows"], unnamed["source"]) == ("", 300, "pandas")


def test_an_arrow_table_is_sent_with_and_as_an_input(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    (tmp_path / "frame.py").write_text(FRAME)
    table = arrow.Table.from_pandas(a_frame())
    job = with_frame(table)
    (tmp_path / "read.py").write_text(
        "import os\nimport pandas\n"
        "found = pandas.read_parquet(os.environ['SUBMARINE_INPUT_TRAIN'])\n"
        "rows, dtypes = len(found), [str(one) for one in found.dtypes]\n"
    )
    reader = submarine_jobs.run(
        "read",
        program="read.py",
        memory="512M",
        inputs={"TRAIN": a_frame()},
        returns=["rows", "dtypes"],
        wait=True,
    )
    job.wait_success(90)
    assert job.result["kind"] == "pyarrow"
    assert (reader.result["rows"], reader.result["dtypes"]) == (300, job.result["dtypes"])
    assert reader.directory.spec().inputs[0].uri == job.directory.spec().inputs[0].uri


@pytest.mark.full
def test_a_python_without_pyarrow_gets_values_zip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(verification, "THRESHOLD", 1)
    # An interpreter without the packages of this one.
    venv.create(tmp_path / "env", symlinks=True)
    (tmp_path / "frame.py").write_text("kind = type(frame).__name__\n")
    frontend = RecordingFrontend()
    frontend.namespace = {"frame": a_frame()}
    words = ["run", "frame.py", "--with", "frame", "--memory", "256M", "--return", "kind"]
    job = execute([*words, "--python-env", f"path:{tmp_path / 'env'}"], frontend).job
    assert job is not None
    assert job.directory.spec().inputs == ()
    # Without NumPy the program cannot read the values either, and says so.
    assert job.wait(120).state.ended


def test_show_and_list_escape_what_files_contain(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    evil = "\x1b[2J<script>alert(1)</script>\u202e"
    frame = pd.DataFrame({evil: [evil, "%html <b>"], "n": [1, 2]})
    put = command("data", "put", "evil", "frame", kind="notebook", namespace={"frame": frame})
    shown = command("data", "show", "evil")
    for outcome in (put, shown):
        assert "<script>" not in outcome.html
        assert "&lt;script&gt;" in outcome.html
        assert not {"\x1b", "\u202e"} & {*outcome.html, *outcome.text}
        table = outcome.mime["application/vnd.submarine.table+json"]
        assert not {"\x1b", "\u202e"} & {*table["table"], *table["head"]}
        assert "\n %html <b>\t2" in table["table"]
    listed = command("data", "list")
    assert listed.text.splitlines()[1].split()[:1] == ["evil"]
    assert listed.value[0]["created"] == pytest.approx(time.time(), abs=60)
    assert submarine_jobs.list_data()[0].schema[1] == ("n", "int64")


def test_words_that_are_neither_a_variable_nor_a_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a variable nor a file nothing"):
        command("data", "put", "a", "nothing", kind="notebook", namespace={})
    with pytest.raises(UsageError, match="There is no file nothing"):
        command("data", "put", "a", "nothing")
    # A variable has precedence over a file of the same name.
    (tmp_path / "x").write_text("file")
    put = command("data", "put", "a", "x", kind="notebook", namespace={"x": np.ones(2)})
    assert put.value["source"] == "numpy"
    put = command("data", "put", "b", "./x", kind="notebook", namespace={"x": np.ones(2)})
    assert put.value["source"] == "files"
