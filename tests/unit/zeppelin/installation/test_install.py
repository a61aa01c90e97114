"""Commands install, uninstall and check of `submarine zeppelin`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.commands import execute
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.frontends import Frontend
from submarine_kernel.kernelspecs import install_kernel, provisioning
from submarine_zeppelin.interface import PROPERTIES


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HADOOP_CONF_DIR", "SUBMARINE_BACKEND", "SUBMARINE_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = tmp_path / "zeppelin"
    (made / "interpreter").mkdir(parents=True)
    (made / "conf").mkdir()
    return made


def run(*words: str) -> str:
    return execute(["zeppelin", *words], Frontend()).text


def setting(home: Path) -> list[dict[str, Any]]:
    return json.loads((home / "interpreter" / "submarine" / "interpreter-setting.json").read_text())


def test_install_writes_all_interpreters(home: Path) -> None:
    run("install", str(home))
    entries = setting(home)
    assert [one["name"] for one in entries] == ["submarine", "python", "sh"]
    assert [one["defaultInterpreter"] for one in entries] == [True, False, False]
    assert len({one["className"] for one in entries}) == 3
    for one in entries:
        assert one["group"] == "submarine"
        assert one["runner"] == {"linux": f"{sys.executable} -m submarine_zeppelin"}
        assert one["editor"]["completionSupport"] is True
    names = [name for one in entries for name in one["properties"]]
    assert sorted(names) == sorted(item.name for item in PROPERTIES)
    assert all(one["description"] for entry in entries for one in entry["properties"].values())


def test_settings_are_documented() -> None:
    docs = Path(__file__).resolve().parents[4] / "docs"
    told = "".join((docs / name).read_text() for name in ("zeppelin.md", "zeppelin-migration.md"))
    # Settings of roles are documented together: tf.worker.services.num, .memory and so on.
    role = re.compile(r"(tf\.\w+\.services\.)[\w.]+")
    names = [role.sub(r"\1", item.name) for item in PROPERTIES]
    assert [name for name in names if name not in told] == []


def test_update_keeps_changes_of_the_administrator(home: Path) -> None:
    run("install", str(home), "--set", "submarine.yarn.queue=gpu", "--set", "MY_OWN=1")
    file = home / "interpreter" / "submarine" / "interpreter-setting.json"
    entries = setting(home)
    entries[0]["properties"]["tf.worker.services.num"]["defaultValue"] = "7"
    entries[1]["editor"]["editOnDblClick"] = True
    file.write_text(json.dumps(entries))
    run("install", str(home), "--python", "/bin/sh")
    after = setting(home)
    properties = after[0]["properties"]
    assert properties["submarine.yarn.queue"]["defaultValue"] == "gpu"
    assert properties["tf.worker.services.num"]["defaultValue"] == "7"
    assert properties["MY_OWN"]["defaultValue"] == "1"
    assert properties["MY_OWN"]["envName"] == "MY_OWN"
    assert after[1]["editor"]["editOnDblClick"] is True
    assert after[2]["runner"]["linux"] == "/bin/sh -m submarine_zeppelin"
    before = file.read_bytes()
    assert "already installed" in run("install", str(home), "--python", "/bin/sh")
    assert file.read_bytes() == before


def test_boolean_values_and_empty_paragraphs(home: Path) -> None:
    run("install", str(home), "--set", "submarine.wait=yes", "--set", "zeppelin.some.other=1")
    own, python, _ = setting(home)
    assert own["properties"]["submarine.wait"]["defaultValue"] is True
    assert own["properties"]["zeppelin.some.other"]["defaultValue"] == "1"
    assert own["config"]["checkEmpty"] is False
    assert "checkEmpty" not in python["config"]


def test_install_reports_settings_that_zeppelin_ignores(home: Path) -> None:
    saved = {"group": "submarine", "properties": {"submarine.yarn.queue": {"value": "a"}}}
    (home / "conf" / "interpreter.json").write_text(
        json.dumps({"interpreterSettings": {"submarine": saved}})
    )
    said = run("install", str(home), "--set", "submarine.yarn.queue=gpu")
    assert "page Interpreters" in said
    assert "submarine.profile" in said
    assert "submarine.yarn.queue" in said


def test_the_former_interpreter_is_replaced_and_restored(home: Path) -> None:
    jar = home / "interpreter" / "submarine" / "submarine-interpreter-0.10.0.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"jar")
    with pytest.raises(UsageError, match="--replace"):
        run("install", str(home))
    run("install", str(home), "--replace")
    assert not jar.exists()
    run("uninstall", str(home))
    assert jar.read_bytes() == b"jar"
    assert list(jar.parent.iterdir()) == [jar]


def test_uninstall_removes_only_the_group(home: Path) -> None:
    run("install", str(home))
    run("uninstall", str(home))
    assert list((home / "interpreter").iterdir()) == []
    with pytest.raises(UsageError, match="not installed"):
        run("uninstall", str(home))
    other = home / "interpreter" / "submarine" / "interpreter-setting.json"
    other.parent.mkdir()
    other.write_text('[{"group": "submarine", "name": "other"}]')
    with pytest.raises(UsageError, match="of another interpreter"):
        run("uninstall", str(home))
    assert other.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "novalue"], "NAME=VALUE"),
        (["--set", "=x"], "NAME=VALUE"),
        (["--set", "a b=x"], "not a valid property name"),
        (["--python", "/no/such/python"], "no program"),
        (["--set", "submarine.allow.service.usr=true"], "mean submarine.allow.service.user"),
        (["--set", "yarn.queue=gpu"], "no setting yarn.queue"),
        (["--set", "submarine.allow.service.user=maybe"], "true or false"),
        (["--set", "tf.worker.services.num=two"], "whole number"),
        (["--set", "submarine.stop=kill"], "cancel or detach"),
    ],
)
def test_invalid_options_are_rejected(home: Path, words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run("install", str(home), *words)
    assert list((home / "interpreter").iterdir()) == []


def test_missing_installation_and_invalid_file_are_reported(home: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no directory `interpreter`"):
        run("install", str(tmp_path / "elsewhere"))
    folder = home / "interpreter" / "submarine"
    folder.mkdir()
    (folder / "interpreter-setting.json").write_text("{")
    with pytest.raises(SubmarineError, match="not valid JSON"):
        run("install", str(home))


def test_a_path_with_a_blank_is_rejected(home: Path, tmp_path: Path) -> None:
    python = tmp_path / "a b" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    with pytest.raises(UsageError, match="blanks"):
        run("install", str(home), "--python", str(python))


def checks(home: Path) -> dict[str, dict[str, str]]:
    outcome = execute(["zeppelin", "check", str(home)], Frontend())
    return {one["name"]: one for one in outcome.value["checks"]}


def found(home: Path) -> dict[str, str]:
    return {name: one["status"] for name, one in checks(home).items()}


@pytest.mark.slow
def test_check_starts_the_process(home: Path) -> None:
    assert found(home)["installation"] == "error"
    run("install", str(home))
    said = found(home)
    assert [said[name] for name in ("installation", "python", "start")] == ["ok"] * 3
    run("install", str(home), "--python", "/bin/false")
    said = found(home)
    assert (said["python"], said["start"]) == ("error", "error")


def test_check_reports_cluster_and_users(home: Path, tmp_path: Path) -> None:
    run("install", str(home), "--python", "/bin/false")
    said = checks(home)
    assert said["profile"]["status"] == said["users"]["status"] == "warning"
    assert "--set HADOOP_CONF_DIR=" in said["profile"]["fix"]
    assert "--set submarine.allow.service.user=true" in said["users"]["fix"]
    conf = tmp_path / "hadoop"
    conf.mkdir()
    sets = f"HADOOP_CONF_DIR={conf}", "submarine.allow.service.user=true"
    run("install", str(home), "--python", "/bin/false", *(f"--set={one}" for one in sets))
    said = checks(home)
    assert str(conf) in said["profile"]["sentence"]
    assert said["users"]["status"] == "ok"
    # A process gets the settings that Zeppelin's server has saved.
    saved = {"submarine.allow.service.user": {"value": False}, "HADOOP_CONF_DIR": {"value": ""}}
    (home / "conf" / "interpreter.json").write_text(
        json.dumps({"interpreterSettings": {"a": {"group": "submarine", "properties": saved}}})
    )
    said = checks(home)
    assert said["profile"]["status"] == said["users"]["status"] == "warning"
    assert "page Interpreters" in said["users"]["fix"]
    (home / "conf" / "shiro.ini").write_text("[users]\n")
    assert checks(home)["users"]["status"] == "ok"


def test_check_reports_the_kernel_of_sessions(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    run("install", str(home), "--python", "/bin/false")
    assert "session kernel" not in checks(home)
    chosen = "--set=submarine.session.kernel=box"
    run("install", str(home), "--python", "/bin/false", chosen)
    said = checks(home)["session kernel"]
    assert said["status"] == "error"
    assert said["sentence"].startswith('There is no kernel "box".')
    stanza = provisioning("box", {"memory": "1G"})
    install_kernel(name="box", prefix=str(tmp_path), container=stanza)
    assert checks(home)["session kernel"]["status"] == "ok"


def test_check_reports_the_keytab(home: Path, tmp_path: Path) -> None:
    (home / "conf" / "shiro.ini").write_text("[users]\n")
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>hadoop.security.authentication</name>"
        "<value>kerberos</value></property></configuration>"
    )
    (keytab := tmp_path / "zeppelin.keytab").write_bytes(b"key")
    sets = [f"SUBMARINE_HADOOP_CONF_DIR={tmp_path}"]
    run("install", str(home), "--python", "/bin/false", *(f"--set={one}" for one in sets))
    said = checks(home)
    assert said["users"]["status"] == "warning"
    assert "--set SUBMARINE_HADOOP_KEYTAB=FILE --set SUB" in said["users"]["fix"]
    sets += [f"SUBMARINE_HADOOP_KEYTAB={keytab}", "SUBMARINE_HADOOP_PRINCIPAL=zeppelin@EXAMPLE.COM"]
    run("install", str(home), "--python", "/bin/false", *(f"--set={one}" for one in sets))
    said = checks(home)
    assert said["users"]["status"] == "ok"
    assert "zeppelin@EXAMPLE.COM acts for them" in said["users"]["sentence"]
    mode = "--set=zeppelin.submarine.auth.type=simple"
    run("install", str(home), "--python", "/bin/false", mode)
    said = checks(home)
    assert said["users"]["status"] == "error"
    assert "is simple, but the cluster's authentication is kerberos" in said["users"]["sentence"]
    with pytest.raises(UsageError, match="Set it to simple or kerberos"):
        run("install", str(home), "--set=zeppelin.submarine.auth.type=ldap")
