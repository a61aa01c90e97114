"""Devices of a task: the driver's report, claims, and no accidental sharing."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from submarine_runtime.gpus import (
    DeviceLocks,
    GpuMeter,
    LockDirectories,
    Reading,
    claims as gpus,
    visibility as gpu_view,
)
from submarine_runtime.gpus.device_locks import LocksError
from submarine_runtime.gpus.nvml import Nvml, call_with_timeout
from submarine_runtime.protocol import AgentConfig
from tests.configurations import make_agent_config
from tests.subprocesses.gpus.gpu_node import RUNTIME, Claimer, build_driver, device_line
from tests.waiting import until

Node = Callable[..., Path]
no_devices = pytest.mark.skipif(bool(gpu_view.device_numbers()), reason="this machine has GPUs")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def devices(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Says what the node's driver shows, and gives the driver."""

    def show(*lines: str) -> Path:
        file = tmp_path / "devices"
        file.write_text("".join(lines))
        monkeypatch.setenv("FAKE_NVML", str(file))
        return library

    return show


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Claimer]]:
    started: list[Claimer] = []

    def run(**options: Any) -> Claimer:
        started.append(Claimer(options.pop("shared", tmp_path / "locks"), **options))
        return started[-1]

    yield run
    for one in started:
        one.process.kill()
        with suppress(ValueError):
            one.process.communicate()


def places(shared: Path | str) -> LockDirectories:
    return LockDirectories((), str(shared))


def config(**fields: Any) -> AgentConfig:
    return make_agent_config(**{"backend": "yarn", **fields})


def test_what_the_driver_tells_of_many_devices(devices: Node) -> None:
    lines = [device_line(f"GPU-{n:02}", n, 100 * n, n % 2) for n in range(40)]
    lines[7] = device_line("GPU-07", code=15)  # fell off the bus
    lines[9] = device_line("GPU-09", code=4)  # not for this container
    driver = Nvml.open(str(devices(*lines)))
    assert driver is not None
    found = driver.devices()
    assert [d.uuid for d in found] == [f"GPU-{n:02}" for n in range(40) if n not in (7, 9)]
    assert driver.denied == 1
    assert driver.reading(found[-1]) == Reading(39.0, 3900.0, 143771.0)
    assert [driver.minor(device) for device in found[:2]] == [900, 901]
    assert [driver.busy(device) for device in found[:4]] == [False, True, False, True]
    driver.close()
    assert driver.devices() == []


def test_slices_stand_for_their_gpu(devices: Node) -> None:
    whole, other = device_line("GPU-a"), device_line("GPU-b", 60, 10)
    slices = [device_line(f"MIG-{n}", used=5, parent=0) for n in range(3)]
    driver = Nvml.open(str(devices(whole, *slices, other)))
    assert driver is not None
    found = driver.devices()
    assert [(d.uuid, d.slice, d.parent) for d in found] == [
        ("MIG-0", True, 0),
        ("MIG-1", True, 0),
        ("MIG-2", True, 0),
        ("GPU-b", False, 1),
    ]
    assert [driver.minor(device) for device in found] == [None, None, None, 901]
    # The driver tells no utilisation of a slice, and that is no error.
    assert driver.reading(found[0]) == Reading(None, 5.0, 143771.0)


def test_every_failure_is_no_driver(devices: Node, tmp_path: Path) -> None:
    assert Nvml.open("libno-such-thing.so.1") is None
    assert Nvml.open(str(devices("init 9\n", device_line("GPU-a")))) is None
    source = tmp_path / "old.c"
    source.write_text("int nvmlInit_v2(void) { return 0; }")
    old = Nvml.open(str(build_driver(tmp_path, source)))
    assert old is not None
    assert old.devices() == []
    old.close()


def test_a_driver_that_hangs_is_none() -> None:
    began = time.monotonic()
    assert call_with_timeout(0.1, lambda: time.sleep(30) or "late", "none") == "none"
    assert call_with_timeout(5.0, lambda: str(1 // 0), "none") == "none"
    assert call_with_timeout(5.0, lambda: "told", "none") == "told"
    assert time.monotonic() - began < 20


def test_the_meter_measures_and_averages(devices: Node) -> None:
    driver = devices(device_line("GPU-a", 2, 1000), device_line("GPU-b", 98, 3000))
    meter = GpuMeter(["GPU-b", "GPU-a", "GPU-gone"], str(driver), every=0.02)
    until(lambda: len(meter.idleness()) >= 2 and meter.idleness()[0].seconds >= 0.1, seconds=60)
    meter.stop()
    assert meter.latest()[:2] == [Reading(98.0, 3000.0, 143771.0), Reading(2.0, 1000.0, 143771.0)]
    assert meter.latest()[2] == Reading(None, None, None)
    assert meter.totals() == (50.0, 4000.0)
    assert [(one.device, one.percent) for one in meter.idleness()] == [("GPU-b", 98), ("GPU-a", 2)]


def test_two_containers_never_share_and_a_killed_one_frees(devices: Node, start: Any) -> None:
    driver = devices(*(device_line(f"GPU-{n}") for n in "abc"))
    first = start(driver=driver, gpus=2, child=True)
    got = first.answer()
    assert got["devices"] == ["GPU-a", "GPU-b"]
    assert got["variables"] == {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}
    assert got["driver"]
    assert not got["note"]
    assert start(driver=driver).answer()["devices"] == ["GPU-c"]
    waiting = start(driver=driver, gpus=2, patience=20.0)
    refused = start(driver=driver).answer()["error"]
    assert "asks for 1 GPU" in refused
    assert str(first.process.pid) in refused
    assert waiting.process.poll() is None
    first.kill()
    try:
        # Its program may live a little longer; the locks are the agent's alone.
        assert waiting.answer()["devices"] == ["GPU-a", "GPU-b"]
    finally:
        os.kill(got["child"], 9)


def test_devices_in_use_by_others_are_taken_last(devices: Node, start: Any) -> None:
    driver = devices(device_line("GPU-a", processes=1), device_line("GPU-b"), device_line("GPU-c"))
    got = start(driver=driver, gpus=3).answer()
    assert got["devices"] == ["GPU-b", "GPU-c", "GPU-a"]
    assert "GPU-a" in got["note"]


#: Lines of ``nvidia-smi topo -m``: NVLink pairs of four RTX 3090; the cube mesh of a DGX-1 with
#: V100; four H100 with a link to each other; a DGX A100 with NVSwitches; PCIe switches only.
PAIRS = """\
GPU0     X      PHB     NV4     NODE    0-23    0               N/A
GPU1    PHB      X      NODE    NV4     0-23    0               N/A
GPU2    NV4     NODE     X      PHB     0-23    0               N/A
GPU3    NODE    NV4     PHB      X      0-23    0               N/A
"""
CUBE = """\
GPU0     X      NV1     NV1     NV2     NV2     SYS     SYS     SYS     0-19,40-59
GPU1    NV1      X      NV2     NV1     SYS     NV2     SYS     SYS     0-19,40-59
GPU2    NV1     NV2      X      NV2     SYS     SYS     NV1     SYS     0-19,40-59
GPU3    NV2     NV1     NV2      X      SYS     SYS     SYS     NV1     0-19,40-59
GPU4    NV2     SYS     SYS     SYS      X      NV1     NV1     NV2     20-39,60-79
GPU5    SYS     NV2     SYS     SYS     NV1      X      NV2     NV1     20-39,60-79
GPU6    SYS     SYS     NV1     SYS     NV1     NV2      X      NV2     20-39,60-79
GPU7    SYS     SYS     SYS     NV1     NV2     NV1     NV2      X      20-39,60-79
"""
ALL = """\
GPU0     X      NV6     NV6     NV6     PIX     SYS     SYS     SYS     6,14,22,30      3
GPU1    NV6      X      NV6     NV6     SYS     PIX     SYS     SYS     4,12,20,28      1
GPU2    NV6     NV6      X      NV6     SYS     SYS     PIX     SYS     7,15,23,31      7
GPU3    NV6     NV6     NV6      X      SYS     SYS     SYS     PIX     5,13,21,29      5
"""
SWITCHED = "".join(
    f"GPU{row}  " + "  ".join("X" if row == column else "NV12" for column in range(8)) + "\n"
    for row in range(8)
)
PCIE = """\
GPU0     X      SYS     PIX     SYS
GPU1    SYS      X      SYS     PHB
GPU2    PIX     SYS      X      SYS
GPU3    SYS     PHB     SYS      X
"""


@pytest.mark.parametrize(
    ("matrix", "held", "gpus", "expected"),
    [
        (PAIRS, "", 2, "02"),
        (PAIRS, "0", 2, "13"),
        (PAIRS, "02", 2, "13"),
        # A single one is taken where that leaves the other pair whole.
        (PAIRS, "3", 1, "1"),
        (PAIRS, "12", 2, "03"),
        (CUBE, "", 2, "03"),
        (CUBE, "", 4, "0123"),
        (CUBE, "0", 4, "4567"),
        (CUBE, "0123", 2, "47"),
        (CUBE, "", 8, "01234567"),
        (ALL, "1", 2, "02"),
        (SWITCHED, "06", 3, "123"),
        (PCIE, "", 2, "02"),
        (PCIE, "0", 2, "13"),
        ("", "0", 2, "12"),
    ],
)
def test_gpus_near_each_other_are_claimed(
    devices: Node,
    start: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    matrix: str,
    held: str,
    gpus: int,
    expected: str,
) -> None:
    """The driver reports recorded topologies; other containers hold some of the devices."""
    (tmp_path / "topology").write_text(matrix)
    if matrix:
        monkeypatch.setenv("FAKE_TOPOLOGY", str(tmp_path / "topology"))
    names = [f"GPU-{number}" for number in range(len(matrix.splitlines()) or 4)]
    driver = devices(*map(device_line, names))
    for number in held:
        visible = {"CUDA_VISIBLE_DEVICES": f"GPU-{number}"}
        assert start(driver=driver, environ=visible).answer()["devices"] == [f"GPU-{number}"]
    got = start(driver=driver, gpus=gpus).answer()
    assert got["devices"] == [f"GPU-{number}" for number in expected]
    assert got["variables"] == {"CUDA_VISIBLE_DEVICES": ",".join(got["devices"])}
    # Those that were locked for the choice are free again.
    others = len(names) - len(held) - gpus
    if others:
        rest = start(driver=driver, gpus=others).answer()["devices"]
        assert set(rest).isdisjoint(got["devices"])


def test_a_busy_gpu_is_not_taken_for_its_links(
    devices: Node, start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "topology").write_text(PAIRS)
    monkeypatch.setenv("FAKE_TOPOLOGY", str(tmp_path / "topology"))
    lines = [device_line(f"GPU-{number}", processes=int(number == 2)) for number in range(4)]
    assert start(driver=devices(*lines), gpus=2).answer()["devices"] == ["GPU-1", "GPU-3"]
    assert start(driver=devices(*lines), gpus=2).answer()["devices"] == ["GPU-0", "GPU-2"]


def test_fewer_devices_than_asked_for_is_said_at_once(devices: Node, start: Any) -> None:
    began = time.monotonic()
    got = start(driver=devices(device_line("GPU-a")), gpus=2, patience=30.0).answer()
    assert "asks for 2 GPUs and this node shows 1" in got["error"]
    assert time.monotonic() - began < 10


def test_isolated_devices_are_reported_and_not_claimed(devices: Node, start: Any) -> None:
    driver = devices(device_line("GPU-a"), device_line("GPU-b", code=4))
    for _ in range(2):  # by a control group
        got = start(driver=driver).answer()
        assert (got["devices"], got["variables"], got["note"]) == (["GPU-a"], {}, "")
    driver = devices(device_line("GPU-a"), device_line("GPU-b"))
    docker = {"NVIDIA_VISIBLE_DEVICES": "0,1"}
    assert start(driver=driver, gpus=2, environ=docker).answer()["variables"] == {}
    image = {"NVIDIA_VISIBLE_DEVICES": "all"}  # the default of NVIDIA's images
    assert start(driver=driver, gpus=1, environ=image).answer()["variables"]


def test_only_what_cuda_may_see_is_claimed(devices: Node, start: Any) -> None:
    driver = devices(*(device_line(f"GPU-{n}") for n in "abcd"))
    some = {"CUDA_VISIBLE_DEVICES": "3,GPU-b"}
    assert start(driver=driver, gpus=2, environ=some).answer()["devices"] == ["GPU-d", "GPU-b"]
    none = {"CUDA_VISIBLE_DEVICES": ""}
    assert "shows none" in start(driver=driver, environ=none).answer()["error"]


def test_on_ones_own_machine_a_container_is_the_notebooks(devices: Node, start: Any) -> None:
    """What Docker or Kubernetes chose for a notebook all of its jobs see: they claim."""
    driver = devices(device_line("GPU-a"), device_line("GPU-b"))
    chosen = {"NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b"}
    first = start(driver=driver, environ=chosen, backend="local").answer()
    assert first["variables"] == {"CUDA_VISIBLE_DEVICES": "GPU-a"}
    second = start(driver=driver, environ=chosen, backend="local").answer()
    assert second["variables"] == {"CUDA_VISIBLE_DEVICES": "GPU-b"}
    assert "became free" in start(driver=driver, environ=chosen, backend="local").answer()["error"]


def test_a_wait_for_a_device_is_reported_once_and_has_a_limit(
    devices: Node, start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = devices(device_line("GPU-a"))
    holder = start(driver=driver)
    holder.answer()
    seen = gpu_view.VisibleDevices(["GPU-a"], nvml=True)
    monkeypatch.setattr(gpus, "visible_devices", lambda numbers: seen)
    said: list[str] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt

    waits: list[float] = []
    with pytest.raises(KeyboardInterrupt):
        gpus.claim_gpus(
            config(gpus=1), {}, wait=wait, places=places(tmp_path / "locks"), report=said.append
        )
    held = f"process {holder.process.pid} ({pwd.getpwuid(os.getuid()).pw_name})"
    assert said == [f"Waits for 1 GPU: this node has 1, held by {held}."]


@no_devices
def test_counted_devices_of_a_node_without_a_driver(start: Any) -> None:
    one, other = {"NM_PORT": "8041"}, {"NM_PORT": "8042"}
    first = start(environ=one, gpus=2)
    got = first.answer()
    assert got["devices"] == ["0", "1"]
    assert got["variables"] == {"CUDA_VISIBLE_DEVICES": "0,1"}
    assert "No driver" in got["note"]
    assert not got["driver"]
    assert start(environ=one).answer()["devices"] == ["2"]
    assert start(environ=other).answer()["devices"] == ["0"]  # another node of this machine
    first.end()
    assert start(environ=one, gpus=3).answer()["devices"] == ["0", "1", "3"]


def test_a_task_without_gpus_takes_none_by_accident(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "device_numbers", lambda: ["0"])
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    assert gpus.claim_gpus(config(), {}).variables == hidden
    assert gpus.claim_gpus(config(), {"CUDA_VISIBLE_DEVICES": "0"}).variables == {}
    assert gpus.claim_gpus(config(claim_gpus=False), {}).variables == {}
    assert gpus.claim_gpus(config(backend="local"), {}).variables == {}
    assert gpus.claim_gpus(config(backend="local", claim_gpus=True), {}).variables == hidden
    monkeypatch.setattr(gpus, "device_numbers", list)
    assert gpus.claim_gpus(config(), {}).variables == {}


@no_devices
def test_numbers_where_only_the_device_files_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"/dev/nvidia0": True, "/dev/nvidia1": None, "/dev/nvidia2": False}
    monkeypatch.setattr(gpu_view, "_may_open", answers.get)
    seen = gpu_view.visible_devices(["0", "1", "2"])
    assert (seen.devices, seen.denied, seen.nvml) == (["0"], 1, False)
    assert seen.isolated({})
    assert not gpu_view.visible_devices(["0", "1"]).isolated({})


RACE = """
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
from submarine_runtime.gpus import claims as gpus, device_locks
names = [f"GPU-{n}" for n in range(7)]
places = device_locks.LockDirectories((), sys.argv[2])
def race():
    for _ in range(2):
        claim = gpus._Locks(2, time.sleep, 50.0, places).take(names)
        for name in claim.devices:  # fails where somebody else has it now
            os.close(os.open(f"{sys.argv[3]}/{name}", os.O_CREAT | os.O_EXCL))
        time.sleep(0.002)
        for name in claim.devices:
            os.unlink(f"{sys.argv[3]}/{name}")
        claim.release()
children = []
for _ in range(50):
    pid = os.fork()
    if not pid:
        try:
            race()
        except BaseException as exc:
            print(repr(exc), flush=True)
            os._exit(1)
        os._exit(0)
    children.append(pid)
sys.exit(sum(os.waitpid(pid, 0)[1] != 0 for pid in children))
"""


def test_fifty_that_race_never_hold_the_same(tmp_path: Path) -> None:
    (tmp_path / "held").mkdir()
    orders = [str(RUNTIME), str(tmp_path / "locks"), str(tmp_path / "held")]
    done = subprocess.run(
        [sys.executable, "-I", "-c", RACE, *orders], capture_output=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, b"")


@no_devices
def test_all_users_of_the_node_share_the_locks(start: Any) -> None:
    # As root two users are tried for real; anybody else is one user.
    users = (65533, 65534) if os.geteuid() == 0 else (None, None)
    # Not below TMPDIR, which may be closed to others.
    with tempfile.TemporaryDirectory(dir="/tmp") as top:
        os.chmod(top, 0o777)
        directory = Path(top, "locks")
        first = start(shared=directory, uid=users[0])
        got = first.answer()
        assert got.get("devices") == ["0"], got
        assert start(shared=directory, uid=users[1]).answer()["devices"] == ["1"]
        first.kill()
        # The file of device 0 is another user's: it is locked all the same.
        got = start(shared=directory, uid=users[1], gpus=2).answer()
        assert got["devices"] == ["0", "2"]


def test_what_others_put_into_the_directory_does_no_harm(tmp_path: Path) -> None:
    locks = DeviceLocks(places(tmp_path / "locks"))
    target = tmp_path / "mine"
    target.write_text("precious")
    (tmp_path / "locks/a").symlink_to(target)
    os.mkfifo(tmp_path / "locks/b")
    (tmp_path / "locks/c").mkdir()
    assert not locks.take(["a", "b", "c"], 1)
    assert locks.take(["a", "b", "c", "d"], 1)
    assert locks.held == ["d"]
    assert target.read_text() == "precious"
    # The directory is emptied: the name of a socket is still held, until the locks are released.
    (tmp_path / "locks/d").unlink()
    other = DeviceLocks(places(tmp_path / "locks"))
    assert not other.take(["d"], 1)
    locks.release()
    locks.release()
    assert other.take(["d"], 1)
    assert not DeviceLocks(places(tmp_path / "locks")).take(["d"], 1)
    other.release()


def test_a_directory_that_is_not_shared_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(LocksError, match="not a directory that all users"):
        DeviceLocks(places(tmp_path / "link"))
    (tmp_path / "file").write_text("")
    with pytest.raises(LocksError, match="not a directory"):
        DeviceLocks(places(tmp_path / "file"))
    with pytest.raises(LocksError, match="cannot make"):
        DeviceLocks(places("/proc/locks-of-submarine"))
    with pytest.raises(gpus.NoDeviceError, match="cannot be claimed"):
        gpus.claim_gpus(config(gpus=1), {}, places=places(tmp_path / "file"))
    old = os.umask(0o077)
    try:
        DeviceLocks(places(tmp_path / "made")).release()
    finally:
        os.umask(old)
    assert (tmp_path / "made").stat().st_mode & 0o7777 == 0o1777
