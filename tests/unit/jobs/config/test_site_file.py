"""The site file: its trust, its locked keys, and the refusal of every other source."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from submarine_jobs.commands import execute
from submarine_jobs.config import (
    SITE_VARIABLE,
    Config,
    check_locked,
    file as config_file,
    load_config,
    load_section,
    read_site_file,
)
from submarine_jobs.config.file import site_file
from submarine_jobs.config.file_safety import check_site_file
from submarine_jobs.doctor import CHECKS, DoctorContext, Status, run_checks, site as doctor_site
from submarine_jobs.errors import ConfigError
from submarine_jobs.frontends import Frontend
from submarine_jobs.model import Profile
from submarine_kernel.remote import KernelRequest, session_of
from submarine_zeppelin.accounts import paragraph_config
from tests.second_user import needs_root
from tests.trusting import trusted

CONTENT = """\
backend = "local"
queue = "ml"
timeout = "30s"

[settings]
driver_idle_minutes = 60

[profiles.prod]
queue = "gpu"
job_root = "/jobs"

[azkaban]
url = "https://azkaban.example:8443"

[locked]
keys = ["backend", "queue", "timeout", "settings.driver_idle_minutes", "profiles.prod.job_root"]
queues = ["ml", "gpu", "root.lab.*"]
images = ["registry.example/ml/*"]
max_gpus_per_job = 8
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site file that the variable names, and a user without other configuration."""
    for name in os.environ:
        if name.startswith(("SUBMARINE_", "HADOOP_")) or name == "JAVA_HOME":
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "config" / "jupyter-submarine").mkdir(parents=True)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    (tmp_path / "etc").mkdir(mode=0o755)
    path = write(tmp_path / "etc" / "submarine.toml", CONTENT)
    monkeypatch.setenv(SITE_VARIABLE, str(path))
    monkeypatch.setattr(config_file, "SITE_FILE", tmp_path / "absent" / "submarine.toml")
    return path


def write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    path.chmod(0o644)
    return path


def user(tmp_path: Path, content: str) -> Path:
    return write(tmp_path / "config" / "jupyter-submarine" / "submarine.toml", content)


def where(site: Path, text: str) -> str:
    return f"{site}:{CONTENT.splitlines().index(text) + 1}"


def source(config: Config, name: str) -> tuple[object, str, bool]:
    item = next(item for item in config.settings if item.name == name)
    return item.value, item.source, item.locked


def test_the_site_file_gives_defaults_and_its_locks_are_shown(site: Path, tmp_path: Path) -> None:
    user(tmp_path, 'python_env = "auto"\n')
    config = load_config()
    assert config.files == (site, tmp_path / "config" / "jupyter-submarine" / "submarine.toml")
    assert source(config, "queue") == ("ml", f"{site}:2", True)
    assert source(config, "settings.driver_idle_minutes") == ("60", f"{site}:6", True)
    assert source(config, "job_root") == (None, "default", False)
    assert source(config, "python_env")[2] is False
    prod = load_config({"profile": "prod"})
    assert source(prod, "queue") == ("gpu", where(site, 'queue = "gpu"'), True)
    assert source(prod, "job_root")[2] is True
    assert load_section("azkaban")["url"].personal
    shown = execute(["config"], Frontend())
    assert f"{site}:2 (locked)" in shown.text
    assert f"Locked by {site}:" in shown.text
    assert "max_gpus_per_job  8" in shown.text
    values = {item["name"]: item["locked"] for item in shown.value["values"]}
    assert (values["queue"], values["python_env"]) == (True, False)
    assert shown.value["site"] == str(site)
    assert shown.value["locked"]["images"] == ("registry.example/ml/*",)


def by_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = user(tmp_path, '\nqueue = "mine"\n')
    return f"{path}:2"


def by_user_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SUBMARINE_PROFILE", "own")
    path = user(tmp_path, '[profiles.own]\nqueue = "mine"\n')
    return f"{path}:2"


def by_named_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = write(tmp_path / "named.toml", 'queue = "mine"\n')
    monkeypatch.setenv("SUBMARINE_CONFIG", str(path))
    return f"{path}:1"


def by_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = write(tmp_path / "project" / "submarine.toml", 'queue = "mine"\n')
    return f"{path}:1"


def by_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SUBMARINE_QUEUE", "mine")
    return "SUBMARINE_QUEUE"


@pytest.mark.parametrize(
    "source_of", [by_user, by_user_profile, by_named_file, by_project, by_variable]
)
def test_no_file_or_variable_changes_a_locked_key(
    source_of: Callable[[Path, pytest.MonkeyPatch], str],
    site: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = source_of(tmp_path, monkeypatch)
    with pytest.raises(ConfigError) as caught:
        load_config()
    assert caught.value.message == f"{named} sets queue to 'mine', and {site}:2 locks it to 'ml'."
    assert caught.value.fix


def test_no_option_kernelspec_or_interpreter_setting_changes_a_locked_key(site: Path) -> None:
    locked = f"sets queue to 'mine', and {site}:2 locks it to 'ml'."
    with pytest.raises(ConfigError, match="^--queue " + locked):
        load_config({"queue": "mine"})
    with pytest.raises(ConfigError, match="^The kernelspec big " + locked):
        session_of(KernelRequest("big", {"queue": "mine"}))
    with pytest.raises(
        ConfigError, match=r"^The interpreter setting submarine.yarn.queue " + locked
    ):
        paragraph_config({"submarine.yarn.queue": "mine"}, "ada")
    with pytest.raises(ConfigError, match="^--queue " + locked):
        paragraph_config({"submarine.yarn.queue": "ml"}, "ada", {"queue": "mine"})
    with pytest.raises(ConfigError, match=r"^--conf sets settings.driver_idle_minutes to '5'"):
        load_config({"settings.driver_idle_minutes": "5"})
    assert session_of(KernelRequest("big", {"queue": "ml"})).profile.queue == "ml"


def test_a_key_of_one_profile_is_locked_in_that_profile_only(site: Path) -> None:
    assert load_config({"job_root": "/mine"}).profile.job_root == "/mine"
    lock = where(site, 'job_root = "/jobs"')
    with pytest.raises(ConfigError, match=f"and {lock} locks it to '/jobs'"):
        load_config({"profile": "prod", "job_root": "/mine"})


def test_an_equal_value_is_accepted_and_the_lock_remains_the_source(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBMARINE_TIMEOUT", "30")
    config = load_config({"queue": "root.ml", "settings.driver_idle_minutes": "60"})
    assert source(config, "timeout") == (30.0, f"{site}:3", True)
    assert config.profile.queue == "ml"


def test_hadoops_variables_do_not_override_a_locked_key(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(site, 'java_home = "/jdk"\n[locked]\nkeys = ["java_home"]\n')
    monkeypatch.setenv("JAVA_HOME", "/other")
    assert load_config().profile.java_home == Path("/jdk")
    monkeypatch.setenv("SUBMARINE_JAVA_HOME", "/other")
    with pytest.raises(ConfigError, match=f"SUBMARINE_JAVA_HOME sets java_home .* {site}:1 locks"):
        load_config()


def test_a_locked_cluster_excludes_the_minicluster(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(site, 'hadoop_conf_dir = "/etc/hadoop"\n[locked]\nkeys = ["hadoop_conf_dir"]\n')
    values = {"hadoop_conf_dir": ("/tmp/mini", "the running minicluster")}
    monkeypatch.setattr("submarine_jobs.config.loader._minicluster", lambda: values)
    with pytest.raises(ConfigError, match=r"^the running minicluster sets hadoop_conf_dir"):
        load_config({"profile": "minicluster"})


def test_only_the_site_file_can_lock(site: Path, tmp_path: Path) -> None:
    path = user(tmp_path, 'queue = "ml"\n[locked]\nkeys = ["queue"]\n')
    with pytest.raises(ConfigError, match=f"{path}:2: only the site file .* can lock keys"):
        load_config()


def test_the_site_file_named_as_the_users_file_is_read_once(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBMARINE_CONFIG", str(site))
    assert load_config().files == (site,)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("queue = \n", "submarine.toml is not valid TOML: Invalid value (at line 1, column 9)."),
        ("[lockd]\n", "submarine.toml:1 has the unknown key 'lockd'; did you mean locked?"),
        ("locked = 1\n", "submarine.toml:1: locked must be a table, [locked]."),
        ("[locked]\nimage = []\n", ":2 has the unknown key 'image'; did you mean images?"),
        ('[locked]\nqueues = "ml"\n', ":2: queues must be a list of texts in quotes."),
        ("[locked]\nqueues = []\n", ":2: queues is empty, so that no job could be submitted."),
        ("[locked]\nimages = [1]\n", ":2: images must be a list of texts in quotes."),
        (
            "[locked]\nmax_gpus_per_job = -1\n",
            ":2: max_gpus_per_job must be a whole number from 0.",
        ),
        ("[locked]\nmax_gpus_per_job = true\n", "must be a whole number from 0."),
        (
            'queue = "ml"\n[locked]\nkeys = ["queu"]\n',
            ":3 locks 'queu', which this file does not set; did you mean queue?",
        ),
        (
            'queue = "ml"\n[locked]\nkeys = ["profiles.prod.job_root"]\n',
            "which this file does not set; set the value that all users get, or remove the key",
        ),
        ('user = "svc"\n[locked]\nkeys = ["user"]\n', ":3: 'user' cannot be locked; these can:"),
        (
            '[azkaban]\nuser = "svc"\n[locked]\nkeys = ["azkaban.user"]\n',
            ":4: 'azkaban.user' cannot be locked; these can: backend, ",
        ),
        (
            '[profiles.a]\nstate_dir = "/x"\n[locked]\nkeys = ["profiles.a.state_dir"]\n',
            "'profiles.a.state_dir' cannot be locked;",
        ),
    ],
)
def test_an_invalid_site_file_stops_everything(site: Path, content: str, sentence: str) -> None:
    write(site, content)
    with pytest.raises(ConfigError) as caught:
        load_config()
    assert sentence in str(caught.value)
    assert str(site) in str(caught.value)


def test_settings_of_profiles_and_profiles_with_dots_can_be_locked(site: Path) -> None:
    write(
        site,
        '[profiles."a.b"]\nqueue = "x"\n[profiles."a.b".settings]\nam_cds = "off"\n'
        '[locked]\nkeys = ["profiles.a.b.queue", "profiles.a.b.settings.am_cds"]\n',
    )
    read = read_site_file(os.environ)
    assert read is not None
    assert set(read.locked_values("a.b")) == {"queue", "settings.am_cds"}
    assert read.locked_values("a") == {}


def test_the_variable_counts_only_without_the_sites_own_file(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert site_file(os.environ) == site
    real = write(tmp_path / "etc" / "real.toml", "")
    monkeypatch.setattr(config_file, "SITE_FILE", real)
    assert site_file(os.environ) == real
    # A link without a target is not an absent file: it is refused.
    real.unlink()
    real.symlink_to(tmp_path / "gone")
    with pytest.raises(ConfigError, match=f"{real} cannot be read"):
        load_config()


def test_nothing_is_locked_without_a_site_file(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SITE_VARIABLE)
    config = load_config({"queue": "mine"})
    assert (config.profile.queue, config.site) == ("mine", None)


@pytest.mark.parametrize(
    ("mode", "directory", "owner", "reason", "fix"),
    [
        (0o644, 0o755, 1000, "belongs to the user", "chown root"),
        (0o664, 0o755, 0, "can be changed by its group or others (mode 0664)", "chmod go-w"),
        (0o646, 0o755, 0, "can be changed by its group or others (mode 0646)", "chmod go-w"),
        (0o644, 0o777, 0, "can be changed by its group or others (mode 0777)", "chmod go-w"),
        (0o644, 0o775, 0, "can be changed by its group or others (mode 0775)", "chmod go-w"),
        (0o600, 0o755, 0, None, None),
        (0o644, 0o1777, 0, None, None),
    ],
)
def test_owner_and_mode(
    tmp_path: Path, mode: int, directory: int, owner: int, reason: str | None, fix: str | None
) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    path = write(folder / "submarine.toml", "")
    path.chmod(mode)
    folder.chmod(directory)
    fields = list(path.stat())
    fields[4] = owner  # st_uid
    found = check_site_file(path, os.stat_result(fields), {0, os.getuid()} - {1000})
    if reason is None:
        assert found is None
    else:
        assert found is not None
        assert reason in found.reason
        assert fix is not None
        assert fix in found.fix
        assert str(folder) in found.reason


def test_a_site_file_that_others_can_change_stops_everything(site: Path) -> None:
    site.chmod(0o666)
    with pytest.raises(ConfigError) as caught:
        load_config()
    assert str(caught.value) == (
        f"The site file cannot be trusted: {site} can be changed by its group or others (mode "
        f"0666). As root, run `chmod go-w {site}`."
    )


def test_a_pipe_or_directory_is_refused_at_once(site: Path) -> None:
    site.unlink()
    os.mkfifo(site, 0o644)
    with pytest.raises(ConfigError, match="is not a regular file"):
        load_config()
    site.unlink()
    site.mkdir()
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_config()


@needs_root
def test_the_sites_own_file_must_belong_to_root(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_file, "SITE_FILE", site)
    assert load_config().site == site
    os.chown(site, 64003, -1)
    with pytest.raises(
        ConfigError, match=r"belongs to .* instead of root. As root, run `chown root"
    ):
        load_config()
    os.chown(site, 0, -1)
    os.chown(site.parent, 64003, -1)
    with pytest.raises(ConfigError, match=f"{site.parent} belongs to .* instead of root"):
        load_config()


def test_an_error_of_access_is_not_an_absent_file(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: object, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(config_file, "SITE_FILE", site)
    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", denied)
        assert site_file({}) == site
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", denied)
        with pytest.raises(ConfigError) as caught:
            read_site_file({})
    assert str(caught.value) == (
        f"{site} cannot be read: Permission denied. As root, make it readable by all users: "
        f"`chmod 644 {site}`."
    )


def test_the_example_of_the_documentation_is_valid(site: Path) -> None:
    page = Path(__file__).parents[4] / "docs" / "site-configuration.md"
    example = page.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    write(site, example)
    config = load_config()
    assert config.profile.hadoop_conf_dir == Path("/etc/hadoop/conf")
    assert config.locks.describe() == {
        "keys": "settings.hdfs_wait_minutes, profiles.prod.hadoop_conf_dir",
        "queues": "ml, ml-*, default",
        "images": "registry.example/ml/*",
        "max_gpus_per_job": "8",
    }


def test_an_invalid_value_is_compared_as_text() -> None:
    with pytest.raises(ConfigError, match="locks it to '20s'"):
        check_locked("timeout", "soon", "--timeout", ("20s", "site:1"))
    check_locked("timeout", "20", "--timeout", ("20s", "site:1"))


def check_of(queue: str | None = None) -> tuple[Status, str, str]:
    (check,) = (check for check in CHECKS if check.name == "site file")
    (result,) = run_checks(DoctorContext(Profile(queue=queue)), (check,))
    return result.status, result.sentence, result.fix


def test_the_doctor_covers_the_site_file(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, sentence, fix = check_of()
    assert status is Status.WARNING
    assert f"{SITE_VARIABLE} names it, and each user can unset that variable." in sentence
    assert "owned by root" in fix
    status, sentence, fix = check_of("mine")
    assert (status, fix) == (Status.ERROR, "Set queue to one of the allowed queues.")
    assert sentence.endswith("The configured queue mine is not allowed.")
    assert check_of("lab.small")[0] is Status.WARNING
    write(site, "[locked]\nqueus = []\n")
    status, sentence, fix = check_of()
    assert (status, fix) == (Status.ERROR, "did you mean queues?")
    assert sentence == f"{site}:2 has the unknown key 'queus';"
    site.chmod(0o666)
    status, sentence, fix = check_of()
    assert status is Status.ERROR
    assert f"{site} can be changed by its group or others (mode 0666)" in sentence
    assert fix == f"As root, run `chmod go-w {site}`."
    monkeypatch.delenv(SITE_VARIABLE)
    status, sentence, _ = check_of()
    assert status is Status.OK
    assert sentence.startswith("There is no ")
    assert sentence.endswith("so nothing is locked.")


@needs_root
def test_the_doctor_names_the_locks_of_the_sites_own_file(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_file, "SITE_FILE", site)
    monkeypatch.setattr(doctor_site, "SITE_FILE", site)
    status, sentence, fix = check_of()
    assert (status, fix) == (Status.WARNING, "Unset it.")
    monkeypatch.delenv(SITE_VARIABLE)
    status, sentence, fix = check_of()
    assert (status, fix) == (Status.OK, "")
    assert f"{site} is valid and locks keys: backend, queue, " in sentence
    assert "queues: ml, gpu, root.lab.*; images: registry.example/ml/*; max_gpus_per_job: 8." in (
        sentence
    )
    write(site, 'queue = "ml"\n')
    assert check_of()[1] == f"{site} is valid and locks nothing."
    os.chown(site, 64003, -1)
    assert check_of()[0] is Status.ERROR


def test_the_doctor_runs_although_the_site_file_is_refused(site: Path) -> None:
    site.chmod(0o666)
    outcome = execute(["doctor"], Frontend())
    checks = {check["name"]: check["status"] for check in outcome.value["checks"]}
    assert outcome.exit_code == 1
    assert (checks["configuration files"], checks["site file"]) == ("error", "error")
    assert checks["state directory"] == "ok"


def test_the_doctor_reports_a_value_that_a_lock_refuses(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBMARINE_QUEUE", "mine")
    outcome = execute(["doctor"], Frontend())
    first = outcome.value["checks"][0]
    assert first["status"] == "error"
    assert first["sentence"].startswith("SUBMARINE_QUEUE sets queue to 'mine'")


def test_a_confirmed_project_file_cannot_change_a_locked_key(site: Path, tmp_path: Path) -> None:
    project = write(tmp_path / "project" / "submarine.toml", 'backend = "yarn"\n')
    trusted(project)
    with pytest.raises(
        ConfigError, match=f"{project}:1 sets backend to 'yarn', and {site}:1 locks"
    ):
        load_config()
