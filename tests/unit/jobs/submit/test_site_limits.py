"""The limits of the site file for one job: queues, Docker images, GPUs, and locked keys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.config import SITE_VARIABLE, file as config_file
from submarine_jobs.errors import ConfigError
from submarine_jobs.model import JobSpec, Resources, Role
from submarine_jobs.submit.site_limits import site_refusals

CONTENT = """\
python_env = "docker:registry.example/ml/tf:2"
queue = "ml"
[locked]
queues = ["ml", "lab.*"]
images = ["registry.example/ml/*"]
max_gpus_per_job = 4
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "submarine.toml"
    path.write_text(CONTENT, encoding="utf-8")
    path.chmod(0o644)
    monkeypatch.setattr(config_file, "SITE_FILE", tmp_path / "absent.toml")
    monkeypatch.setenv(SITE_VARIABLE, str(path))
    return path


def spec(*roles: Role, **fields: Any) -> JobSpec:
    return replace(JobSpec("job", "yarn", roles=roles or (Role(),)), **fields)


def refused(job: JobSpec, queue: str | None = "ml") -> list[str]:
    return [error.message for error in site_refusals(job, "default", queue)]


def gpus(name: str, instances: int, each: int) -> Role:
    return Role(name, instances, Resources(gpus=each))


@pytest.mark.parametrize("queue", ["ml", "root.ml", "lab.a", "root.lab.b"])
def test_allowed_queues(queue: str, site: Path) -> None:
    assert refused(spec(), queue) == []


@pytest.mark.parametrize("queue", ["mlx", "lab", "other.ml", "default"])
def test_other_queues(queue: str, site: Path) -> None:
    sentence = f"The queue {queue} is not allowed: {site}:4 allows only ml, lab.*."
    assert refused(spec(), queue) == [sentence]


def test_a_job_without_a_queue_is_refused_where_the_backend_would_choose_one(site: Path) -> None:
    assert refused(spec(), None) == [f"The job names no queue, and {site}:4 allows only ml, lab.*."]
    assert refused(spec(backend="local"), None) == []


@pytest.mark.parametrize(
    ("job", "images"),
    [
        (spec(docker_image="registry.example/ml/tf:2"), []),
        (spec(docker_image="evil/tf"), ["evil/tf"]),
        (spec(docker_image="x.registry.example/ml/tf"), ["x.registry.example/ml/tf"]),
        (spec(python_env="docker:evil/tf"), ["evil/tf"]),
        (spec(python_env="docker:evil/tf", docker_image="evil/tf"), ["evil/tf"]),
        (spec(Role(docker_image="a"), Role("ps", docker_image="b")), ["a", "b"]),
        (spec(Role(python_env="docker:evil/tf")), ["evil/tf"]),
        (spec(Role(python_env="path:/opt/env")), []),
    ],
)
def test_images_of_all_roles(job: JobSpec, images: list[str], site: Path) -> None:
    end = f"is not allowed: {site}:5 allows only registry.example/ml/*."
    assert refused(job) == [f"The image {image} {end}" for image in images]


def test_an_empty_list_allows_no_image(site: Path) -> None:
    site.write_text("[locked]\nimages = []\n")
    sentence = f"The image a is not allowed: {site}:2 allows only none."
    assert refused(spec(docker_image="a")) == [sentence]
    assert refused(spec()) == []


def test_gpus_of_all_tasks_are_counted(site: Path) -> None:
    assert refused(spec(gpus("worker", 2, 2))) == []
    assert refused(spec(gpus("worker", 2, 2), gpus("chief", 1, 1))) == [
        f"The job asks for 5 GPUs, and {site}:6 allows 4 for each job."
    ]


def test_values_of_a_stored_job_are_compared_with_the_locked_keys(site: Path) -> None:
    with site.open("a") as file:
        file.write('keys = ["queue", "python_env"]\n')
    image = "registry.example/ml/tf:2"
    allowed = spec(python_env=f"docker:{image}")
    assert refused(allowed) == []
    assert refused(allowed, "lab.a") == [
        f"The job sets queue to 'lab.a', and {site}:2 locks it to 'ml'."
    ]
    other = replace(allowed, roles=(Role(python_env="path:/opt/env"),))
    assert refused(other) == [
        f"The job sets python_env to 'path:/opt/env', and {site}:1 locks it to 'docker:{image}'."
    ]


def test_an_invalid_site_file_refuses_each_job(site: Path) -> None:
    site.write_text("[locked]\nmax_gpus_per_job = 'many'\n")
    (error,) = site_refusals(spec(), "default", "ml")
    assert isinstance(error, ConfigError)


def test_no_site_file_refuses_nothing(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SITE_VARIABLE)
    assert refused(spec(gpus("worker", 99, 9), docker_image="any"), "any") == []
