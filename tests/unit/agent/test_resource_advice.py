"""Hints at the end of a job: what its owner could do better next time."""

from __future__ import annotations

import pytest

from submarine_runtime.coordinator.record.resource_hints import job_hints
from submarine_runtime.gpus import DeviceUtilization
from submarine_runtime.protocol import Failure, JobRecord, State, TaskRecord
from submarine_runtime.record import memory_sentence, resource_hints


def test_hints_say_what_to_ask_for() -> None:
    def of(**numbers: object) -> list[str]:
        usual = {"requested": 8192.0, "peak": 1229.0, "seconds": 600.0, "succeeded": True}
        return resource_hints(**{**usual, **numbers})  # type: ignore[arg-type]

    assert of() == ["Memory: used 1.2 of 8 GB: ask for 2 GB."]
    assert of(peak=5000.0) == of(seconds=5.0) == of(succeeded=False) == of(requested=None) == []
    assert of(requested=512.0, peak=100.0) == []
    idle = DeviceUtilization("GPU-3f", 2.1, 600.0)
    assert of(peak=5000.0, gpus=[idle, DeviceUtilization("GPU-b", 60.0, 600.0)]) == [
        "GPU-3f was 2 % busy on average over 10 min: let the program use it, or ask for fewer GPUs."
    ]
    assert of(peak=5000.0, gpus=[DeviceUtilization("GPU-3f", 0.0, 60.0)]) == []
    unused = DeviceUtilization("GPU-3f", 0.0, 40.0, 2.0)
    assert of(peak=5000.0, gpus=[unused]) == [
        "No program used GPU-3f in 40 s: check that the library is built for CUDA and the code "
        "uses it, or ask for fewer GPUs."
    ]
    # The context of a program has hundreds of MiB; a program that fails may not have come to it.
    assert of(peak=5000.0, gpus=[unused._replace(memory=500.0)]) == []
    assert of(succeeded=False, gpus=[unused]) == []
    full = Failure(
        "torch.OutOfMemoryError",
        "CUDA out of memory. Tried to allocate 1024.00 MiB. GPU 0 has a total capacity of 79.18 "
        "GiB of which 588.19 MiB is free.",
    )
    [of_device] = of(succeeded=False, failure=full)
    assert "The GPU's own memory was full, which --memory does not change" in of_device
    assert of(succeeded=False, failure=Failure("MemoryError", "")) == []
    assert memory_sentence(4200, 4096) == "The program used 4.1 of 4 GB: ask for 6 GB."
    assert memory_sentence(4100, 4096) == "The program used 4.00 of 4 GB: ask for 6 GB."
    assert memory_sentence(230, 200) == "The program used 230 of 200 MiB: ask for 384 MiB."


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("CUDA error: out of memory\nCUDA kernel errors might be", "own memory was full"),
        (
            "NCCL error: unhandled cuda error\nLast error:\nCuda failure 2 'out of memory'",
            "was full",
        ),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17 bytes.", "was full"),
        ("CUDA error: uncorrectable ECC error encountered\nCompile with", "could not be corrected"),
        ("INTERNAL: CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error", "could not be"),
        ("Cuda failure 220 'uncorrectable NVLink error detected during", "could not be corrected"),
        (
            "CUDA error: all CUDA-capable devices are busy or unavailable",
            "uses the GPU exclusively",
        ),
        ("CUDA error: CUDA-capable device(s) is/are busy or unavailable", "exclusively"),
        ("The NVIDIA driver on your system is too old (found version 11040).", "driver is older"),
        ("CUDA driver version is insufficient for CUDA runtime version", "driver is older"),
        ("CUDA error: no kernel image is available for execution on the device", "not built for"),
        (
            "NCCL error: invalid usage\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA "
            "device 1000",
            "NCCL needs a GPU of its own",
        ),
        ("expected 3 arguments, got 2", ""),
    ],
)
def test_errors_of_gpus_are_explained(message: str, words: str) -> None:
    found = resource_hints(
        requested=None,
        peak=0.0,
        seconds=5.0,
        succeeded=False,
        failure=Failure("RuntimeError", message),
    )
    assert len(found) == bool(words)
    assert words in "".join(found)


def test_advice_for_a_role_is_what_its_hungriest_task_used() -> None:
    def task(index: int, peak: float | None, role: str = "worker") -> TaskRecord:
        name = f"{role}:{index}"
        return TaskRecord(name, role, index, started=0.0, finished=99.0, memory_peak=peak)

    def of(*tasks: TaskRecord, told: dict[str, list[str]] | None = None) -> list[str]:
        requested = {"worker": {"memory": 8192}, "ps": {"memory": 4096}}
        record = JobRecord(
            "j", "j", State.SUCCEEDED, tasks=list(tasks), resources={"requested": requested}
        )
        return job_hints(record, told or {})

    assert of(task(0, 1229.0), task(1, 100.0)) == [
        "worker: Memory: used 1.2 of 8 GB: ask for 2 GB."
    ]
    assert of(task(0, 1229.0), task(1, 7000.0)) == of(task(0, 1229.0), task(1, None)) == []
    told = {f"worker:{n}": ["Memory: x.", "GPU-a was idle."] for n in range(30)}
    found = of(task(0, 7000.0), task(0, 100.0, "ps"), told=told)
    assert found[:2] == [
        "ps: Memory: used 0.1 of 4 GB: ask for 192 MiB.",
        "worker:0: GPU-a was idle.",
    ]
    assert len(found) == 10
    assert found[-1] == "And 22 more like these."
