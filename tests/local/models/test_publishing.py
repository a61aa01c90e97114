"""Publish models of real jobs of the local backend, interrupted at each step and repeated."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.commands.grammar import execute
from submarine_jobs.errors import UsageError
from submarine_jobs.model import NamedInput, Profile
from submarine_jobs.storage import LocalStorage
from submarine_jobs.trained_models import download_published, model_source, publish_model
from tests.frontends import RecordingFrontend
from tests.local.data.data_files import contents
from tests.submission import Submit, submitting

#: Enough processes for each step of a publication; the last ones are not killed.
STEPS = 26
SOURCE = """
import os
folder = os.environ["SUBMARINE_MODEL_DIR"]
os.makedirs(folder + "/variables")
for name in ("saved.bin", "variables/data-00000"):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(b"CONTENT of " + name.encode())
"""
MANIFEST = "submarine-model.json"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def session(state: Path) -> Session:
    return Session(Profile(backend="local", state_dir=state))


@pytest.fixture(scope="module")
def submit(session: Session) -> Iterator[Submit]:
    with submitting(session) as made:
        yield made


@pytest.fixture(scope="module")
def jobs(submit: Submit) -> tuple[Job, Job]:
    """Two jobs with different models of the same file names."""
    made = [submit(SOURCE.replace("CONTENT", word), name=word) for word in ("old", "new")]
    for job in made:
        job.wait_success(90)
    return made[0], made[1]


def model(word: str) -> dict[str, bytes]:
    names = ("saved.bin", "variables/data-00000")
    return {name: f"{word} of {name}".encode() for name in names}


def processes(mode: str, state: Path, *words: str) -> list[int]:
    """Wait statuses of the processes of ``killed_publication``."""
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("SUBMARINE_")},
        "SUBMARINE_STATE_DIR": str(state),
        "SUBMARINE_BACKEND": "local",
        "SUBMARINE_CONFIG": "",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.local.models.killed_publication", mode, str(STEPS), *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return [int(line) for line in done.stdout.split()]


def view(target: Path, copy: Path) -> dict[str, bytes] | None:
    """What a reader of published models finds; None: no version."""
    shutil.rmtree(copy, ignore_errors=True)
    try:
        download_published(LocalStorage(), str(target), copy)
    except UsageError as error:
        if "no published model" in error.message:
            return None
        raise
    return contents(copy)


def plain_view(target: Path) -> dict[str, bytes] | None:
    """What a program finds that only knows the directory, such as TensorFlow Serving."""
    found = contents(target) if target.is_dir() else None
    if found is not None:
        assert found.pop(MANIFEST)
    return found


@pytest.mark.full
@pytest.mark.parametrize("replaced", [False, True], ids=["new", "overwrite"])
def test_an_interruption_at_each_step_shows_a_whole_version_and_is_repeated(
    jobs: tuple[Job, Job], state: Path, tmp_path: Path, replaced: bool
) -> None:
    old, new = jobs
    before = model("old") if replaced else None
    if replaced:
        publish_model(old, model_source(old), str(tmp_path / "first/digits/7"), aliases=["prod"])
        for number in range(STEPS):
            shutil.copytree(tmp_path / "first", tmp_path / str(number))
    target = f"{tmp_path}/{{}}/digits/7"
    options = ("--overwrite",) if replaced else ()
    words = ("publish", new.id, "--to", target, "--alias", "prod", *options)
    statuses = processes("kill", state, *words)
    killed = [number for number, status in enumerate(statuses) if status == signal.SIGKILL]
    # From the first file to the switch of the alias, before and after each.
    assert killed == list(range(len(killed)))
    assert len(killed) >= (16 if replaced else 12)
    assert statuses[len(killed) :] == [0] * (STEPS - len(killed))
    views = [view(tmp_path / f"{n}/digits/7", tmp_path / "copy") for n in range(STEPS)]
    assert all(found in (before, model("new")) for found in views)
    # The change from one to the other is one step.
    changes = [n for n in range(1, STEPS) if views[n] != views[n - 1]]
    assert (len(changes), views[0], views[-1]) == (1, before, model("new"))
    for number in range(STEPS):
        assert plain_view(tmp_path / f"{number}/digits/7") in (None, before, model("new"))
    # The same command again completes each of them and leaves nothing else.
    assert processes("run", state, *words) == [0] * STEPS
    for number in range(STEPS):
        folder = tmp_path / f"{number}/digits"
        assert view(folder / "7", tmp_path / "copy") == model("new")
        assert plain_view(folder / "7") == model("new")
        assert sorted(os.listdir(folder)) == ["7", "_aliases"]
        alias = json.loads((folder / "_aliases/prod.json").read_text())
        manifest = json.loads((folder / "7" / MANIFEST).read_text())
        assert (alias["version"], alias["digest"]) == ("7", manifest["digest"])


def test_a_reader_during_replacements_gets_one_of_the_versions(
    jobs: tuple[Job, Job], tmp_path: Path
) -> None:
    target = tmp_path / "digits/7"
    sources = [(job, model_source(job)) for job in jobs]
    publish_model(*sources[0], str(target))
    stop = threading.Event()

    def replace() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            publish_model(*sources[number % 2], str(target), overwrite=True)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        found = []
        for _ in range(40):
            try:
                found.append(view(target, tmp_path / "copy"))
            except UsageError:  # Replaced during each of its reads: refused, not mixed.
                continue
    finally:
        stop.set()
        writer.join(30)
    assert all(one in (model("old"), model("new")) for one in found)
    assert model("old") in found
    assert model("new") in found


def test_what_is_published_and_what_is_refused(
    jobs: tuple[Job, Job], session: Session, tmp_path: Path
) -> None:
    old, new = jobs
    frontend = RecordingFrontend(session=session)
    target = tmp_path / "models é/digits/1"
    version = new.save_model("best")
    words = ["publish", f"{new.id}@best", "--to", str(target), "--alias", "latest"]
    done = execute(words, frontend)
    assert done.value["digest"] == version.digest
    assert done.value["url"] == f"file://{target}"
    assert "is published" in done.text
    assert "Alias latest names this version" in done.text
    manifest = json.loads((target / MANIFEST).read_text())
    assert (manifest["job"], manifest["version"], manifest["size"]) == (
        new.id,
        "best",
        version.size,
    )
    assert manifest["lineage"]["bundle_digest"] == new.directory.spec().bundle_digest
    # Others may read what is published.
    modes = {stat.S_IMODE(path.stat().st_mode) for path in target.rglob("*") if path.is_file()}
    assert modes == {0o644}
    assert stat.S_IMODE(target.stat().st_mode) == 0o755
    # The same again changes nothing; another model is refused.
    assert execute(words, frontend).value["already"] is True
    execute(["publish", new.id, "--to", str(target.parent / "2"), "--alias", "latest"], frontend)
    manifest = session.download_published(str(target.parent), tmp_path / "latest", alias="latest")
    assert (manifest["version"], contents(tmp_path / "latest")) == ("", model("new"))
    (tmp_path / "other/digits").mkdir(parents=True)
    (tmp_path / "other/digits/file").write_text("of another program")
    for refused, sentence in (
        (["publish", old.id, "--to", str(target)], "exists already.*--overwrite"),
        (["publish", old.id, "--to", f"{tmp_path}/other/digits", "--overwrite"], "not a published"),
        (["publish", old.id, "--to", "hdfs:///models/digits/7"], "not in the file system"),
        (["publish", old.id, "--to", "/"], "does not end in a model and a version"),
        (["publish", f"{old.id}@best", "--to", str(target)], "no version 'best'"),
        (["publish", old.id, "--to", str(target), "--alias", "a/b"], "--alias: 'a/b' is not"),
        (["publish", old.id, "--to", str(target), "--name", "x"], "--name has no effect"),
        (["publish", old.id, "--to", "mlflow", "--overwrite"], "--overwrite has no effect"),
        (["publish", old.id, "--to", "mlflow:ftp://x"], "not the address"),
        (["publish", old.id, "--to", "mlflow:http://u:pw@x"], "contains a user"),
        (["publish", old.id, "--to", "nosuchstore://bucket/digits/7"], "cannot be opened"),
    ):
        with pytest.raises(UsageError, match=sentence):
            execute(refused, frontend)
    # A damaged version is not published.
    Path(new.directory.path, "models/best/model/saved.bin").write_bytes(b"damaged!")
    with pytest.raises(UsageError, match="is not what was saved"):
        execute([*words[:3], str(target.parent / "3")], frontend)
    assert not (target.parent / "3").exists()
    # A reader notices a damaged file.
    (target / "saved.bin").write_bytes(b"damaged")
    with pytest.raises(UsageError, match="not what its manifest lists"):
        session.download_published(str(target), tmp_path / "damaged")
    assert not (tmp_path / "damaged").exists()


def test_an_object_store_has_no_replacement(
    jobs: tuple[Job, Job], session: Session, tmp_path: Path
) -> None:
    """With fsspec's memory file system in place of an object store."""
    import fsspec

    old, new = jobs
    memory = fsspec.filesystem("memory")
    frontend = RecordingFrontend(session=session)
    target = f"memory://{tmp_path.name}/digits/7"
    # An interrupted publication: a file, no manifest.
    memory.pipe_file(f"/{tmp_path.name}/digits/7/saved.bin", b"part")
    done = execute(["publish", new.id, "--to", target, "--alias", "prod"], frontend)
    assert done.value["url"] == target
    found = {
        name.partition("/7/")[2]: memory.cat_file(name)
        for name in memory.find(f"/{tmp_path.name}/digits/7")
    }
    manifest = json.loads(found.pop(MANIFEST))
    assert found == model("new")
    assert {file["path"]: file["size"] for file in manifest["files"]} == {
        name: len(data) for name, data in model("new").items()
    }
    alias = json.loads(memory.cat_file(f"/{tmp_path.name}/digits/_aliases/prod.json"))
    assert (alias["version"], alias["digest"]) == ("7", manifest["digest"])
    assert execute(["publish", new.id, "--to", target], frontend).value["already"] is True
    with pytest.raises(UsageError, match=r"exists already.*no rename.*another name"):
        execute(["publish", old.id, "--to", target, "--overwrite"], frontend)
    memory.pipe_file(f"/{tmp_path.name}/digits/8/strange", b"")
    with pytest.raises(UsageError, match=r"files that are not of this model, such as 'strange'"):
        execute(["publish", old.id, "--to", f"memory://{tmp_path.name}/digits/8"], frontend)


def test_a_version_shows_where_it_comes_from(
    submit: Submit, session: Session, tmp_path: Path
) -> None:
    data = tmp_path / "train.csv"
    data.write_bytes(b"1,2,3")
    os.utime(data, (1_700_000_000, 1_700_000_000))
    job = submit(
        SOURCE,
        name="lineage",
        inputs=(NamedInput("TRAIN", data.as_uri()),),
        params={"lr": 0.1},
        notebook="digits.ipynb",
        cell_id="cell-7",
    )
    job.wait_success(90)
    job.save_model("best")
    data.write_bytes(b"changed later")
    frontend = RecordingFrontend(session=session)
    shown = execute(["models", job.id, "--show", "best"], frontend)
    lineage = shown.value["lineage"]
    spec = job.directory.spec()
    assert (lineage["job"], lineage["bundle_digest"]) == (job.id, spec.bundle_digest)
    assert (lineage["notebook"], lineage["cell"]) == ("digits.ipynb", "cell-7")
    assert lineage["parameters"] == {"lr": 0.1}
    # As it was when the version was saved.
    assert lineage["data"] == [
        {
            "name": "TRAIN",
            "uri": data.as_uri(),
            "files": 1,
            "size": 5,
            "modified": 1_700_000_000.0,
            "changed": False,
        }
    ]
    assert lineage["environment"]["python"] == sys.executable
    for words in ("Notebook: digits.ipynb, cell cell-7", "Parameters: lr=0.1", "1 file, 5 B"):
        assert words in shown.text
    assert "digits.ipynb" in str(shown.html)
    # The final model has no record: the change of its data is visible.
    assert job.lineage()["data"][0]["changed"] is True
    with pytest.raises(UsageError, match="exclude each other"):
        execute(["models", job.id, "--show", "best", "--download", "best"], frontend)


GANG = """
import os
folder = os.environ["SUBMARINE_MODEL_DIR"]
os.makedirs(folder + "/variables")
for name in ("saved.bin", "variables/data-00000"):
    with open(os.path.join(folder, name), "wb") as file:
        file.write((os.environ["SUBMARINE_INDEX"] + " of " + name).encode())
assert not [name for name in os.environ if name.startswith("SUBMARINE_OUTPUT_saved")]
"""


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.full)])
def test_the_model_is_published_to_saved_model_path(
    submit: Submit, session: Session, tmp_path: Path, workers: int
) -> None:
    target = tmp_path / "models é/digits/7"
    job = submit(
        GANG,
        name="digits",
        saved_model_path=target.as_uri(),
        params={"lr": 0.1},
        instances=workers,
    )
    record = job.wait_success(90)
    expected = model("0")
    found = contents(target)
    assert json.loads(found.pop("_SUCCESS"))["job"] == job.id
    manifest = json.loads(found.pop(MANIFEST))
    assert found == expected
    assert (manifest["job"], manifest["version"]) == (job.id, "")
    assert manifest["lineage"]["parameters"] == {"lr": 0.1}
    assert [vars(one) for one in record.saved_outputs] == [
        {
            "name": "saved-model",
            "uri": target.as_uri(),
            "files": 2,
            "bytes": sum(map(len, expected.values())),
        }
    ]
    assert record.notes == []
    shown = execute(["show", job.id], RecordingFrontend(session=session))
    assert f"Output saved-model: {target.as_uri()}: 2 files" in shown.text
    # It is a published model like those of `publish`, whose model it is already.
    assert session.download_published(str(target), tmp_path / "copy")["job"] == job.id
    assert contents(tmp_path / "copy") == expected
    again = execute(
        ["publish", job.id, "--to", str(target)], RecordingFrontend(session=session)
    ).value
    assert (again["already"], again["digest"]) == (True, manifest["digest"])
    # The job directory has the model as well.
    assert contents(Path(job.directory.path, "model")) == expected
    assert sorted(os.listdir(target.parent)) == ["7"]
    with pytest.raises(UsageError, match=r"--saved_model_path: .*exists and is not empty"):
        submit(GANG, saved_model_path=str(target))


def test_a_job_without_a_model_or_success_publishes_none(submit: Submit, tmp_path: Path) -> None:
    target = tmp_path / "models/7"
    record = submit("print(1)", saved_model_path=str(target)).wait_success(90)
    assert "wrote no file to SUBMARINE_MODEL_DIR" in " ".join(record.warnings)
    assert record.saved_outputs == []
    failing = submit(GANG + "raise SystemExit(3)", saved_model_path=str(target))
    failing.wait(90)
    record = failing.record()
    assert "--saved_model_path: files were not published" in " ".join(record.missing)
    assert not target.parent.exists() or os.listdir(target.parent) == []
    # A program that writes there itself is left alone.
    own = "import os, pathlib, sys; pathlib.Path(sys.argv[1]).mkdir(parents=True)"
    record = submit(own, args=("%saved_model_path%",), saved_model_path=str(target)).wait_success(
        90
    )
    assert (record.saved_outputs, os.listdir(target)) == ([], [])
    assert record.notes == [f"{target} (--saved_model_path) is written by the program."]
