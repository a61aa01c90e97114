"""A user's settings that name the tests' Azkaban, with the password where it is looked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.azkaban.server import Azkaban, running


@contextmanager
def configured(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Azkaban]:
    """One that runs, as alice's; ``folder`` is the working directory and holds all settings."""
    config = folder / "config" / "jupyter-submarine"
    (config / "azkaban").mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(folder / "state"))
    monkeypatch.chdir(folder)
    with running(folder / "azkaban", kill_seconds=0.3) as azkaban:
        toml = f'[azkaban]\nurl = "{azkaban.url}"\nuser = "alice"\n'
        (config / "submarine.toml").write_text(toml)
        password = config / "azkaban" / f"{azkaban.url[7:].replace(':', '_')}.password"
        password.touch(0o600)
        password.write_text("correct horse\n")
        yield azkaban
