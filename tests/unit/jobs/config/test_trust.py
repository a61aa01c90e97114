"""What a project's file makes this machine execute or trust is confirmed once, by its user."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import submarine_jobs
from submarine_jobs.commands import complete, execute
from submarine_jobs.config import (
    KNOWN_SETTINGS,
    PROFILE_KEYS,
    UntrustedConfigError,
    confirmed_keys,
    load_config,
    load_section,
    project_trust as config_trust,
    read_file,
)
from submarine_jobs.config.file import SECTIONS
from submarine_jobs.config.project_trust import HARMLESS
from submarine_jobs.errors import ConfigError, UsageError
from submarine_jobs.frontends import Frontend
from submarine_kernel.remote import KernelRequest, session_of
from submarine_server.service import JobService
from submarine_workflows.azkaban.api import load_settings
from submarine_workflows.locations import current_profile
from submarine_zeppelin.accounts import paragraph_config

CONTENT = 'queue = "ml"\njava_home = "jdk"\n[profiles.lab.settings]\nyarn_command = "/bin/yarn"\n'


class Person(Frontend):
    """An interactive front end with a fixed answer."""

    interactive = True

    def __init__(self, answer: bool) -> None:
        super().__init__()
        self.answer = answer
        self.heard: list[str] = []

    def say(self, text: str) -> None:
        self.heard.append(text)

    def confirm(self, question: str) -> bool:
        self.heard.append(question)
        return self.answer


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's file in the working directory."""
    for name in os.environ:
        if name.startswith(("SUBMARINE_", "HADOOP_")) or name == "JAVA_HOME":
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "submarine.toml").write_text(CONTENT)
    return folder / "submarine.toml"


def stored(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "state" / "jupyter-submarine" / "trust").glob("*"))


def test_an_unconfirmed_file_is_refused_with_its_keys_and_the_command(project: Path) -> None:
    with pytest.raises(UntrustedConfigError) as caught:
        load_config()
    said = str(caught.value)
    assert f"{project} sets java_home, profiles.lab.settings.yarn_command, which" in said
    assert f"`submarine config trust {project}`" in said
    with pytest.raises(UntrustedConfigError):
        load_section("azkaban")
    assert load_config(project=False).profile.queue is None


def test_harmless_keys_need_no_confirmation(project: Path, tmp_path: Path) -> None:
    project.write_text('queue = "ml"\ntimeout = 9\n[settings]\nam_heartbeat_ms = 300\n')
    assert load_config().profile.queue == "ml"
    execute(["config", "trust"], Frontend())
    assert stored(tmp_path) == []


def test_every_key_is_harmless_or_confirmed(project: Path) -> None:
    """A new key needs confirmation until it is declared harmless."""
    known = {*PROFILE_KEYS, "default_profile", *(f"settings.{name}" for name in KNOWN_SETTINGS)}
    known |= {f"{name}.{key}" for name, keys in SECTIONS.items() for key in keys}
    assert known >= HARMLESS
    lines = [f'{key} = "x"' for key in PROFILE_KEYS]
    lines += ["[settings]", *(f'{name} = "x"' for name in KNOWN_SETTINGS)]
    for name, keys in SECTIONS.items():
        lines += [f"[{name}]", *(f'{key} = "x"' for key in keys)]
    project.write_text("\n".join(lines))
    found = set(confirmed_keys(read_file(project, project.parent)))
    assert found == known - HARMLESS
    assert {"java_home", "hadoop_conf_dir", "python_env", "settings.yarn_command"} <= found
    assert {"settings.agent_python", "settings.driver_java_options", "azkaban.ca"} <= found


def test_confirmed_once_and_until_one_of_these_keys_changes(project: Path, tmp_path: Path) -> None:
    person = Person(True)
    assert execute(["config", "trust", str(project)], person).exit_code == 0
    assert f'  java_home                           "{project.parent / "jdk"}"' in person.heard
    [entry] = stored(tmp_path)
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert stat.S_IMODE(entry.parent.stat().st_mode) == 0o700
    assert load_config().profile.java_home == project.parent / "jdk"
    project.write_text(CONTENT.replace('"ml"', '"other"'))
    assert load_config().profile.queue == "other"
    heard = len(person.heard)
    assert "trusted already" in execute(["config", "trust"], person).text
    assert len(person.heard) == heard
    project.write_text(CONTENT.replace('"jdk"', '"evil"'))
    with pytest.raises(UntrustedConfigError):
        load_config()
    project.write_text(CONTENT)
    assert load_config().profile.queue == "ml"
    moved = project.parent / "moved"
    moved.mkdir()
    (moved / "submarine.toml").write_text(CONTENT)
    with pytest.raises(UntrustedConfigError):
        load_config(cwd=moved)
    assert "not trusted any more" in execute(["config", "trust", "--forget"], Frontend()).text
    with pytest.raises(UntrustedConfigError):
        load_config()


def test_a_command_asks_in_an_interactive_front_end(project: Path, tmp_path: Path) -> None:
    no = Person(False)
    with pytest.raises(UntrustedConfigError):
        execute(["config"], no)
    assert [line.split()[0] for line in no.heard[1:3]] == [
        "java_home",
        "profiles.lab.settings.yarn_command",
    ]
    assert no.heard[-1].endswith("Trust the file?")
    assert stored(tmp_path) == []
    yes = Person(True)
    assert "queue" in execute(["config"], yes).text
    assert "queue" in execute(["config"], no).text  # confirmed by now
    assert len([words for words in yes.heard if "Trust" in words]) == 1


def test_no_question_without_an_interactive_front_end_or_in_completion(project: Path) -> None:
    with pytest.raises(UntrustedConfigError):
        execute(["list"], Frontend())
    with pytest.raises(UsageError, match="This front end cannot ask"):
        execute(["config", "trust"], Frontend())
    person = Person(True)
    complete(["run", "--profile", ""], person)
    complete(["run", "--queue", ""], person)
    complete(["show", ""], person)
    assert person.heard == []
    assert "is trusted until" in execute(["config", "trust", "--yes"], Frontend()).text
    assert "lab" in complete(["run", "--profile", ""], person)


@pytest.mark.parametrize(
    "act",
    [
        lambda: paragraph_config({}, "ada"),
        lambda: session_of(KernelRequest("gpu4", {})),
        lambda: submarine_jobs.list_jobs(),
        lambda: JobService().open_session(),
        lambda: current_profile(),
        lambda: load_settings(),
    ],
    ids=["zeppelin", "kernel in a container", "python", "server", "headless", "azkaban"],
)
def test_all_that_cannot_ask_refuses(project: Path, act: Callable[[], object]) -> None:
    with pytest.raises(UntrustedConfigError, match="submarine config trust"):
        act()


def test_a_file_is_the_same_by_any_path(project: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(project.parent)
    execute(["config", "trust", "--yes", str(tmp_path / "link" / "submarine.toml")], Frontend())
    assert load_config().profile.java_home == project.parent / "jdk"
    assert "not trusted any more" in execute(["config", "trust", "--forget", "."], Frontend()).text


def test_the_answer_and_its_json(project: Path) -> None:
    refused = execute(["config", "trust", "--json"], Person(False))
    assert (refused.exit_code, refused.value["trusted"]) == (1, False)
    assert refused.value["keys"]["profiles.lab.settings.yarn_command"] == "/bin/yarn"
    assert execute(["config", "trust", "-y", "."], Frontend()).value["trusted"] is True
    for words in (["config", "--yes"], ["config", "trust", "--profile", "x"]):
        with pytest.raises(UsageError):
            execute(words, Frontend())
    with pytest.raises(UsageError, match="did you mean trust"):
        execute(["config", "thrust"], Frontend())


def test_no_value_can_hide_what_is_confirmed(project: Path) -> None:
    """Neither by its length nor by line breaks and controls."""
    long = " " * 20_000 + "-XX:OnError=evil"
    driver, master = (
        f'driver_java_options = "{long}"',
        'am_java_options = "a\\n  b\\u001b[2K\\u202e"',
    )
    project.write_text(f"[settings]\n{driver}\n{master}\n")
    person = Person(True)
    execute(["config", "trust"], person)
    assert "-XX:OnError=evil" in "".join(person.heard)
    assert max(map(len, person.heard)) <= 10_000
    [line] = [words for words in person.heard if "am_java_options" in words]
    assert '"a\\n  b\\u001b[2K\ufffd"' in line


def test_files_of_the_user_are_trusted(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"SUBMARINE_CONFIG": str(project)}
    assert load_config(environ=environ).profile.queue == "ml"  # the same file, named by its user
    own = tmp_path / "config" / "jupyter-submarine" / "submarine.toml"
    own.parent.mkdir(parents=True)
    own.write_text(CONTENT)
    project.write_text('queue = "x"\n')
    assert load_config().profile.java_home == own.parent / "jdk"
    monkeypatch.chdir(own.parent)
    assert load_config().profile.queue == "ml"


@pytest.mark.parametrize("what", ["folder", "file", "link", "content", "owner"])
def test_a_store_that_others_could_have_written_is_not_believed(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    execute(["config", "trust", "--yes"], Frontend())
    [entry] = stored(tmp_path)
    if what == "folder":
        entry.parent.chmod(0o770)
    elif what == "file":
        entry.chmod(0o660)
    elif what == "link":
        real = entry.with_suffix(".real")
        entry.rename(real)
        entry.symlink_to(real)
    elif what == "content":
        entry.write_text("[]")
    else:
        me = os.getuid()
        monkeypatch.setattr("submarine_jobs.config.project_trust.os.getuid", lambda: me + 1)
        monkeypatch.setattr("submarine_jobs.config.file_safety._is_ours", lambda seen: True)
    with pytest.raises(UntrustedConfigError):
        load_config()
    if what in ("folder", "owner"):
        with pytest.raises(ConfigError, match="nothing is remembered there"):
            execute(["config", "trust", "--yes"], Frontend())


def test_what_was_shown_is_what_is_trusted(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not what stands in the file when the answer comes."""

    class Slow(Person):
        def confirm(self, question: str) -> bool:
            if len(self.heard) < 10:
                project.write_text(CONTENT.replace('"jdk"', '"evil"'))
                self.answer = "evil" not in "".join(self.heard)
            return super().confirm(question)

    person = Slow(True)
    with pytest.raises(UntrustedConfigError):
        execute(["config"], person)
    assert "evil" in "".join(person.heard)
    [entry] = stored(tmp_path)
    kept: dict[str, Any] = json.loads(entry.read_text())
    assert kept["digest"] != config_trust._digest(read_file(project, project.parent))


def test_a_store_that_cannot_be_written_is_a_sentence(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("no directory")
    with pytest.raises(ConfigError, match="cannot be written"):
        execute(["config", "trust", "--yes"], Frontend())


def test_doctor_reports_the_file_and_looks_at_the_rest(project: Path) -> None:
    person = Person(True)
    found = execute(["doctor", "--backend", "local"], person)
    first = found.value["checks"][0]
    assert (first["name"], first["status"]) == ("configuration files", "error")
    assert "submarine config trust" in first["fix"]
    assert len(found.value["checks"]) > 5
    assert found.exit_code == 1
    assert person.heard == []
    project.write_text('queue = "ml"\n')
    assert str(project) in execute(["doctor", "--backend", "local"], person).text
