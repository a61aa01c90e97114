"""What every TensorBoard of ours is started with; the packages are played."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from submarine_runtime.tensorboards import server as tensorboard_server


def play(monkeypatch: pytest.MonkeyPatch, version: str, *plugins: object) -> None:
    package = ModuleType("tensorboard")
    package.version = SimpleNamespace(VERSION=version)  # type: ignore[attr-defined]
    package.default = SimpleNamespace(get_plugins=lambda: list(plugins))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorboard", package)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.21.0", ["--reload_multifile=true", "--load_fast=false"]),
        ("2.10.1", ["--reload_multifile=true", "--load_fast=false"]),
        ("2.3.0", ["--reload_multifile=true"]),
        ("3.0.0rc1", ["--reload_multifile=true", "--load_fast=false"]),
    ],
)
def test_an_older_tensorboard_gets_no_option_that_it_lacks(
    monkeypatch: pytest.MonkeyPatch, version: str, expected: list[str]
) -> None:
    play(monkeypatch, version)
    assert tensorboard_server.options() == expected


def test_the_projector_is_left_out_and_loaders_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    loader, scalars = object(), SimpleNamespace(plugin_name="scalars")
    projector = SimpleNamespace(plugin_name="projector")
    play(monkeypatch, "2.21.0", loader, projector, scalars)
    assert tensorboard_server.plugins() == [loader, scalars]
