"""Values of ``--secret``: sources, limits, and sentences that contain no value."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from submarine_jobs.errors import UsageError
from submarine_jobs.model import JobSpec, Profile
from submarine_jobs.submit import program_secrets, readable_secret_files
from submarine_jobs.submit.program_secrets import MAX_SECRET_VALUE, read_keytab, read_secrets

VALUE = "hf_9f8e7d6c5b4a"


def spec(**secrets: str) -> JobSpec:
    return JobSpec("a", "local", secrets=secrets)


def refusal(**secrets: str) -> str:
    with pytest.raises(UsageError) as caught:
        read_secrets(spec(**secrets))
    assert VALUE not in str(caught.value)
    assert caught.value.fix or "512 KiB" in caught.value.message
    return str(caught.value)


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str, str], object]], None]:
    """Replace the package; real keyrings belong to a desktop session."""

    def install(get_password: Callable[[str, str], object]) -> None:
        module = SimpleNamespace(get_password=get_password)
        monkeypatch.setitem(sys.modules, "keyring", module)

    monkeypatch.setitem(sys.modules, "keyring", None)
    monkeypatch.delenv("TOKEN", raising=False)
    return install


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"abc\n", "abc"),
        (b"abc\r\n", "abc"),
        (b"abc", "abc"),
        (b"a\nb\n\n", "a\nb\n"),
        (b" \xc3\xa9 ", " é "),
        (b"x" * MAX_SECRET_VALUE + b"\n", "x" * MAX_SECRET_VALUE),
    ],
)
def test_a_file_without_its_last_newline(content: bytes, value: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(content)
    assert read_secrets(spec(TOKEN=str(tmp_path / "key"))) == {"TOKEN": value}


def test_a_path_is_relative_to_home_or_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".hf").write_text(VALUE)
    assert read_secrets(spec(A="~/.hf", B=".hf")) == {"A": VALUE, "B": VALUE}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "the value in key is empty"),
        (b"\n", "the value in key is empty"),
        (f"{VALUE}\0".encode(), "has a NUL byte or is not UTF-8"),
        (f"{VALUE}\xe9".encode("latin-1"), "has a NUL byte or is not UTF-8"),
        (VALUE.encode() * MAX_SECRET_VALUE, "is longer than 64 KiB"),
        (b"x" * (MAX_SECRET_VALUE + 1), "is longer than 64 KiB"),
    ],
)
def test_a_file_that_holds_no_variable(
    content: bytes, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").write_bytes(content)
    assert sentence in refusal(TOKEN="key")


def test_what_is_no_readable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    (tmp_path / "directory").mkdir()
    assert f"there is no file {tmp_path}/gone." in refusal(TOKEN="gone")
    assert "pipe is not a regular file" in refusal(TOKEN="pipe")
    assert "directory" in refusal(TOKEN="directory")
    assert "cannot be read: Not a directory" in refusal(TOKEN="/dev/null/key")


def test_the_variable_comes_before_the_keyring(
    keyring: Callable[[Callable[[str, str], object]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def get_password(*words: str) -> str:
        asked.append(words)
        return VALUE

    assert "the package keyring, which may hold it too, is not installed" in refusal(TOKEN="")
    keyring(get_password)
    assert read_secrets(spec(TOKEN="")) == {"TOKEN": VALUE}
    assert asked == [("jupyter-submarine", "TOKEN")]
    monkeypatch.setenv("TOKEN", "of the environment")
    assert read_secrets(spec(TOKEN="")) == {"TOKEN": "of the environment"}
    assert len(asked) == 1
    monkeypatch.setenv("TOKEN", "")
    assert "the value in its source is empty" in refusal(TOKEN="")


def test_a_keyring_without_the_value(
    keyring: Callable[[Callable[[str, str], object]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    keyring(lambda *_: None)
    sentence = refusal(TOKEN="")
    assert "the environment variable TOKEN is not set" in sentence
    assert "the keyring has no password of jupyter-submarine for it" in sentence
    assert "`keyring set jupyter-submarine TOKEN`" in sentence

    def broken(*_: str) -> None:
        raise RuntimeError(VALUE)

    keyring(broken)
    assert "the keyring does not answer (RuntimeError)" in refusal(TOKEN="")
    monkeypatch.setattr(program_secrets, "KEYRING_SECONDS", 0.05)
    keyring(lambda *_: __import__("time").sleep(1))
    assert "the keyring does not answer (TimeoutError)" in refusal(TOKEN="")


def test_all_values_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"TOKEN_{number}" for number in range(9)]
    for name in names:
        monkeypatch.setenv(name, "x" * MAX_SECRET_VALUE)
    assert len(read_secrets(spec(**dict.fromkeys(names[:8], "")))) == 8
    assert "more than 512 KiB together" in refusal(**dict.fromkeys(names, ""))


@pytest.mark.parametrize("name", ["PATH", "LD_PRELOAD", "SUBMARINE_ROLE", "1A", "A B", ""])
def test_a_spec_that_was_changed_sets_no_other_variable(name: str) -> None:
    assert "--secret" in refusal(**{name: "/etc/hostname"})


def test_files_that_others_can_read(tmp_path: Path) -> None:
    secrets = {}
    for mode in (0o600, 0o640, 0o604, 0o622):
        path = tmp_path / f"{mode:o}"
        path.write_text(VALUE)
        path.chmod(mode)
        secrets[f"TOKEN_{mode:o}"] = str(path)
    warnings = readable_secret_files(spec(HERE="", GONE=str(tmp_path / "gone"), **secrets))
    assert [text.partition(":")[0] for text in warnings] == [
        "--secret TOKEN_640",
        "--secret TOKEN_604",
    ]
    assert "(mode 0640); protect it with chmod 600" in warnings[0]


def test_a_keytab_is_read_whole_or_refused(tmp_path: Path) -> None:
    keytab = tmp_path / "user.keytab"
    sent = JobSpec("a", "yarn", distribute_keytab=True)
    profile = Profile(keytab=keytab, principal="alice@EXAMPLE.COM")
    keytab.write_bytes(b"k" * (1 << 20))
    assert read_keytab(sent, profile) == b"k" * (1 << 20)
    assert read_keytab(JobSpec("a", "yarn"), profile) is None
    keytab.write_bytes(b"k" * ((1 << 20) + 1))
    with pytest.raises(UsageError, match="longer than 1 MiB"):
        read_keytab(sent, profile)
    keytab.unlink()
    with pytest.raises(UsageError, match="cannot be read"):
        read_keytab(sent, profile)
    with pytest.raises(UsageError, match="none is set"):
        read_keytab(sent, Profile())
