"""Kernelspecs: content, directory, and rejected options."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager

from submarine_jobs.commands import complete, execute
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.frontends import Frontend
from submarine_kernel.kernelspecs import (
    container_request,
    install_kernel,
    kernel_json,
    provisioning,
    read_settings,
)
from submarine_magics.commands import default_words
from submarine_magics.commands.run_defaults import applicable


def test_kernel_json_starts_the_kernel_with_this_interpreter() -> None:
    spec = kernel_json()
    assert spec["argv"] == [
        *(sys.executable, "-m", "submarine_kernel", "-f", "{connection_file}"),
        "--SubmarineKernelApp.spec={resource_dir}/kernel.json",
    ]
    assert spec["display_name"] == "Python + Submarine"
    assert spec["language"] == "python"
    assert spec["metadata"]["debugger"] is True


def test_the_request_of_a_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    monkeypatch.setenv("SITE", "here")
    stanza = provisioning("box", {"memory": "1G", "idle_timeout": "2m"})
    place = install_kernel(name="box", prefix=str(tmp_path), container=stanza)
    file = Path(place) / "kernel.json"
    variables = {"A": "${SITE}/$B", "C": "plain"}
    file.write_text(json.dumps({**json.loads(file.read_text()), "env": variables}))
    request = container_request("Box")
    assert (request.name, request.run) == ("box", {"memory": "1G"})
    assert (request.idle_timeout, request.start_timeout) == (120.0, 1800.0)
    assert request.env == {"A": "here/$B", "C": "plain"}
    install_kernel(name="plain", prefix=str(tmp_path))
    with pytest.raises(UsageError, match='"plain" does not run in a container'):
        container_request("plain")
    with pytest.raises(UsageError, match='There is no kernel "none"'):
        container_request("none")


def test_install_uninstall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    outcome = execute(["kernel", "install", "--prefix", str(tmp_path)], Frontend())
    place = Path(outcome.value["path"])
    assert place == tmp_path / "share" / "jupyter" / "kernels" / "submarine"
    assert {item.name for item in place.iterdir()} == {
        "kernel.json",
        "logo-32x32.png",
        "logo-64x64.png",
        "logo-svg.svg",
    }
    assert "submarine" in KernelSpecManager().find_kernel_specs()
    again = execute(
        ["kernel", "install", "--prefix", str(tmp_path), "--display-name", "Mine"], Frontend()
    )
    assert "Mine" in again.text
    assert json.loads((place / "kernel.json").read_text())["display_name"] == "Mine"
    assert "Removed" in execute(["kernel", "uninstall"], Frontend()).text
    assert not place.exists()


def test_settings_and_defaults_are_written_to_the_kernelspec(tmp_path: Path) -> None:
    words = ["--set", "profile=prod", "--set", "queue=ml", "--default", "gpu=1"]
    words += ["--default", "tensorboard=true", "--default", "worker_resources=memory=8G"]
    place = Path(
        execute(["kernel", "install", "--prefix", str(tmp_path), *words], Frontend()).value["path"]
    )
    spec = json.loads((place / "kernel.json").read_text())
    assert spec["metadata"]["debugger"] is True
    assert spec["metadata"]["submarine"] == {
        "profile": "prod",
        "queue": "ml",
        "run": {"gpu": "1", "tensorboard": True, "worker_resources": "memory=8G"},
    }
    own = read_settings(str(place / "kernel.json"))
    environ = {"SUBMARINE_QUEUE": "other"}
    own.apply(environ)
    assert (environ, own.problem) == (
        {"SUBMARINE_QUEUE": "ml", "SUBMARINE_PROFILE": "prod"},
        "",
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "quue=ml"], "has no setting 'quue'"),
        (["--set", "queue"], "is not NAME=VALUE"),
        (["--default", "gpus=1"], "Did you mean"),
        (["--default", "name=x"], "not an option that can be set here"),
        (["--default", "memory=lots"], "not a size of memory"),
        (["--default", "tensorboard=yes"], "must be true or false"),
    ],
)
def test_invalid_settings_are_rejected(words: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        execute(["kernel", "install", "--prefix", str(tmp_path), *words], Frontend())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", ""),
        ("{}", ""),
        ('{"metadata": {"submarine": []}}', "must be an object"),
        ('{"metadata": {"submarine": {"run": 1}}}', "run must be an object"),
        ('{"metadata": {"submarine": {"queue": 1}}}', "must be a string"),
        ("{", "cannot be read"),
    ],
)
def test_an_invalid_kernelspec_has_a_problem(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "kernel.json").write_text(text)
    found = read_settings(str(tmp_path / "kernel.json")).problem
    assert problem in found
    assert bool(found) == bool(problem)
    assert read_settings("").problem == read_settings("{resource_dir}/kernel.json").problem == ""


def test_a_typed_option_replaces_its_default() -> None:
    defaults = {"gpu": 1, "memory": "8G", "tensorboard": True, "env": {"A": "b c"}, "wait": False}

    def words(*typed: str) -> list[str]:
        return default_words(defaults, list(typed), "kernel.json")

    assert words("digits") == ["--gpu=1", "--memory=8G", "--tensorboard", "--env=A=b c"]
    assert words("--memory", "1G", "--env=B=1") == ["--gpu=1", "--tensorboard"]
    assert words("--worker_resources", "gpu=2") == ["--tensorboard", "--env=A=b c"]
    assert "--gpu=1" in words("digits", "--", "--gpu", "3")
    with pytest.raises(UsageError, match=r"kernel.json: 'gpuu' is not an option .* mean gpu\?"):
        default_words({"gpuu": 1}, [], "kernel.json")
    # `predict` has no TensorBoard.
    assert applicable(defaults, "run") == defaults
    assert applicable({**defaults, "gpuu": 1}, "predict").keys() == {
        *("gpu", "memory", "env", "wait", "gpuu"),
    }


@pytest.mark.parametrize("name", ["", "a b", "../x", "ü", "x" * 200])
def test_invalid_names_are_rejected(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a valid name"):
        install_kernel(name=name, prefix=str(tmp_path))


def test_other_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    with pytest.raises(UsageError, match="exclude each other"):
        execute(["kernel", "install", "--user", "--prefix", str(tmp_path)], Frontend())
    with pytest.raises(UsageError, match="no kernel"):
        execute(["kernel", "uninstall", "--name", "nothing-here"], Frontend())
    other = tmp_path / "share" / "jupyter" / "kernels" / "other"
    other.mkdir(parents=True)
    spec = {"argv": ["other", "{connection_file}"], "display_name": "Other", "language": "x"}
    (other / "kernel.json").write_text(json.dumps(spec))
    with pytest.raises(UsageError, match="not one of Submarine's"):
        execute(["kernel", "uninstall", "--name", "other"], Frontend())
    (tmp_path / "file").write_text("")
    with pytest.raises(SubmarineError, match="cannot be written"):
        install_kernel(prefix=str(tmp_path / "file"))


def test_kernels_are_listed_checked_and_removed_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    monkeypatch.setattr(KernelSpecManager, "ensure_native_kernel", False)
    for words in (["--name", "Ours"], ["--name", "far", "--memory", "1G", "--backend", "local"]):
        execute(["kernel", "install", "--prefix", str(tmp_path), *words], Frontend())
    rows = {row["name"]: row for row in execute(["kernel", "list"], Frontend()).value}
    assert rows["ours"]["runs_in"] == "this machine"
    assert rows["far"]["runs_in"] == "container"
    assert rows["far"]["display_name"] == "Python (1G)"
    assert execute(["kernel", "check", "far"], Frontend()).value["ok"]
    place = Path(rows["ours"]["path"]) / "kernel.json"
    spec = json.loads(place.read_text())
    spec["argv"][0] = str(tmp_path / "former" / "python")
    place.write_text(json.dumps(spec))
    broken = execute(["kernel", "check", "ours"], Frontend())
    assert (broken.exit_code, broken.value["ok"]) == (1, False)
    assert "does not exist" in broken.text
    for verb in ("check", "uninstall"):
        assert complete(["kernel", verb, "ou"], Frontend()) == ["ours"]
    execute(["kernel", "uninstall", "ours"], Frontend())
    assert "ours" not in {row["name"] for row in execute(["kernel", "list"], Frontend()).value}
    with pytest.raises(UsageError, match=r"Installed are .*far"):
        execute(["kernel", "check", "ours"], Frontend())


def test_a_foreign_kernel_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    other = tmp_path / "share" / "jupyter" / "kernels" / "other"
    other.mkdir(parents=True)
    text = json.dumps({"argv": ["other"], "display_name": "Other", "language": "x"})
    (other / "kernel.json").write_text(text)
    with pytest.raises(UsageError, match="is not Submarine's"):
        execute(["kernel", "install", "--prefix", str(tmp_path), "--name", "Other"], Frontend())
    assert (other / "kernel.json").read_text() == text
