"""--localization: what is copied into the job directory, in which form, and how YARN takes it."""

from __future__ import annotations

import subprocess
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.access import JobDirectory
from submarine_jobs.backends import Plan, Submission
from submarine_jobs.backends.yarn.application import files_to_localize
from submarine_jobs.backends.yarn.application.single import agent_script
from submarine_jobs.errors import UsageError
from submarine_jobs.inputs import copy_sources
from submarine_jobs.inputs.localization import check
from submarine_jobs.model import JobSpec, Localization
from submarine_jobs.storage import LocalStorage
from submarine_runtime.agent.preparation.bundle import remove_checksum_files
from tests.configurations import make_agent_config


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        return


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    served = tmp_path / "served"
    served.mkdir()
    (served / "labels.csv").write_text("a,b")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served)))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def submission(job_dir: Path, *items: Localization, rerun_of: str | None = None) -> Submission:
    spec = JobSpec(name="x", backend="yarn", localization=items, rerun_of=rerun_of)
    agent = make_agent_config(job_id="x", backend="yarn")
    return Submission(spec, Plan("", []), LocalStorage(), str(job_dir), agent, "/x/cache/r.zip")


def brought(job_dir: Path, *items: Localization, rerun_of: str | None = None) -> dict[str, Any]:
    job = submission(job_dir, *items, rerun_of=rerun_of)
    copy_sources(JobDirectory(job.storage, job.job_dir), job.spec)
    return files_to_localize(job)


def test_a_file_from_the_web_is_copied_to_the_job_directory(tmp_path: Path, site: str) -> None:
    item = Localization(f"{site}/labels.csv", "labels.csv")
    assert check(item) is None
    files = brought(tmp_path / "job", item)
    assert (tmp_path / "job" / "localization" / "labels.csv").read_text() == "a,b"
    assert str(files["localized-0"].type) == "FILE"


def test_a_page_that_is_not_there_is_one_sentence(tmp_path: Path, site: str) -> None:
    item = Localization(f"{site}/nothing", "n")
    with pytest.raises(UsageError, match="cannot be downloaded"):
        brought(tmp_path / "job", item)


def test_a_directory_travels_as_an_archive(tmp_path: Path) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "one").write_text("1")
    (tmp_path / "other").write_text("2")
    items = (Localization(f"{tmp_path}/data", "d"), Localization(f"{tmp_path}/other", "d.zip"))
    files = brought(tmp_path / "job", *items)
    assert [str(file.type) for file in files.values()] == ["ARCHIVE", "FILE"]
    kept = Path(files["localized-0"].source.removeprefix("file://"))
    with zipfile.ZipFile(kept) as archive:
        assert "deep/one" in archive.namelist()
    assert (tmp_path / "job" / "localization" / "d.zip").read_text() == "2"


def test_a_file_on_hdfs_stays_where_it_is(tmp_path: Path) -> None:
    item = Localization("hdfs://nn:8020/data/x", "x")
    files = brought(tmp_path / "job", item)
    assert files["hdfs-0"].source == "hdfs://nn:8020/data/x"
    assert not (tmp_path / "job").exists()


def test_one_hdfs_source_under_two_names_is_localized_once(tmp_path: Path) -> None:
    sources = ("hdfs:///d", "hdfs:///d/", "hdfs:///e", "hdfs:///d")
    items = [Localization(source, f"t{n}") for n, source in enumerate(sources)]
    made = submission(tmp_path / "job", *items)
    assert sorted(files_to_localize(made)) == ["hdfs-0", "hdfs-2"]
    script = agent_script(made, "/bin/true", made.agent)
    assert [f"ln -s ../hdfs-{n} 'program/t{m}'" in script for m, n in enumerate((0, 0, 2, 0))] == [
        True
    ] * 4


def test_only_generated_checksum_files_are_removed(tmp_path: Path) -> None:
    shared, root = tmp_path / "filecache" / "data", tmp_path / "container"
    (shared / "deep").mkdir(parents=True)
    root.mkdir()
    (root / "hdfs-0").symlink_to(shared)
    content = {
        "a": b"1", ".a.crc": b"crc\0\0\0\2\0....", "deep/b": b"2", "deep/.b.crc": b"crc\0",
        ".alone.crc": b"crc\0", "c": b"3", ".c.crc": b"my own",
    }  # fmt: skip
    for name, data in content.items():
        (shared / name).write_bytes(data)
    assert remove_checksum_files(str(root)) == 0
    left = {str(path.relative_to(shared)) for path in shared.rglob("*") if path.is_file()}
    assert left == {"a", "deep/b", ".alone.crc", "c", ".c.crc"}


def test_a_rerun_takes_the_copy_of_the_job_that_it_repeats(tmp_path: Path) -> None:
    first, second = "x-20261121-aaaa", "x-20261121-bbbb"
    (tmp_path / "one").write_text("1")
    item = Localization(f"{tmp_path}/one", "one")
    brought(tmp_path / "202611" / first, item)
    (tmp_path / "one").unlink()
    assert check(item) is not None
    assert check(item, rerun=True) is None
    brought(tmp_path / "202611" / second, item, rerun_of=first)
    assert (tmp_path / "202611" / second / "localization" / "one").read_text() == "1"


def test_a_foreign_spec_cannot_name_a_place_outside(tmp_path: Path) -> None:
    for target in ("../x", "/x", "a/../../x", "a//x", "", "x\n"):
        sentence = check(Localization(f"{tmp_path}", target), rerun=True)
        assert "working directory" in str(sentence), target


def test_entries_come_to_their_places_below_the_programs_directory(tmp_path: Path) -> None:
    items = (Localization("hdfs://n/a", "it's/deep er/a"), Localization("hdfs://n/b", "program"))
    made = submission(tmp_path / "job", *items)
    script = agent_script(made, "/bin/true", made.agent)
    for number in (0, 1):
        (tmp_path / f"hdfs-{number}").write_text(str(number))
    subprocess.run(["sh", "-c", script], cwd=tmp_path, check=False, capture_output=True)
    assert (tmp_path / "program" / "it's" / "deep er" / "a").read_text() == "0"
    assert (tmp_path / "program" / "program").read_text() == "1"
