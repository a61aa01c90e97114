"""Networks of Docker containers."""

from __future__ import annotations

import json
import re

import pytest

from tests.containers.conftest import Containers
from tests.containers.hadoop import IMAGE, LAYOUT

_IMAGE = ("--docker_image", IMAGE)
_SOURCE = """
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    probe.connect(("10.77.0.1", 9))
    print("address", probe.getsockname()[0])
time.sleep(1)
"""
#: The cell has no name server for the containers that do not have the network of the node.
_NAMES = ("--conf", "docker_mounts=/etc/hosts:/etc/hosts:ro")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((*_IMAGE, "--conf", "docker_network=none"), "docker_network = none: the tasks of a job"),
        (("--env", "YARN_CONTAINER_RUNTIME_TYPE=runc"), "runC images are not supported"),
    ],
)
def test_runtime_that_cannot_run_a_job_is_refused(
    containers: Containers, options: tuple[str, ...], sentence: str
) -> None:
    done = containers.run(_SOURCE, *options, check=False)
    assert done.status
    assert not done.job_id
    assert sentence in done.output


def test_network_that_the_node_does_not_allow_ends_the_job(containers: Containers) -> None:
    done = containers.run(_SOURCE, *_IMAGE, "--conf", "docker_network=lab", check=False)
    assert "The node does not allow the network of the container" in done.output
    assert containers.show(done)["reason"] == "launch_failed"


@pytest.mark.parametrize(
    ("network", "prefix"), [("host", "10.77.0."), ("gang", "10.79.0."), ("bridge", "10.78.0.")]
)
def test_gang_runs_in_a_network(containers: Containers, network: str, prefix: str) -> None:
    network_options = ("--conf", f"docker_network={network}", *_NAMES)
    done = containers.run(_SOURCE, *_IMAGE, "--worker", "2", *network_options)
    for index in range(2):
        assert f"address {prefix}" in containers.log(done, f"worker:{index}")


def test_network_of_the_former_zeppelin_interpreter(containers: Containers) -> None:
    """`docker.container.network` of the settings is the network of the form's job."""
    source = "%submarine.python\nimport sys\nprint('argument', sys.argv[1])\n" + _SOURCE
    form = {
        "command": "JOB_RUN",
        "input_path": "hdfs://node0:9000/user/alice",
        "worker_launch_cmd": "python3 main.py %input_path%",
    }
    properties = {
        "SUBMARINE_HADOOP_CONF_DIR": str(LAYOUT.client_conf),
        "submarine.wait": "true",
        "machinelearning.distributed.enable": "true",
        "tf.worker.services.num": "2",
        "tf.worker.services.memory": "256M",
        "tf.worker.services.cpu": "1",
        "tf.worker.services.gpu": "1",
        "tf.worker.services.docker.image": IMAGE,
        "tf.parameter.services.num": "0",
        "docker.container.network": "gang",
    }
    paragraphs = [
        {"title": "main.py", "text": source, "params": {}},
        {"title": "", "text": "%submarine dashboard", "params": form},
    ]
    names = '[settings]\ndocker_mounts = "/etc/hosts:/etc/hosts:ro"\n'
    config = containers.cell.write("/home/alice/zeppelin.toml", names)
    plan = json.dumps({"properties": properties, "paragraphs": paragraphs})
    output = containers.python("tests.containers.zeppelin_note", plan, SUBMARINE_CONFIG=config)
    (shown,) = json.loads(output.splitlines()[-1])
    assert shown["code"] in ("SUCCESS", "KEEP_PREVIOUS_RESULT"), shown["text"]
    found = re.search(r"alice-2jcell-\d{8}-[0-9a-f]{4}", shown["text"])
    assert found is not None, shown["text"]
    for index in range(2):
        log = containers.submarine("logs", found.group(), "--task", f"worker:{index}")[1]
        assert "argument hdfs://node0:9000/user/alice\n" in log
        assert "address 10.79.0." in log
