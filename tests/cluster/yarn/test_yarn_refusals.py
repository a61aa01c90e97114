"""What the real cluster refuses, asked for on purpose: each no is one sentence, without Java."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.driver import NeverFitsError, stop_driver
from submarine_jobs.errors import ClusterError, RefusedError, SubmarineError
from submarine_jobs.model import Profile, Resources
from submarine_minicluster import Minicluster
from tests.cluster.yarn_jobs import make_submission

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def backend(yarn_profile: Profile) -> YarnBackend:
    return YarnBackend(yarn_profile)


def no_java(error: SubmarineError) -> None:
    text = str(error)
    assert "\n" not in text
    assert "Exception" not in text
    assert "org.apache" not in text
    assert error.fix


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"memory": 999999}, "more memory than a container may have here"),
        ({"vcores": 999}, "more virtual cores than a container may have here"),
        ({"gpus": 99}, "more GPUs than a container may have here"),
    ],
)
def test_a_container_beyond_the_maximum(
    backend: YarnBackend, changes: dict[str, int], sentence: str
) -> None:
    """As if the plan had seen a larger cluster than the one that answers the submit."""
    submission = make_submission(backend, "pass")
    container = {**submission.plan.containers[0], **changes}
    submission = replace(submission, plan=replace(submission.plan, containers=[container]))
    with pytest.raises(NeverFitsError, match=sentence) as refused:
        backend.submit(submission)
    no_java(refused.value)


def test_a_queue_that_holds_queues(backend: YarnBackend) -> None:
    submission = make_submission(backend, "pass")
    object.__setattr__(submission.spec, "queue", "root")
    with pytest.raises(RefusedError) as refused:
        backend.submit(submission)
    no_java(refused.value)


def test_safe_mode(minicluster: Minicluster, backend: YarnBackend) -> None:
    submission = make_submission(backend, "pass")
    environ = {**os.environ, **minicluster.environ(), "HADOOP_USER_NAME": "hdfs"}
    hdfs = str(Path(minicluster.environ()["HADOOP_CONF_DIR"]).parent.parent / "bin" / "hdfs")

    def safe_mode(word: str) -> None:
        command = [hdfs, "dfsadmin", "-safemode", word]
        subprocess.run(command, env=environ, check=True, capture_output=True, timeout=60)

    backend.driver.channel()
    safe_mode("enter")
    try:
        with pytest.raises(ClusterError, match="HDFS is in safe mode") as refused:
            backend.submit(submission)
        no_java(refused.value)
    finally:
        safe_mode("leave")


def test_a_user_without_a_home(
    minicluster: Minicluster,
    yarn_profile: Profile,
    backend: YarnBackend,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    minicluster.admit("stranger")
    submission = make_submission(backend, "pass")
    # The HDFS client reads its user from this variable, which must not be set in later tests.
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    stranger = replace(yarn_profile, user="stranger", state_dir=tmp_path)
    theirs = YarnBackend(stranger)
    try:
        with pytest.raises(RefusedError, match="HDFS denies user stranger") as refused:
            theirs.submit(submission)
        no_java(refused.value)
    finally:
        stop_driver(stranger)


def test_gpus_without_their_resource_type(
    yarn_profile: Profile, backend: YarnBackend, tmp_path: Path
) -> None:
    conf = tmp_path / "conf"
    shutil.copytree(yarn_profile.hadoop_conf_dir, conf)  # type: ignore[arg-type]
    (conf / "resource-types.xml").unlink()
    command = Path(str(yarn_profile.hadoop_conf_dir)).parent.parent / "bin" / "yarn"
    settings = {**yarn_profile.settings, "yarn_command": str(command)}
    mine = replace(
        yarn_profile, hadoop_conf_dir=conf, state_dir=tmp_path / "state", settings=settings
    )
    other = YarnBackend(mine)
    submission = make_submission(backend, "pass", resources=Resources(200, 1, 1))
    plan_errors = other.plan(submission.spec).errors
    assert "resource-types.xml" in plan_errors[0]
    try:
        with pytest.raises(RefusedError, match="resource type of GPUs is not defined") as refused:
            other.submit(submission)
        no_java(refused.value)
    finally:
        stop_driver(mine)


def test_the_plan_refuses_what_can_never_fit(backend: YarnBackend) -> None:
    assert (
        "4 GPUs"
        in make_submission(
            backend, "pass", resources=Resources(200, 1, 8), queue="gpu"
        ).plan.errors[0]
    )
    assert "MiB" in make_submission(backend, "pass", resources=Resources(99999)).plan.errors[0]
