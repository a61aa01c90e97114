"""Calls to the application master without gRPC, against a real gRPC server with TLS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_runtime.yarn import ApplicationMaster, MasterError
from tests.unit.yarn.skein_master import Master, new_certificate, running_master


@pytest.fixture
def master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Master]:
    with running_master(tmp_path) as made:
        monkeypatch.setenv("SKEIN_APPMASTER_ADDRESS", made.address)
        yield made


@pytest.fixture
def client(master: Master, tmp_path: Path) -> Iterator[ApplicationMaster]:
    made = ApplicationMaster(str(tmp_path))
    yield made
    made.close()


def test_several_calls_use_one_connection(master: Master, client: ApplicationMaster) -> None:
    long = "http://127.0.0.1:8080/" + "x" * 300
    client.add_page("job", "Submarine job é", long)
    client.set_progress(0.5)
    connection = client._connection
    client.set_progress(1)
    assert client._connection is connection
    assert master.pages == [{"route": "job", "link_name": "Submarine job é", "target": long}]
    assert master.progress == [0.5, 1.0]


def test_progress_is_reported_at_most_once_in_two_seconds(
    master: Master, client: ApplicationMaster
) -> None:
    for value in (None, "x", 7, -1, 0.1, 0.2, 0.1, 0.3, 1.0, 1.0):
        client.set_progress(value)
    assert [round(value, 3) for value in master.progress] == [0.1, 1.0]


def test_a_refusal_leaves_the_connection_usable(master: Master, client: ApplicationMaster) -> None:
    client.add_page("job", "a", "http://127.0.0.1:1/")
    with pytest.raises(MasterError, match="refuses the call AddProxy"):
        client.add_page("job", "b", "http://127.0.0.1:1/")
    client.set_progress(0.5)
    assert master.progress == [0.5]


def test_a_server_with_another_certificate_is_refused(master: Master, tmp_path: Path) -> None:
    (tmp_path / ".skein.crt").write_bytes(new_certificate()[0])
    with pytest.raises(MasterError, match="does not answer"):
        ApplicationMaster(str(tmp_path)).set_progress(0.5)
    assert master.progress == []


def test_a_master_that_has_ended_is_an_error(master: Master, client: ApplicationMaster) -> None:
    client.set_progress(0.5)
    master.stop()
    with pytest.raises(MasterError, match="does not answer"):
        client.set_progress(1.0)
