"""Configuration of a hub for delegation tokens, without a hub."""

from __future__ import annotations

import asyncio
import getpass
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from traitlets.config import Config

from submarine_jobs.errors import ConfigError
from submarine_server.hub import SpawnError, TokenFiles, provide_tokens

CORE = """<configuration>
<property><name>fs.defaultFS</name><value>hdfs://localhost:1</value></property>
<property><name>hadoop.security.authentication</name><value>kerberos</value></property>
<property><name>dfs.namenode.http-address</name><value>localhost:1</value></property>
</configuration>"""


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    """A cluster that does not run, and a keytab that does not exist."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "core-site.xml").write_text(CORE)
    return {
        "keytab": str(tmp_path / "hub.keytab"),
        "principal": "hub@EXAMPLE.COM",
        "hadoop_conf_dir": str(tmp_path / "conf"),
        "directory": str(tmp_path / "tokens"),
    }


def spawner(user: str) -> Any:
    return SimpleNamespace(user=SimpleNamespace(name=user), name="", environment={"A": "b"})


def token_files(options: dict[str, Any]) -> TokenFiles:
    paths = (Path(options[key]) for key in ("directory", "keytab", "hadoop_conf_dir"))
    directory, keytab, conf = paths
    return TokenFiles(directory, keytab, options["principal"], conf, "")


def test_no_server_starts_without_tokens(options: dict[str, Any]) -> None:
    called = []
    config = Config()
    config.Spawner.pre_spawn_hook = lambda made: called.append(made)
    provide_tokens(config, **options)
    made = spawner(getpass.getuser())
    with pytest.raises(SpawnError, match="gives no tokens for") as raised:
        asyncio.run(config.Spawner.pre_spawn_hook(made))
    assert raised.value.jupyterhub_message == str(raised.value)
    assert called == [made]
    assert made.environment == {"A": "b"}
    assert list(Path(options["directory"]).iterdir()) == []


def test_a_user_without_an_account_gets_no_tokens(options: dict[str, Any]) -> None:
    config = Config()
    provide_tokens(config, **options)
    with pytest.raises(SpawnError, match="has no Unix account"):
        asyncio.run(config.Spawner.pre_spawn_hook(spawner("no-such-account-here")))


def test_the_file_of_a_stopped_server_is_removed(options: dict[str, Any]) -> None:
    called = []

    async def after(made: Any) -> None:
        called.append(made)

    config = Config()
    config.Spawner.post_stop_hook = after
    provide_tokens(config, **options)
    file = token_files(options).path("alice")
    file.touch()
    made = spawner("alice")
    asyncio.run(config.Spawner.post_stop_hook(made))
    assert (file.exists(), called) == (False, [made])


def test_names_never_lead_out_of_the_directory(options: dict[str, Any]) -> None:
    files = token_files(options)
    directory = Path(options["directory"])
    assert directory.stat().st_mode & 0o777 == 0o711
    for user in ("..", ".hidden", "a/b", "../alice"):
        with pytest.raises(ConfigError, match="cannot have a token file"):
            files.path(user)
    assert files.path("alice", "../../x").parent == directory
    assert files.path("alice", "x") != files.path("alice", "y") != files.path("alice")


def test_a_directory_of_another_user_is_refused(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="not a directory of the hub's own user"):
        token_files({**options, "directory": str(tmp_path / "link")})
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(ConfigError, match="not a directory of the hub's own user"):
        token_files(options)
