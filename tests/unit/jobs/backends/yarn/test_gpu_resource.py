"""The name under which a cluster's GPUs are requested, and what depends on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends.local import LocalBackend
from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.application.single import topology_variables
from submarine_jobs.backends.yarn.cluster import HadoopConf
from submarine_jobs.backends.yarn.driver import Driver
from submarine_jobs.errors import ConfigError
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_runtime.yarn import GPU, NVIDIA_GPU
from tests.unit.jobs.backends.yarn.test_clients import write_conf
from tests.unit.jobs.backends.yarn.test_planning import CAPACITY, nodes_with

GPU_JOB = JobSpec("x", "yarn", roles=(Role(resources=Resources(256, gpus=1)),))


class FakeResourceManager:
    """Answers the requests of a plan."""

    def __init__(self, nodes: dict[str, Any]) -> None:
        self._answers = {"/scheduler": CAPACITY, "/nodes": nodes}

    def get(self, path: str) -> Any:
        return self._answers[path]


def backend(directory: Path, types: str, *offers: dict[str, int], **settings: str) -> YarnBackend:
    """A backend whose client knows ``types``, of a cluster whose nodes offer GPUs."""
    write_conf(
        directory,
        core_site={"fs.defaultFS": "hdfs://nn:9820"},
        yarn_site={"yarn.resource-types": types},
    )
    profile = Profile(
        backend="yarn",
        user="ada",
        hadoop_conf_dir=directory,
        state_dir=directory,
        settings=settings,
    )
    made = YarnBackend(profile)
    made.__dict__["rm"] = FakeResourceManager(nodes_with(*offers))
    return made


BOTH = f"{GPU},{NVIDIA_GPU}"


@pytest.mark.parametrize(
    ("types", "offers", "settings", "name"),
    [
        (GPU, {GPU: 4}, {}, GPU),
        (NVIDIA_GPU, {NVIDIA_GPU: 4}, {}, NVIDIA_GPU),
        (BOTH, {NVIDIA_GPU: 4}, {}, NVIDIA_GPU),
        (BOTH, {GPU: 4, NVIDIA_GPU: 4}, {}, GPU),
        (BOTH, {GPU: 4, NVIDIA_GPU: 4}, {"gpu_resource": NVIDIA_GPU}, NVIDIA_GPU),
        ("", {}, {}, GPU),
    ],
)
def test_the_resource_is_the_setting_or_what_nodes_offer(
    tmp_path: Path, types: str, offers: dict[str, int], settings: dict[str, str], name: str
) -> None:
    made = backend(tmp_path, types, offers, **settings)
    assert made.gpu_resource == name
    assert bool(made.plan(GPU_JOB).errors) == (not types)


def test_a_resource_that_the_client_does_not_know_is_named(tmp_path: Path) -> None:
    (error,) = backend(tmp_path, GPU, {NVIDIA_GPU: 4}).plan(GPU_JOB).errors
    assert "does not know nvidia.com/gpu" in error


def test_another_setting_is_refused(tmp_path: Path) -> None:
    made = backend(tmp_path, BOTH, {GPU: 4}, gpu_resource="amd.com/gpu")
    with pytest.raises(ConfigError, match=r"'amd\.com/gpu' is not a resource of GPUs"):
        _ = made.gpu_resource


def test_each_name_has_a_driver_of_its_own(tmp_path: Path) -> None:
    write_conf(tmp_path, core_site={"fs.defaultFS": "hdfs://nn:9820"})
    conf = HadoopConf(tmp_path)
    directories = {
        Driver(Profile(state_dir=tmp_path, settings=settings), conf).directory
        for settings in ({}, {"gpu_resource": GPU}, {"gpu_resource": NVIDIA_GPU})
    }
    assert len(directories) == 2


@pytest.mark.parametrize(("name", "warned"), [(GPU, True), (NVIDIA_GPU, False)])
def test_a_topology_without_effect_is_a_warning(tmp_path: Path, name: str, warned: bool) -> None:
    spec = JobSpec("x", "yarn", roles=GPU_JOB.roles, gpu_topology="pack")
    warnings = backend(tmp_path, name, {name: 4}).plan(spec).warnings
    sentence = "--gpu-topology has no effect: it needs GPUs that nodes offer as nvidia.com/gpu."
    assert (sentence in warnings) == warned
    assert (
        "--gpu-topology has no effect on this machine."
        in LocalBackend(Profile()).plan(spec).warnings
    )


def test_only_tasks_with_gpus_get_the_policy() -> None:
    spec = JobSpec("x", "yarn", gpu_topology="pack")
    with_gpu, without = Role(resources=Resources(256, gpus=2)), Role(resources=Resources(256))
    assert topology_variables(spec, with_gpu) == {"NVIDIA_TOPO_POLICY": "PACK"}
    assert topology_variables(spec, without) == {}
    assert topology_variables(JobSpec("x", "yarn"), with_gpu) == {}
