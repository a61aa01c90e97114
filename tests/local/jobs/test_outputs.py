"""What a program leaves is saved: files, values, what bundles may hold, disks that are full."""

from __future__ import annotations

import datetime
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pandas  # type: ignore[import-untyped]
import pytest

from submarine_jobs.client import Session
from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import JobSpec, Localization, Profile, Resources, Role
from submarine_jobs.submit import submit
from submarine_runtime.protocol import EndReason, State, layout
from submarine_runtime.values import pack_values, unpack_values
from tests.local.agent.agent_processes import AgentProcesses, zip_of


def test_outputs_are_saved_and_links_are_not(agents: AgentProcesses) -> None:
    source = (
        "import os\n"
        "m = os.environ['SUBMARINE_MODEL_DIR']\n"
        "os.makedirs(m + '/a b/c')\n"
        "open(m + '/a b/c/weights.bin', 'wb').write(b'w' * 3000000)\n"
        "open(m + '/\\xe4.txt', 'w').write('x')\n"
        "os.symlink('/etc/passwd', m + '/passwd')\n"
        "os.symlink('/etc', m + '/etc')\n"
        "os.mkfifo(m + '/pipe')\n"
        "open(m.encode() + b'/\\xff', 'w').close()\n"
        "open(m + '/new\\nline', 'w').close()\n"
        "open(os.environ['SUBMARINE_CHECKPOINT_DIR'] + '/1', 'w').close()\n"
        "open(os.environ['SUBMARINE_TENSORBOARD_DIR'] + '/events', 'w').write('e')\n"
    )
    record = agents.run(source)
    assert record.state is State.SUCCEEDED
    outputs = {output.path: output.size for output in record.outputs}
    assert outputs == {
        "checkpoints/1": 0,
        "model/a b/c/weights.bin": 3000000,
        "model/\xe4.txt": 1,
        "tensorboard/events": 1,
    }
    assert (agents.job_dir / "model/a b/c/weights.bin").stat().st_size == 3000000
    assert len(record.missing) == 5
    assert not (agents.job_dir / "model/passwd").exists()
    assert all(path.stat().st_mode & 0o077 == 0 for path in agents.job_dir.rglob("*"))


def test_values_in_and_out(agents: AgentProcesses) -> None:
    values = agents.root / "values.zip"
    pack_values({"x": [1, 2.5], "who": "ada"}, values)
    record = agents.run(
        "y = sum(x)\ngreeting = 'hi ' + who\nimport sys\n"
        "assert 'submarine_runtime' not in sys.modules\n"
        "assert not any('launch' in p for p in sys.path)",
        values=values.read_bytes(),
        return_names=["y", "greeting"],
    )
    assert record.state is State.SUCCEEDED, record.detail
    assert unpack_values(agents.job_dir / "result.zip").values == {"y": 3.5, "greeting": "hi ada"}


def test_values_that_cannot_come_back(agents: AgentProcesses) -> None:
    record = agents.run("y = 1\nf = lambda: 0", return_names=["y", "f", "absent"])
    assert (record.state, record.missing) == (State.SUCCEEDED, [])
    assert len(record.warnings) == 2
    assert any("absent" in sentence for sentence in record.warnings)
    assert unpack_values(agents.job_dir / "result.zip").values == {"y": 1}


def test_frames_and_datetimes_come_back(agents: AgentProcesses) -> None:
    program = (
        "import datetime\nimport pandas as pd\n"
        "day = datetime.datetime(2026, 7, 1, 12, 30, tzinfo=datetime.timezone.utc)\n"
        "losses = pd.Series([0.5, 0.25], name='loss', index=['a', 'b'])\n"
        "frame = pd.DataFrame({'step': [1, 2], 'name': ['x', None],\n"
        "    'time': pd.date_range('2026-01-01', periods=2, tz='Europe/Berlin')})\n"
    )
    record = agents.run(program, return_names=["day", "losses", "frame"])
    assert (record.state, record.warnings) == (State.SUCCEEDED, [])
    found = unpack_values(agents.job_dir / "result.zip").values
    assert found["day"] == datetime.datetime(2026, 7, 1, 12, 30, tzinfo=datetime.UTC)
    losses = pandas.Series([0.5, 0.25], name="loss", index=["a", "b"])
    pandas.testing.assert_series_equal(found["losses"], losses)
    times = pandas.date_range("2026-01-01", periods=2, tz="Europe/Berlin")
    frame = pandas.DataFrame({"step": [1, 2], "name": ["x", None], "time": times})
    pandas.testing.assert_frame_equal(found["frame"], frame, check_freq=False)


WRITE_MODEL = (
    "import os\n"
    "open('my_model.keras', 'wb').write(b'm' * 268000)\n"
    "os.makedirs('__pycache__', exist_ok=True)\n"
    "open('__pycache__/x.pyc', 'w').close()\n"
)


def test_files_of_the_working_directory_that_are_not_saved_are_listed(
    agents: AgentProcesses,
) -> None:
    record = agents.run(WRITE_MODEL)
    assert (record.state, record.outputs) == (State.SUCCEEDED, [])
    (sentence,) = record.warnings
    assert "my_model.keras, 268 kB, was not saved." in sentence
    assert "$SUBMARINE_MODEL_DIR" in sentence
    assert "--keep 'my_model.keras'" in sentence


def test_keep_saves_files_of_the_working_directory(agents: AgentProcesses) -> None:
    record = agents.run(WRITE_MODEL, keep=["*.keras"])
    assert (record.state, record.warnings) == (State.SUCCEEDED, [])
    assert [(one.path, one.size) for one in record.outputs] == [("files/my_model.keras", 268000)]
    assert (agents.job_dir / "files/my_model.keras").stat().st_size == 268000


@pytest.mark.parametrize("every", [False, True])
def test_values_of_several_processes(agents: AgentProcesses, every: bool) -> None:
    record = agents.run(
        "import os\nrank = int(os.environ['RANK'])\n",
        framework="pytorch",
        processes=2,
        return_names=["rank"],
        return_all_ranks=every,
    )
    assert record.state is State.SUCCEEDED
    assert unpack_values(agents.job_dir / "result.zip").values == {"rank": 0}
    ranks = sorted((agents.job_dir / layout.RANKS).glob("*.zip"))
    assert [unpack_values(path).values for path in ranks] == (
        [{"rank": 0}, {"rank": 1}] if every else []
    )


def _hostile() -> Iterator[tuple[str, bytes]]:
    names = ("../out", "/tmp/out", "a/../../out", "a\\..\\out", "a//b", "./a")
    for number, name in enumerate(names):
        yield f"name-{number}", zip_of({"main.py": "print(1)", name: "x"})
    nul = zip_of({"main.py": "print(1)", "nulX/../x": "x"}).replace(b"nulX", b"nul\0")
    yield "nul", nul
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    yield "link", zip_of({"main.py": "print(1)", link: "/etc"})
    yield "cut", zip_of({"main.py": "print(1)"})[:-30]
    yield "no-zip", b"no zip at all"
    yield "file-as-directory", zip_of({"main.py": "print(1)", "main.py/x": "y"})
    twice = zip_of({"main.py": "print(1)", "mbin.py": "x"}).replace(b"mbin", b"main")
    yield "twice", twice


HOSTILE = dict(_hostile())


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bundles(agents: AgentProcesses, name: str) -> None:
    record = agents.run(bundle=HOSTILE[name])
    assert record.reason is EndReason.LAUNCH_FAILED
    assert not (agents.scratch() / "out").exists()
    assert not (agents.root / "out").exists()
    assert not (agents.scratch() / "worker-0.stdout.log").exists()


def test_a_full_disk_of_the_node(agents: AgentProcesses, small_disk: Path) -> None:
    source = "import os\nwith open('big', 'wb') as f:\n    f.write(b'x' * (4 << 20))\n"
    scratch = agents.prepare(source, name="small/scratch")
    assert agents.finish(agents.launch(scratch)) == 1
    record = agents.record()
    assert record.reason is EndReason.DISK_FULL


def test_logs_that_fill_the_disk(agents: AgentProcesses, small_disk: Path) -> None:
    source = "while True: print('x' * 10000)"
    scratch = agents.prepare(source, name="small/scratch")
    assert agents.finish(agents.launch(scratch)) == 1
    record = agents.record()
    assert record.reason is EndReason.DISK_FULL
    assert agents.shipped("stdout") == agents.log("stdout", "small/scratch")


def test_a_full_job_directory(agents: AgentProcesses, small_disk: Path) -> None:
    agents.job_dir = small_disk / "job"
    agents.job_dir.mkdir()
    source = (
        "import os\n"
        "with open(os.environ['SUBMARINE_MODEL_DIR'] + '/m', 'wb') as f:\n"
        "    f.write(b'x' * (4 << 20))\n"
    )
    record = agents.run(source)
    assert record.reason is EndReason.OUTPUT_NOT_SAVED
    assert "No space left" in record.detail
    assert record.exit_code == 0


def test_a_job_directory_that_takes_nothing_more(small_disk: Path, tmp_path: Path) -> None:
    """Not even the record of the end: the job ends all the same, and says why."""
    session = Session(
        Profile(backend="local", state_dir=tmp_path / "state", job_root=str(small_disk / "jobs"))
    )
    fill = (
        f"with open({str(small_disk / 'other')!r}, 'wb', buffering=0) as f:\n"
        "    try:\n"
        "        while f.write(b'x' * 4096): pass\n"
        "    except OSError as error:\n"
        "        print(error)\n"
    )
    spec = JobSpec(name="digits", backend="local", python=sys.executable)
    job = submit(session, spec, zip_of({"main.py": fill}))
    record = job.wait(timeout=90)
    assert (record.state, record.reason) == (State.FAILED, EndReason.JOB_DIRECTORY_FULL)
    assert "No space left" in record.detail
    assert session.jobs()[0].reason is EndReason.JOB_DIRECTORY_FULL
    assert job.directory.record() is None


def test_ranks_and_changed_copies_through_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    for name in ("mine", "theirs"):
        (tmp_path / name).write_text(name)
    program = (
        "import os\nrank = int(os.environ['RANK'])\n"
        "writable = [bool(os.stat(name).st_mode & 0o200) for name in ('mine', 'theirs')]\n"
        "if rank == 0:\n    with open('mine', 'a') as file:\n        file.write(' and more')\n"
    )
    spec = JobSpec(
        name="digits",
        backend="local",
        python=sys.executable,
        framework="pytorch",
        roles=(Role(processes=2, resources=Resources(memory=256)),),
        localization=(
            Localization(str(tmp_path / "mine"), "mine", "rw"),
            Localization(str(tmp_path / "theirs"), "theirs"),
        ),
        return_names=("rank", "writable"),
        return_all_ranks=True,
    )
    job = submit(session, spec, zip_of({"main.py": program}))
    record = job.wait(timeout=90)
    assert record.state is State.SUCCEEDED, record.detail
    assert dict(job.result) == {"rank": 0, "writable": [True, False]}
    assert [dict(result) for result in job.result.ranks] == [
        {"rank": rank, "writable": [True, False]} for rank in range(2)
    ]
    unsaved = [text for text in record.warnings if "not saved" in text]
    assert [text.partition(" Write it")[0] for text in unsaved] == ["mine, 13 B, was not saved."]
    # Values that are damaged, or too large, are a sentence, and no error of the program's.
    (path,) = (tmp_path / "state" / "jobs").glob("*/*/ranks/1.zip")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SubmarineError, match="does not hold values that can be read"):
        _ = job.result.ranks
    result = job.result
    monkeypatch.setattr("submarine_jobs.outputs.returned_values.DEFAULT_LIMIT", 100)
    with pytest.raises(SubmarineError, match=r"The values of the 2 ranks of job .* larger than"):
        _ = result.ranks
