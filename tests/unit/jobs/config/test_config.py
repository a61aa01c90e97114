from __future__ import annotations

import re
from pathlib import Path

import pytest

from submarine_jobs.config import KNOWN_SETTINGS, Config, load_config, python_of
from submarine_jobs.errors import ConfigError, NoClusterError, UsageError
from tests.trusting import trusted


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's file and a project's file, two directories up from where one works."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    user = tmp_path / "home" / "jupyter-submarine"
    user.mkdir(parents=True)
    (user / "submarine.toml").write_text(
        'queue = "of-user"\ntimeout = "5s"\n'
        '[profiles.prod]\nhadoop_conf_dir = "/etc/prod"\nqueue = "prod"\n'
    )
    work = tmp_path / "project" / "deep" / "deeper"
    work.mkdir(parents=True)
    (tmp_path / "project" / "submarine.toml").write_text(
        'timeout = 7\n\n[profiles.test]\nhadoop_conf_dir = "conf"\n'
        "[profiles.test.settings]\nam_heartbeat_ms = 200\n"
    )
    trusted(tmp_path / "project" / "submarine.toml")
    return work


def source(config: Config, name: str) -> str:
    return next(item.source for item in config.settings if item.name == name)


def test_nothing_configured_is_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    config = load_config(environ={}, cwd=tmp_path)
    assert config.profile.backend is None
    assert source(config, "backend") == "default"


def test_rising_precedence_and_sources(project: Path) -> None:
    config = load_config(environ={}, cwd=project)
    assert (config.profile.queue, config.profile.timeout) == ("of-user", 7.0)
    assert source(config, "queue").endswith("home/jupyter-submarine/submarine.toml:1")
    assert source(config, "timeout").endswith("project/submarine.toml:1")
    environ = {"SUBMARINE_QUEUE": "of-env", "SUBMARINE_TIMEOUT": "9"}
    config = load_config(environ=environ, cwd=project)
    assert (config.profile.queue, config.profile.timeout) == ("of-env", 9.0)
    assert source(config, "queue") == "SUBMARINE_QUEUE"
    config = load_config({"queue": "of-option"}, environ=environ, cwd=project)
    assert config.profile.queue == "of-option"
    assert source(config, "queue") == "--queue"


def test_profiles_paths_and_settings(project: Path) -> None:
    config = load_config({"profile": "test"}, environ={}, cwd=project)
    assert config.profile.hadoop_conf_dir == project.parents[1] / "conf"
    assert config.profile.backend == "yarn"
    assert dict(config.profile.settings) == {"am_heartbeat_ms": "200"}
    assert source(config, "settings.am_heartbeat_ms").endswith(":6")
    assert config.profiles == ("default", "minicluster", "prod", "test")
    changed = load_config(
        {"profile": "test", "settings.am_heartbeat_ms": "1000"}, environ={}, cwd=project
    )
    assert dict(changed.profile.settings) == {"am_heartbeat_ms": "1000"}


def test_a_profile_chosen_by_name_is_not_led_elsewhere_by_hadoops_variables(project: Path) -> None:
    environ = {"HADOOP_CONF_DIR": "/etc/other"}
    named = load_config({"profile": "prod"}, environ=environ, cwd=project)
    assert named.profile.hadoop_conf_dir == Path("/etc/prod")
    assert load_config(environ=environ, cwd=project).profile.hadoop_conf_dir == Path("/etc/other")
    own = {"SUBMARINE_HADOOP_CONF_DIR": "/etc/mine"}
    assert load_config(
        {"profile": "prod"}, environ=own, cwd=project
    ).profile.hadoop_conf_dir == Path("/etc/mine")


def test_default_profile_and_variable(project: Path) -> None:
    config = load_config(environ={"SUBMARINE_PROFILE": "prod"}, cwd=project)
    assert (config.profile.name, config.profile.queue) == ("prod", "prod")
    (project / "submarine.toml").write_text('default_profile = "prod"\n')
    assert load_config(environ={}, cwd=project).profile.name == "prod"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('queeu = "x"', "submarine.toml:1 has the unknown key 'queeu'; did you mean queue?"),
        ('[profiles.a]\n\nhadoop_config_dir = "x"', "submarine.toml:3 has the unknown key"),
        ("queue = 3", "queue must be a text in quotes."),
        ('profiles = "x"', "must be a table"),
        ('[profiles]\na = "x"', "is not a table"),
        ('[profiles."a/b"]', "is not a table"),
        ("queue = ", "is not valid TOML"),
        ('backend = "mesos"', "installed are yarn, local."),
        ("timeout = 90000", "must lie between"),
        ("[settings]\nam_heartbeat_mss = 3", "did you mean am_heartbeat_ms?"),
        ("[settings]\nyarn_command = [1]", "must be a text, number or boolean"),
        ('python_env = "venv:x"', "is not known"),
        ('queue = "a\\nb"', "must be one line of text."),
    ],
)
def test_impossible_files(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "submarine.toml"
    file.write_text(text + "\n")
    with pytest.raises(ConfigError) as caught:
        load_config(environ={"SUBMARINE_CONFIG": str(file)}, cwd=tmp_path)
    assert sentence in str(caught.value)


def test_unknown_profile_names_the_close_one(project: Path) -> None:
    with pytest.raises(UsageError, match=re.escape("did you mean prod?")):
        load_config({"profile": "prd"}, environ={}, cwd=project)


def test_the_minicluster_is_never_picked_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert load_config(environ={}, cwd=tmp_path).profile.backend is None
    with pytest.raises(NoClusterError, match="minicluster start"):
        load_config({"profile": "minicluster"}, environ={}, cwd=tmp_path)


@pytest.mark.parametrize("variable", ["SUBMARINE_CONFIG"])
def test_a_named_file_must_be_there(variable: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a file"):
        load_config(environ={variable: str(tmp_path / "gone.toml")}, cwd=tmp_path)


def test_python_environments() -> None:
    assert python_of("host", "/x/python") == "/x/python"
    assert python_of("path:/opt/env/", "/x/python") == "/opt/env/bin/python3"
    for bad in ("path:env", "dcoker:x", "", "path"):
        with pytest.raises(UsageError):
            python_of(bad, "/x/python")


@pytest.mark.parametrize("minutes", ["soon", "0", "-1", "1441", "nan"])
def test_a_wait_for_hdfs_that_is_no_number_of_minutes_is_refused(minutes: str) -> None:
    with pytest.raises(ConfigError, match=r"from 0\.1 to 1440"):
        load_config({"settings.hdfs_wait_minutes": minutes}, environ={}, cwd=Path("/"))


@pytest.mark.parametrize("ports", ["20000", "80-90", "20100-20000"])
def test_a_port_range_that_is_none_is_refused(ports: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({"settings.port_range": ports}, environ={}, cwd=Path("/"))
    assert caught.value.message == (
        f"settings.port_range = '{ports}' from --conf is not valid: must be LOW-HIGH, two ports "
        "from 1024 to 65535, such as 20000-20100."
    )
    assert load_config({"settings.port_range": "20000-20100"}, environ={}, cwd=Path("/"))


def test_every_setting_that_is_read_is_known() -> None:
    backends = Path(__file__).parents[4] / "jobs" / "submarine_jobs"
    read = {
        name
        for path in backends.rglob("*.py")
        for name in re.findall(r"settings\.get\(\s*[\"']([^\"']+)", path.read_text())
    }
    assert read
    assert read == set(KNOWN_SETTINGS)


def test_the_proxy_user_of_an_azkaban_job(project: Path, tmp_path: Path) -> None:
    user = tmp_path / "home" / "jupyter-submarine" / "submarine.toml"
    user.write_text('proxy_user = "user.to.proxy"\n')
    properties = tmp_path / "job.properties"
    environ = {"JOB_PROP_FILE": str(properties)}
    properties.write_text("#Sat Nov 28\ntype=command\nuser.to.proxy=alice\nuser.to.proxy.x=bob\n")
    config = load_config(environ=environ, cwd=project)
    assert config.profile.proxy_user == "alice"
    assert source(config, "proxy_user").endswith(
        "submarine.toml:1: user.to.proxy of the Azkaban job"
    )
    # A variable of Hadoop overrides it, as any other value of a file.
    named = load_config(environ={**environ, "HADOOP_PROXY_USER": "carol"}, cwd=project)
    assert named.profile.proxy_user == "carol"
    properties.write_text("type=command\nuser.to.proxy=\n")
    for variables in (environ, {"JOB_PROP_FILE": str(tmp_path / "missing")}, {}):
        with pytest.raises(ConfigError, match="no Azkaban job with it") as error:
            load_config(environ=variables, cwd=project)
        assert "user.to.proxy under `config:`" in error.value.fix
    # Without that value in the configuration, a job does not select a user.
    user.write_text('queue = "of-user"\n')
    properties.write_text("user.to.proxy=alice\n")
    assert load_config(environ=environ, cwd=project).profile.proxy_user is None
