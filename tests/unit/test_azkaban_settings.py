"""Which Azkaban is meant, and where its password comes from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from submarine_jobs.errors import ConfigError
from submarine_workflows.azkaban.credentials import find_password, read_password
from submarine_workflows.azkaban.settings import Settings, load_settings


def test_where_a_password_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "jupyter-submarine"
    (own / "azkaban").mkdir(parents=True)
    toml = own / "submarine.toml"
    toml.write_text('[azkaban]\nurl = "https://az:8443/"\nuser = "alice"\npassword_file = "pw"\n')
    (own / "pw").write_text("from a file\n")
    os.chmod(own / "pw", 0o600)
    settings = load_settings(environ={})
    assert settings.url == "https://az:8443"
    asked: list[str] = []

    def ask(words: str) -> str:
        asked.append(words)
        return ""

    assert find_password(settings, ask, {}) == "from a file"
    elsewhere = Settings("https://other:8443", "alice")
    with pytest.raises(ConfigError, match="is not known here"):
        find_password(elsewhere, None, {})
    find_password(elsewhere, ask, {})
    assert asked == ["Password of alice at https://other:8443"]
    host = own / "azkaban" / "other_8443.password"
    host.write_text("of the other\nmore\n")
    os.chmod(host, 0o640)
    with pytest.raises(ConfigError, match="can be read by other users"):
        find_password(elsewhere, None, {})
    os.chmod(host, 0o600)
    assert find_password(elsewhere, None, {}) == "of the other"
    assert find_password(settings, None, {"SUBMARINE_AZKABAN_PASSWORD": "variable"}) == "variable"
    project = tmp_path / "submarine.toml"
    project.write_text('[azkaban]\nurl = "https://evil:1"\npassword_file = "/etc/shadow"\n')
    with pytest.raises(ConfigError, match="a project's configuration names no password_file"):
        find_password(load_settings(environ={}), None, {})
    project.write_text('[azkaban]\nurl = "https://evil:1"\n')
    with pytest.raises(ConfigError, match="is not known here"):
        find_password(load_settings(environ={}), None, {})
    (own / "empty").touch(0o600)
    with pytest.raises(ConfigError, match="is empty"):
        read_password(own / "empty")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[azkaban]\nuser = "a"\n', "No Azkaban is named"),
        ('[azkaban]\nurl = "https://az"\n', "No user of Azkaban is named"),
        ('[azkaban]\nurl = "az:8443"\nuser = "a"\n', "is no address of an Azkaban"),
        ('[azkaban]\nurl = "https://me:pw@az"\nuser = "a"\n', "has a user or password in it"),
        ('[azkaban]\npasword_file = "x"\n', "did you mean password_file"),
        ("[azkaban]\nurl = 3\n", "url must be a text"),
        ("azkaban = 3\n", "azkaban must be a table"),
        ('[azkaban]\nurl = "https://az"\nuser = "a"\nca = "x.pem"\n', "x.pem, no file"),
        ('[azkaban]\nurl = "https://az"\nuser = "a"\ntimezone = "Mars"\n', "is no time zone"),
    ],
)
def test_settings_that_mean_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, sentence: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    (tmp_path / "submarine.toml").write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_settings(environ={}, cwd=tmp_path)
    assert sentence in str(refused.value)
    assert "pw" not in str(refused.value)
