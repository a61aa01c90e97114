"""Environments that uv builds from a file, without a network."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from submarine_jobs.environments import provide_environment
from submarine_jobs.environments.sources import source_of, uv_program
from submarine_jobs.errors import UsageError
from submarine_jobs.model import PackedEnvironment, PythonEnv, parse_python_env
from submarine_jobs.storage import LocalStorage
from tests.python_projects import project, without_network


def wheel(source: Path, directory: Path) -> Path:
    """Build the wheel of a project as its backend does."""
    directory.mkdir(exist_ok=True)
    code = "import sys, backend; print(backend.build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(directory)],
        cwd=source,
        capture_output=True,
        text=True,
        check=True,
    )
    return directory / done.stdout.strip()


class Client:
    """A machine without network, whose wheels are in a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.wheels = root / "wheels"
        self.cache = root / "root" / "cache"
        for version in ("1.0", "2.0"):
            wheel(project(root / f"abacus-{version}", "abacus", version), self.wheels)
        self.steps: list[str] = []

    def provide(self, text: str) -> PackedEnvironment:
        self.steps.clear()
        provided = provide_environment(
            parse_python_env(text),
            LocalStorage(),
            str(self.cache),
            self.root / "state",
            lambda what, done, total: self.steps.append(what),
        )
        assert provided is not None
        return provided.files

    def run(self, files: PackedEnvironment, code: str) -> str:
        """Unpack a whole archive and run its Python."""
        assert files.delta == ""
        place = self.root / f"unpacked-{Path(files.archive).stem}"
        if not place.exists():
            place.mkdir()
            archive = files.archive.removeprefix("file://")
            subprocess.run(["tar", "-xzf", archive, "-C", str(place)], check=True)
        python = str(place / "bin/python3")
        done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, env={})
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Client:
    return Client(tmp_path_factory.mktemp("machine"))


@pytest.fixture
def client(machine: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Client:
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    for name, value in without_network(machine.root / "uv-cache").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("UV_FIND_LINKS", str(machine.wheels))
    monkeypatch.chdir(tmp_path)
    return machine


def test_requirements_are_built_once_for_each_content(client: Client, tmp_path: Path) -> None:
    mine = project(tmp_path / "mine", "mine")
    edited = project(tmp_path / "edited", "edited")
    file = tmp_path / "conf" / "requirements.txt"
    file.parent.mkdir()
    (file.parent / "more.txt").write_text("abacus==1.0  # pinned\n")
    file.write_text("-r more.txt\n../mine\n-e ../edited\n")
    files = client.provide("requirements:conf/requirements.txt")
    assert list(dict.fromkeys(client.steps)) == ["building", "reading", "packing", "uploading"]
    code = "import abacus, mine, edited; print(abacus.VALUE, mine.VALUE, edited.VALUE)"
    assert client.run(files, code) == "1.0 1.0 1.0"
    code = "import sys, importlib.util as u; print(u.find_spec('numpy'), sys.version_info[:2])"
    assert client.run(files, code) == f"None {sys.version_info[:2]}"
    assert client.provide("requirements:conf/requirements.txt") == files
    assert client.steps == [], "the cluster has it"
    for change in (
        lambda: (file.parent / "more.txt").write_text("abacus==2.0\n"),
        lambda: (mine / "mine.py").write_text("VALUE = 'changed'\n"),
        lambda: (edited / "edited.py").write_text("VALUE = 'changed too'\n"),
    ):
        change()
        changed = client.provide("requirements:conf/requirements.txt")
        assert "building" in client.steps
        # Only what has changed is uploaded; the interpreter and its library are in the base.
        assert changed.archive == files.archive
        assert changed.delta


def test_lock_of_uv_is_built_as_locked(client: Client, tmp_path: Path) -> None:
    root = project(tmp_path / "app", "app", needs='"abacus==1.0"')
    subprocess.run([uv_program(), "lock", "--quiet"], cwd=root, check=True)
    files = client.provide("uv:app/uv.lock")
    assert client.run(files, "import abacus, app; print(abacus.VALUE, app.VALUE)") == "1.0 1.0"
    assert client.provide("uv:app/uv.lock") == files
    assert client.steps == []
    assert not (root / ".venv").exists()
    text = (root / "pyproject.toml").read_text()
    (root / "pyproject.toml").write_text(text.replace("abacus==1.0", "abacus==2.0"))
    with pytest.raises(UsageError, match=r"uv:app/uv\.lock cannot be built: .*lock"):
        client.provide("uv:app/uv.lock")
    subprocess.run([uv_program(), "lock", "--quiet"], cwd=root, check=True)
    assert client.provide("uv:app/uv.lock").delta


@pytest.mark.parametrize("text", ["pyproject", "pyproject:.."])
def test_project_is_installed_with_its_dependencies(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    root = project(tmp_path / text.replace(":", ""), "app", needs='"abacus>=1"')
    (root / "notebooks").mkdir()
    monkeypatch.chdir(root / "notebooks")
    source = source_of(parse_python_env(text))
    before = source.digest()
    files = client.provide(text)
    code = "import abacus, app; print(abacus.VALUE, app.VALUE)"
    if not files.delta:
        assert client.run(files, code) == "2.0 1.0"
    (root / ".venv").mkdir()
    (root / ".venv" / "more.py").write_text("")
    assert source.digest() == before, "not a source of the project"
    (root / "app.py").write_text("VALUE = 'changed'\n")
    assert source.digest() != before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("requirements:nowhere.txt", "there is no such file on this machine"),
        ("requirements:cut.txt", "missing.txt: No such file or directory"),
        ("requirements:unknown.txt", r"cannot be built: .*no-such-package"),
        ("uv:uv.lock", "there is no such file on this machine"),
        ("uv:alone/uv.lock", "there is no pyproject.toml beside the lock file"),
        ("pyproject:alone", "there is no pyproject.toml in"),
        ("conda:nowhere", "there is no such conda environment"),
        ("conda:/nowhere", "there is no such conda environment"),
    ],
)
def test_bad_source_is_one_sentence(client: Client, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "cut.txt").write_text("-r missing.txt\n")
    (tmp_path / "unknown.txt").write_text("no-such-package==1.0\n")
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "uv.lock").write_text("version = 1\n")
    with pytest.raises(UsageError, match=words) as caught:
        client.provide(text)
    assert "\n" not in str(caught.value)
    assert not list((client.root / "state").glob("environment-build-*"))


def test_uv_that_is_not_installed_is_named(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(UsageError, match="built with uv, which is not installed"):
        uv_program()


def test_what_the_digest_of_requirements_covers(client: Client, tmp_path: Path) -> None:
    local = tmp_path / "local.whl"
    with zipfile.ZipFile(local, "w") as archive:
        archive.writestr("x", "1")
    lines = (
        "abacus\n--pre\n-c constraints.txt\n"
        "local @ file://{local}\n./dir[extra] ; python_version > '3'\nx @ https://example.org/x.whl\n"
    )
    (tmp_path / "constraints.txt").write_text("abacus<3\n")
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "setup.py").write_text("1")
    (tmp_path / "r.txt").write_text(lines.format(local=local))
    source = source_of(PythonEnv("requirements", "r.txt"))
    seen = {source.digest()}
    for file in ("constraints.txt", "local.whl", "dir/setup.py", "r.txt"):
        path = tmp_path / file
        path.write_bytes(path.read_bytes() + b"# more\n")
        seen.add(source.digest())
    assert len(seen) == 5
