"""What each framework's module sets up, by roles; the real frameworks run in tests/frameworks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from submarine_runtime import frameworks
from submarine_runtime.frameworks import Setup, framework_of, policy_of, process_count, setup
from submarine_runtime.frameworks.interfaces import interface_for, variables
from submarine_runtime.protocol import AgentConfig, Member
from tests.configurations import make_agent_config

#: Set for the programs of every gang.
COMMON = {
    *("CLUSTER_SPEC", "TF_CLUSTER_DEF", "TF_ROLE", "TF_INDEX", "JOB_NAME", "TASK_INDEX"),
    *("TASK_NUM", "IS_CHIEF", "DISTRIBUTED_MODE"),
    *("GLOO_SOCKET_IFNAME", "HOROVOD_GLOO_IFACE", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME"),
}


def members_of(roles: Mapping[str, int], processes: int = 1, gpus: int = 0) -> list[Member]:
    made: list[Member] = []
    for role, count in roles.items():
        for index in range(count):
            kind = "untracked" if role in ("ps", "scheduler", "server") else "tracked"
            kind = "sidecar" if role == "tensorboard" else kind
            port = 1000 + len(made)
            more = 2000 + len(made)
            made.append(
                Member(
                    task=f"{role}:{index}",
                    role=role,
                    index=index,
                    host=f"h{len(made)}",
                    address="127.0.0.1",
                    ports=(port, more),
                    gpus=gpus,
                    kind=kind,
                    processes=processes,
                )
            )
    return made


def config_of(framework: str, **fields: Any) -> AgentConfig:
    return make_agent_config(framework=framework, **fields)


def setups(framework: str, members: list[Member], **fields: Any) -> dict[str, Setup]:
    config = config_of(framework, **fields)
    return {me.task: setup(config, me, members) for me in members}


def own(made: Setup) -> dict[str, str]:
    """The framework's variables without those of every gang."""
    return {name: value for name, value in made.env.items() if name not in COMMON}


@pytest.mark.parametrize("framework", sorted(frameworks.KNOWN))
def test_every_module_keeps_the_contract(framework: str) -> None:
    roles = {"worker": 2, "scheduler": 1, "ps": 1, "tensorboard": 1}
    assert frameworks.role_error_of(framework, list(roles)) == ""
    for made in setups(framework, members_of(roles)).values():
        for variables_of_one in (made.env, *made.processes):
            assert all(isinstance(v, str) and k for k, v in variables_of_one.items())
        assert len(made.processes) == 1
        for helper in made.helpers:
            assert helper.ready
            filled = [part.format(python="p", agent="a", runtime="r") for part in helper.command]
            assert filled[0] in ("p", "a")
        folder = Path(frameworks.__file__).parent / "shims"
        assert all((folder / name).is_file() for name in made.shims)
    alone = members_of({"worker": 1})
    assert not setups(framework, alone)["worker:0"].network
    assert policy_of(framework, ["worker"]) in ("chief", "all")


def test_every_shim_belongs_to_a_framework() -> None:
    folder = Path(frameworks.__file__).parent / "shims"
    gang = members_of({"worker": 2, "scheduler": 1, "ps": 1})
    used = {name for known in frameworks.KNOWN for name in setups(known, gang)["worker:0"].shims}
    assert used == {path.name for path in folder.glob("shim*.py")}


PAGE = Path(__file__).resolve().parents[3] / "docs/frameworks.md"


def table(header: str) -> dict[str, str]:
    """A table of the page: the word in the first column and the rest of its row."""
    body = PAGE.read_text(encoding="utf-8").split(header)[1].split("\n\n")[0]
    return dict(re.findall(r"^\| `(\w+)` \|(.*)", body, re.MULTILINE))


def test_the_page_has_the_frameworks_in_order_of_precedence() -> None:
    words = [word for word in frameworks.KNOWN if word != "auto"]
    words.sort(key=lambda word: (word == "any", -frameworks.setting_of(word, "PRECEDENCE")))
    rows = table("| framework | selected by")
    assert list(rows) == words
    for word in words:
        for name in (
            *frameworks.setting_of(word, "IMPORTS"),
            *frameworks.setting_of(word, "LATE_IMPORTS"),
        ):
            assert f"`{name}`" in rows[word]


@pytest.mark.parametrize("framework", sorted({*frameworks.KNOWN} - {"auto"}))
def test_the_page_has_every_variable_of_a_framework(
    framework: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    members = members_of({"worker": 2, "scheduler": 1, "ps": 1}, gpus=1)
    names: set[str] = set()
    for made in setups(framework, members).values():
        names = names.union(own(made), *made.processes)
    page = PAGE.read_text(encoding="utf-8")
    written = {name.upper() for name in re.findall(r"`(\w+)(?:=[^`]*)?`", page)}
    assert sorted(name for name in names if name.upper() not in written) == []
    assert table("| framework | variables")[framework]
    separate = page.split("The warning exists for")[1].split(";")[0]
    assert (f"`{framework}`" in separate) != bool(frameworks.setting_of(framework, "JOIN_CALL"))


def test_the_names_of_xlearning_and_tony() -> None:
    made = setups("any", members_of({"ps": 1, "worker": 2}))
    env = made["worker:1"].env
    cluster = {"ps": ["127.0.0.1:1000"], "worker": ["127.0.0.1:1001", "127.0.0.1:1002"]}
    assert json.loads(env["CLUSTER_SPEC"]) == json.loads(env["TF_CLUSTER_DEF"]) == cluster
    assert (env["JOB_NAME"], env["TASK_INDEX"], env["TASK_NUM"]) == ("worker", "1", "2")
    assert (env["TF_ROLE"], env["TF_INDEX"], env["IS_CHIEF"]) == ("worker", "1", "false")
    assert env["INIT_METHOD"] == "tcp://127.0.0.1:1001"
    assert (env["WORLD"], env["WORLD_SIZE"], env["master_port"]) == ("2", "2", "1001")
    assert made["worker:1"].processes == [{"RANK": "1", "LOCAL_RANK": "0"}]
    assert own(made["ps:0"]) == {}
    assert made["ps:0"].processes == [{}]
    assert made["worker:0"].env["IS_CHIEF"] == "true"
    assert setups("any", members_of({"worker": 1}))["worker:0"].env == {}


def tf_config(made: Setup) -> Any:
    return json.loads(made.env["TF_CONFIG"])


def test_tensorflow_knows_a_chief_where_there_are_servers() -> None:
    made = setups("tensorflow", members_of({"worker": 3, "ps": 1, "evaluator": 1}))
    cluster = {
        "chief": ["127.0.0.1:1000"],
        "worker": ["127.0.0.1:1001", "127.0.0.1:1002"],
        "ps": ["127.0.0.1:1003"],
    }
    tasks = {name: tf_config(one)["task"] for name, one in made.items()}
    assert all(tf_config(one)["cluster"] == cluster for one in made.values())
    assert tasks == {
        "worker:0": {"type": "chief", "index": 0},
        "worker:1": {"type": "worker", "index": 0},
        "worker:2": {"type": "worker", "index": 1},
        "ps:0": {"type": "ps", "index": 0},
        "evaluator:0": {"type": "evaluator", "index": 0},
    }
    assert policy_of("tensorflow", ["worker", "ps"]) == "chief"
    assert policy_of("tensorflow", ["worker"]) == "all"
    mirrored = setups("tensorflow", members_of({"master": 1, "worker": 1, "tensorboard": 1}))
    assert list(tf_config(mirrored["worker:0"])["cluster"]) == ["chief", "worker"]
    assert "TF_CONFIG" not in mirrored["tensorboard:0"].env


def test_pytorch_has_torchruns_variables() -> None:
    made = setups("pytorch", members_of({"worker": 1, "chief": 1, "evaluator": 1}, processes=2))
    assert own(made["worker:0"]) == {
        "GROUP_RANK": "1",
        "GROUP_WORLD_SIZE": "2",
        "INIT_METHOD": "tcp://127.0.0.1:1001",
        "LOCAL_WORLD_SIZE": "2",
        "LT_DEVICES": "2",
        "LT_NUM_NODES": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "1001",
        "NNODES": "2",
        "NODE_RANK": "1",
        "OMP_NUM_THREADS": "1",
        "PL_TRAINER_DEVICES": "2",
        "PL_TRAINER_NUM_NODES": "2",
        "ROLE_NAME": "worker",
        "ROLE_WORLD_SIZE": "4",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_RUN_ID": config_of("pytorch").record.job_id,
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        "WORLD": "4",
        "WORLD_SIZE": "4",
        "master_addr": "127.0.0.1",
        "master_port": "1001",
    }
    ranks = [
        {"RANK": "2", "LOCAL_RANK": "0", "ROLE_RANK": "2"},
        {"RANK": "3", "LOCAL_RANK": "1", "ROLE_RANK": "3"},
    ]
    assert made["worker:0"].processes == ranks
    assert own(made["evaluator:0"]) == {}
    alone = setups("pytorch", [Member("worker:0", "worker", 0, "h", "127.0.0.1")])["worker:0"]
    assert alone.env["WORLD_SIZE"] == "1"
    assert 0 < int(alone.env["MASTER_PORT"]) < 65536


RANKS = {
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "NNODES"),
    *("GROUP_RANK", "GROUP_WORLD_SIZE"),
}


def test_a_single_task_has_ranks_unless_its_library_starts_the_processes() -> None:
    alone = members_of({"worker": 1}, gpus=4)
    made = setups("pytorch", alone)["worker:0"]
    assert {*made.env, *made.processes[0]} >= RANKS
    assert made.processes == [{"RANK": "0", "LOCAL_RANK": "0"}]
    # These would tell Lightning that another program starts its processes.
    assert not any(name.startswith(("TORCHELASTIC", "PL_", "LT_")) for name in made.env)
    made = setups("pytorch", alone, own_launcher=True)["worker:0"]
    assert not RANKS & {*made.env, *made.processes[0]}
    assert made.env["MASTER_ADDR"] == made.env["master_addr"] == "127.0.0.1"
    assert made.env["MASTER_PORT"] == "1000"
    assert made.processes == [{}]
    # Several processes, or several tasks, have been started by Submarine.
    several = setups("pytorch", members_of({"worker": 1}, processes=2), own_launcher=True)
    assert [one["LOCAL_RANK"] for one in several["worker:0"].processes] == ["0", "1"]
    gang = setups("pytorch", members_of({"worker": 2}), own_launcher=True)
    assert gang["worker:1"].processes == [{"RANK": "1", "LOCAL_RANK": "0", "ROLE_RANK": "1"}]
    assert gang["worker:1"].env["WORLD_SIZE"] == "2"


def test_late_imports_choose_a_framework_where_no_other_does() -> None:
    assert framework_of({"transformers", "numpy"}) == "pytorch"
    assert framework_of({"transformers", "tensorflow"}) == "tensorflow"
    for module in ("trl", "peft", "diffusers", "timm", "torchvision", "fastai", "ultralytics"):
        assert framework_of({module}) == "pytorch"
    assert frameworks.deciding_import({"numpy", "megatron"}) == ("pytorch", "megatron")
    assert list(frameworks.framework_projects().values()) == [
        *("jax", "pytorch", "tensorflow", "tensorflow", "tensorflow")
    ]


@pytest.mark.parametrize("framework", sorted(frameworks.KNOWN))
def test_every_collective_framework_names_what_its_program_lacks(framework: str) -> None:
    rendezvous = frameworks.setting_of(framework, "RENDEZVOUS")
    sentence = frameworks.not_collective_sentence(framework, 3, required=False)
    assert bool(sentence) == bool(frameworks.setting_of(framework, "JOIN_CALL"))
    assert frameworks.must_join(framework, required=False) == bool(sentence)
    assert frameworks.must_join(framework, required=True)
    assert frameworks.not_collective_sentence(framework, 3, required=True)
    assert rendezvous or not sentence
    if framework == "pytorch":
        assert "Trainer(num_nodes=3)" in sentence
    made = setups(framework, members_of({"worker": 2, "ps": 1, "scheduler": 1}))
    rendezvous = "programs" if framework == "keras" else rendezvous
    assert made["worker:0"].rendezvous == rendezvous
    # A check costs 10 ms of CPU time, so a task whose port is not used has none.
    assert made["worker:1"].rendezvous == (rendezvous if rendezvous == "programs" else "")
    assert not setups(framework, members_of({"worker": 1}))["worker:0"].rendezvous


def test_roles_that_decide_and_roles_that_restart_alone() -> None:
    assert policy_of("any", ["worker", "ps"]) == "all"
    assert policy_of("any", ["chief", "worker"]) == "chief"
    assert policy_of("keras", ["chief", "worker", "ps"]) == "chief"
    assert policy_of("pytorch", ["chief", "worker"]) == "all"
    alone = {word for word in frameworks.KNOWN if frameworks.setting_of(word, "RESTART_IN_PLACE")}
    assert alone == {"any"}


def test_how_many_processes_a_container_has() -> None:
    assert process_count("pytorch", 0, 4, gang=True) == 4
    assert process_count("pytorch", 0, 4, gang=False) == 1
    assert process_count("pytorch", 2, 4, gang=True) == 2
    assert process_count("tensorflow", 0, 4, gang=True) == 1
    with pytest.raises(ValueError, match="2 times as many"):
        setups("tensorflow", members_of({"worker": 2}, processes=2))


def test_horovod_counts_each_container_as_a_host() -> None:
    members = members_of({"worker": 1}, processes=2) + members_of({"chief": 1}, processes=1)
    made = setups("horovod", members)
    env = made["worker:0"].env
    assert (env["HOROVOD_SIZE"], env["HOROVOD_LOCAL_SIZE"]) == ("3", "2")
    assert (env["HOROVOD_CONTROLLER"], env["HOROVOD_HOSTNAME"]) == ("gloo", "worker-0")
    across = [
        (one["HOROVOD_RANK"], one["HOROVOD_CROSS_RANK"], one["HOROVOD_CROSS_SIZE"])
        for one in made["worker:0"].processes
    ]
    assert across == [("1", "1", "2"), ("2", "0", "1")]
    (helper,) = made["chief:0"].helpers
    assert helper.command[3:] == (
        "rendezvous",
        "--address",
        "127.0.0.1",
        "--port",
        env["HOROVOD_GLOO_RENDEZVOUS_PORT"],
        "--ready",
        "2000",
        "--sizes",
        "global=3,local_chief-0=1,local_worker-0=2,cross_0=2,cross_1=1",
    )
    waits = ("await", "--address", "127.0.0.1", "--port", "2000")
    assert made["worker:0"].helpers[0].command[3:] == waits


def test_jax_finds_a_launcher_that_it_knows() -> None:
    made = setups("jax", members_of({"worker": 2}, processes=2, gpus=4))["worker:1"]
    assert made.env["JAX_COORDINATOR_ADDRESS"] == "127.0.0.1:1000"
    assert made.env["OMPI_COMM_WORLD_SIZE"] == "4"
    assert "JAX_PLATFORMS" not in made.env
    devices = [(p["OMPI_COMM_WORLD_RANK"], p["JAX_LOCAL_DEVICE_IDS"]) for p in made.processes]
    assert devices == [("2", "0,1"), ("3", "2,3")]
    alone = setups("jax", members_of({"worker": 1}))["worker:0"]
    assert (alone.env, alone.processes) == ({"JAX_PLATFORMS": "cpu"}, [{}])


def test_mxnet_needs_a_scheduler_and_a_server() -> None:
    made = setups("mxnet", members_of({"worker": 2, "ps": 1, "scheduler": 1}))
    roles = {name: one.env["DMLC_ROLE"] for name, one in made.items()}
    assert list(roles.values()) == ["worker", "worker", "server", "scheduler"]
    assert {one.env["DMLC_PS_ROOT_PORT"] for one in made.values()} == {"1003"}
    assert made["worker:1"].env["DMLC_WORKER_ID"] == "1"
    with pytest.raises(ValueError, match="--ps 1"):
        setups("mxnet", members_of({"worker": 2, "scheduler": 1}))
    with pytest.raises(ValueError, match="scheduler"):
        setups("mxnet", members_of({"worker": 2, "ps": 1}))
    assert "--ps 1" in frameworks.role_error_of("mxnet", ["worker", "scheduler"])
    assert frameworks.role_error_of("mxnet", ["worker", "ps"]) == ""
    assert frameworks.role_error_of("jax", ["worker"]) == ""


def test_trees_and_paddle() -> None:
    members = members_of({"worker": 2})
    boosted = setups("xgboost", members)
    assert own(boosted["worker:1"]) == {
        "DMLC_NUM_WORKER": "2",
        "DMLC_ROLE": "worker",
        "DMLC_TASK_ID": "000001",
        "DMLC_TRACKER_PORT": "1000",
        "DMLC_TRACKER_URI": "127.0.0.1",
    }
    assert boosted["worker:0"].helpers[0].command[-4:] == ("--ready", "2000", "--workers", "2")
    waits = ("await", "--address", "127.0.0.1", "--port", "2000")
    assert boosted["worker:1"].helpers[0].command[3:] == waits
    assert boosted["worker:1"].shims == ("shims.py", "shim_xgboost.py")
    light = own(setups("lightgbm", members)["worker:1"])
    assert light == {
        "LIGHTGBM_LOCAL_LISTEN_PORT": "1001",
        "LIGHTGBM_MACHINES": "127.0.0.1:1000,127.0.0.1:1001",
        "LIGHTGBM_NUM_MACHINE": "2",
        "LIGHTGBM_RANK": "1",
    }
    paddle = own(setups("paddle", members)["worker:1"])
    assert paddle["PADDLE_TRAINER_ID"] == "1"
    assert paddle["PADDLE_CURRENT_ENDPOINT"] == "127.0.0.1:1001"


def test_keras_by_its_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    members = members_of({"worker": 2})
    assert "TF_CONFIG" in setups("keras", members)["worker:0"].env
    (tmp_path / "keras.json").write_text('{"backend": "jax"}')
    assert "JAX_COORDINATOR_ADDRESS" in setups("keras", members)["worker:0"].env
    torch = setups("keras", members, env={"KERAS_BACKEND": "torch"})["worker:1"]
    assert torch.env["MASTER_PORT"] == "1000"
    assert torch.processes[0]["RANK"] == "1"
    assert torch.env["KERAS_DISTRIBUTION_PROCESS_ID"] == "1"


@pytest.mark.parametrize(
    ("imports", "word"),
    [
        ("horovod torch", "horovod"),
        ("horovod tensorflow", "horovod"),
        ("torch tensorflow", "pytorch"),
        ("jax tensorflow flax", "jax"),
        ("keras", "keras"),
        ("keras torch", "pytorch"),
        ("keras tensorflow", "tensorflow"),
        ("tensorflow xgboost", "tensorflow"),
        ("xgboost lightgbm sklearn", "xgboost"),
        ("lightgbm", "lightgbm"),
        ("mxnet numpy", "mxnet"),
        ("paddle", "paddle"),
        ("numpy sklearn", "any"),
    ],
)
def test_imports_choose(imports: str, word: str) -> None:
    assert framework_of(imports.split()) == word


def test_the_interface_that_collectives_use(tmp_path: Path) -> None:
    made = setups("pytorch", members_of({"worker": 2}))["worker:0"]
    assert made.network == "lo 127.0.0.1"
    assert made.env["GLOO_SOCKET_IFNAME"] == "lo"
    assert made.env["NCCL_SOCKET_IFNAME"] == "=lo"
    assert "NCCL_IB_DISABLE" not in made.env
    asked = setups("pytorch", members_of({"worker": 2}), network_interface="lo")["worker:0"]
    assert asked.env["NCCL_IB_DISABLE"] == "1"
    with pytest.raises(ValueError, match=r"--network-interface ib7: .* it has .*lo"):
        setups("pytorch", members_of({"worker": 2}), network_interface="ib7")
    assert interface_for("192.0.2.1", None) == ""
    assert variables("", requested=False) == {}
    (tmp_path / "ib0").mkdir()
    (tmp_path / "ib0" / "mlx5_0").mkdir()
    infiniband = variables("ib0", requested=True, devices=f"{tmp_path}/{{}}")
    assert (infiniband["NCCL_IB_DISABLE"], infiniband["NCCL_IB_HCA"]) == ("0", "=mlx5_0")
