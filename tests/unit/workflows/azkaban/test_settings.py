"""Which Azkaban is meant, and where its password comes from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from submarine_jobs.errors import ConfigError
from submarine_workflows.azkaban.api import Connection, Settings, find_password, load_settings
from submarine_workflows.azkaban.api.credentials import VARIABLE, read_password
from tests.trusting import trusted


def test_where_a_password_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
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
    with pytest.raises(ConfigError, match="There is no password of"):
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
    assert find_password(settings, None, {VARIABLE: "variable"}) == "variable"
    project = tmp_path / "submarine.toml"
    project.write_text('[azkaban]\nurl = "https://evil:1"\npassword_file = "/etc/shadow"\n')
    trusted(project)
    with pytest.raises(
        ConfigError, match="password_file is not allowed in a project's configuration"
    ):
        find_password(load_settings(environ={}), None, {})
    project.write_text('[azkaban]\nurl = "https://evil:1"\n')
    trusted(project)
    with pytest.raises(ConfigError, match="There is no password of"):
        find_password(load_settings(environ={}), None, {})
    (own / "empty").touch(0o600)
    with pytest.raises(ConfigError, match="is empty"):
        read_password(own / "empty")


def test_a_ca_that_others_can_change_is_refused(tmp_path: Path) -> None:
    ca, file = tmp_path / "ca.pem", tmp_path / "own.toml"
    ca.touch()
    file.write_text('[azkaban]\nurl = "https://az"\nuser = "alice"\nca = "ca.pem"\n')
    environ = {"SUBMARINE_CONFIG": str(file)}
    assert load_settings(environ=environ).ca == str(ca)
    ca.chmod(0o666)
    with pytest.raises(ConfigError, match=r"ca\.pem, which ca .* can be changed by every user"):
        load_settings(environ=environ)


def test_the_variables_password_goes_to_the_address_that_the_user_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not to one that a project's file names, nor to another one that was typed."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    project = tmp_path / "submarine.toml"
    project.write_text('[azkaban]\nurl = "https://evil:1"\nuser = "alice"\n')
    with pytest.raises(ConfigError, match="you have not confirmed this file"):
        load_settings(environ={})
    trusted(project)
    secret = {VARIABLE: "hunter2"}

    def sent(environ: dict[str, str], **options: str) -> str:
        return find_password(load_settings(options, environ=environ), None, environ)

    with pytest.raises(ConfigError) as caught:
        sent(secret)
    assert (
        f"is not sent to https://evil:1, which {project}:2 names, but your configuration does not"
        in str(caught.value)
    )
    assert "set SUBMARINE_AZKABAN_URL=https://evil:1 too" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    mine = {**secret, "SUBMARINE_AZKABAN_URL": "https://az:8443"}
    assert sent(mine) == "hunter2"
    assert sent(secret, url="https://az:8443") == "hunter2"  # no address is configured
    with pytest.raises(ConfigError, match="which --url names, but your configuration does not"):
        sent(mine, url="https://evil:1")
    own = tmp_path / "home" / "jupyter-submarine" / "submarine.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[azkaban]\nurl = "https://az:8443"\nuser = "alice"\n')
    with pytest.raises(ConfigError, match="is not sent to https://evil:1"):
        sent(secret)
    project.write_text('[azkaban]\nurl = "https://AZ:8443/"\n')
    trusted(project)
    assert sent(secret) == "hunter2"  # the same address
    project.unlink()
    assert sent(secret) == "hunter2"
    assert sent({**secret, "SUBMARINE_CONFIG": str(own)}) == "hunter2"


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("http://az.example.org:8081", True),
        ("http://127.0.0.1.example.org", True),
        ("http://localhost.example.org", True),
        ("http://10.0.0.1:8081", True),
        ("http://0.0.0.0:8081", True),
        ("http://localhost:8081", False),
        ("http://127.0.0.1:8081", False),
        ("http://127.8.8.8", False),
        ("http://[::1]:8081", False),
        ("https://az.example.org", False),
    ],
)
def test_no_password_over_plain_http_but_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, plain: bool
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    environ = {"SUBMARINE_AZKABAN_URL": url, "SUBMARINE_AZKABAN_USER": "alice"}
    asked: list[str] = []
    if not plain:
        assert load_settings(environ=environ).url == url
        return
    with pytest.raises(ConfigError, match="is not https, so others could read the password"):
        load_settings(environ=environ)

    def password() -> str:
        asked.append(url)
        return "secret"

    with pytest.raises(ConfigError, match="is not https"):
        Connection(Settings(url, "alice"), password).get("/executor", "the run")
    assert asked == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[azkaban]\nuser = "a"\n', "No Azkaban server is configured"),
        ('[azkaban]\nurl = "https://az"\n', "No Azkaban user is configured"),
        ('[azkaban]\nurl = "az:8443"\nuser = "a"\n', "is not the URL of an Azkaban server"),
        ('[azkaban]\nurl = "https://me:pw@az"\nuser = "a"\n', "contains a user or password"),
        ('[azkaban]\npasword_file = "x"\n', "did you mean password_file"),
        ("[azkaban]\nurl = 3\n", "url must be a text"),
        ("azkaban = 3\n", "azkaban must be a table"),
        ('[azkaban]\nurl = "https://az"\nuser = "a"\nca = "x.pem"\n', "x.pem, which is not a file"),
        ('[azkaban]\nurl = "https://az"\nuser = "a"\ntimezone = "Mars"\n', "is not a time zone"),
    ],
)
def test_settings_that_mean_nothing(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "submarine.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_settings(environ={"SUBMARINE_CONFIG": str(file)}, cwd=tmp_path)
    assert sentence in str(refused.value)
    assert "pw" not in str(refused.value)
