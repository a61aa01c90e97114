"""The command lines of the article, with an image for each role."""

from __future__ import annotations

from tests.containers.conftest import Containers
from tests.containers.hadoop import IMAGE

OTHER = "local/other:1"


def test_job_with_an_image_for_each_role(containers: Containers) -> None:
    """The other image is the same file system with a mark."""
    containers.docker("run", "--name=marked", "--net=none", IMAGE, "touch", "/other-image")
    containers.docker("commit", "marked", OTHER)
    containers.docker("rm", "marked")
    containers.cell.write("/home/alice/data.txt", "a b c\n")
    containers.hdfs("dfs", "-put", "-f", "/home/alice/data.txt", "/user/alice/data.txt")
    worker = "test ! -e /other-image && echo input %input_path% && echo role worker && sleep 3"
    status, output = containers.submarine(
        "run", "tf-job-001", "--docker_image", IMAGE,
        "--input_path", "hdfs://node0:9000/user/alice/data.txt",
        "--checkpoint_path", "hdfs://node0:9000/user/alice/checkpoints",
        "--num_workers", "2", "--worker_resources", "memory=256M,vcores=1,gpu=1",
        "--worker_launch_cmd", worker,
        "--num_ps", "2", "--ps_docker_image", OTHER, "--ps_resources", "memory=256M,vcores=1",
        "--ps_launch_cmd", "test -e /other-image && echo role ps && sleep 600",
        "--quicklink", "Zeppelin_Notebook=http://master-0:8080", "--wait",
    )  # fmt: skip
    assert status == 0
    assert "SUCCEEDED" in output
    assert "role worker" in output
    job = next(word for word in output.split() if word.startswith("tf-job-001-"))
    assert "role ps" in containers.submarine("logs", job, "--task", "ps:1")[1]
    shown = containers.submarine("show", job, "--json")[1]
    assert '"Zeppelin_Notebook": "http://node0:8080"' in shown  # the chief's node
