"""A configuration file that other users can change is refused, with the command that helps."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from submarine_jobs.config import file_safety, load_config
from submarine_jobs.errors import ConfigError

OTHER = 54321


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's file that is safe."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir(mode=0o755)
    file = folder / "submarine.toml"
    file.write_text('queue = "ml"\n')
    file.chmod(0o644)
    return file


def refused(file: Path, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(environ=environ, cwd=file.parent)
    return str(caught.value)


def belongs_to(monkeypatch: pytest.MonkeyPatch, owners: dict[Path, int], me: int) -> None:
    """Owners of paths as the checks see them, since only root can give files away."""
    real_stat, real_fstat = Path.stat, os.fstat
    numbers = {path.stat().st_ino: owner for path, owner in owners.items()}

    def changed(seen: os.stat_result) -> os.stat_result:
        values = list(seen)
        values[4] = numbers.get(seen.st_ino, me)
        return os.stat_result(values)

    monkeypatch.setattr(Path, "stat", lambda path, **words: changed(real_stat(path, **words)))
    monkeypatch.setattr("submarine_jobs.config.file.os.fstat", lambda fd: changed(real_fstat(fd)))
    monkeypatch.setattr("submarine_jobs.config.file_safety.os.getuid", lambda: me)


def test_a_safe_file_is_read(project: Path) -> None:
    assert load_config(environ={}, cwd=project.parent).profile.queue == "ml"


@pytest.mark.parametrize(
    ("mode", "folder", "sentence"),
    [
        (0o666, 0o755, "can be changed by every user (mode 0666)"),
        (0o664, 0o755, "can be changed by the group "),
        (0o644, 0o777, "can be replaced by every user, because "),
        (0o644, 0o775, "can be replaced by the group "),
    ],
)
def test_a_file_that_others_can_change_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch, mode: int, folder: int, sentence: str
) -> None:
    monkeypatch.setattr(file_safety, "_is_private_group", lambda seen: False)
    project.chmod(mode)
    project.parent.chmod(folder)
    said = refused(project)
    assert sentence in said
    assert f"`chmod go-w {project if mode != 0o644 else project.parent}`" in said
    project.chmod(0o644)
    project.parent.chmod(0o1777)
    assert load_config(environ={}, cwd=project.parent).profile.queue == "ml"


def test_a_private_group_may_write(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As umask 002 gives it; not where an ACL stands behind the group's bits."""
    owner, seen = pwd.getpwuid(os.getuid()), project.stat()
    members = [owner.pw_name]
    monkeypatch.setattr(
        "submarine_jobs.config.file_safety.pwd.getpwuid",
        lambda uid: SimpleNamespace(pw_name=owner.pw_name, pw_gid=seen.st_gid),
    )
    monkeypatch.setattr(
        "submarine_jobs.config.file_safety.grp.getgrgid",
        lambda gid: SimpleNamespace(gr_name=owner.pw_name, gr_mem=members),
    )
    project.chmod(0o664)
    project.parent.chmod(0o775)
    assert load_config(environ={}, cwd=project.parent).profile.queue == "ml"
    monkeypatch.setattr(file_safety, "_has_acl", lambda path: True)
    assert "can be changed by the group" in refused(project)
    monkeypatch.setattr(file_safety, "_has_acl", lambda path: False)
    members.append("mallory")
    assert "can be changed by the group" in refused(project)


def test_a_group_without_an_entry_is_not_private(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(gid: int) -> grp.struct_group:
        raise KeyError(gid)

    monkeypatch.setattr("submarine_jobs.config.file_safety.grp.getgrgid", none)
    project.chmod(0o664)
    assert f"can be changed by the group {project.stat().st_gid}" in refused(project)


@pytest.mark.parametrize("me", [0, 1000])
def test_a_file_or_directory_of_another_user_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch, me: int
) -> None:
    """Also by root; root's files are accepted by everybody."""
    belongs_to(monkeypatch, {project: OTHER}, me)
    said = refused(project)
    assert f"{project} belongs to the user with the number {OTHER}" in said
    assert f"`SUBMARINE_CONFIG={project}`" in said
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(project.parent.parent / "home"))
    belongs_to(monkeypatch, {project.parent: OTHER}, me)
    assert "can be replaced by the user with the number" in refused(project)
    monkeypatch.undo()
    belongs_to(monkeypatch, {project: 0, project.parent: 0}, me)
    assert load_config(environ={}, cwd=project.parent).profile.queue == "ml"


def test_a_link_into_a_directory_of_others_is_refused(project: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "real.toml").write_text('queue = "x"\n')
    shared.chmod(0o777)
    project.unlink()
    project.symlink_to(shared / "real.toml")
    assert f"because {shared} has mode 0777" in refused(project)


def test_a_file_that_was_named_may_be_of_another_user_but_not_changed_by_all(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    belongs_to(monkeypatch, {project: OTHER, project.parent: OTHER}, 1000)
    environ = {"SUBMARINE_CONFIG": str(project)}
    assert load_config(environ=environ, cwd=project.parent).profile.queue == "ml"
    assert load_config(environ=environ, cwd=Path("/")).profile.queue == "ml"
    project.chmod(0o646)
    assert "can be changed by every user" in refused(project, **environ)


def test_the_users_own_file_is_checked_too(project: Path, tmp_path: Path) -> None:
    own = tmp_path / "home" / "jupyter-submarine" / "submarine.toml"
    own.parent.mkdir(parents=True)
    own.write_text('queue = "mine"\n')
    own.chmod(0o666)
    assert f"{own} can be changed by every user" in refused(project)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to give a file to another user")
def test_root_refuses_the_file_of_a_real_user(project: Path) -> None:
    """Above the directory in which root works."""
    deeper = project.parent / "deeper"
    deeper.mkdir()
    os.chown(project, OTHER, OTHER)
    with pytest.raises(ConfigError, match="belongs to the user with the number"):
        load_config(environ={}, cwd=deeper)
