"""Shared memory of programs in images: `/dev/shm`, as the workers of a DataLoader use it."""

from __future__ import annotations

from tests.containers.conftest import Containers
from tests.containers.hadoop import IMAGE

_IMAGE = ("--docker_image", IMAGE)
#: Four processes that each pass a batch of 200 MB to their parent.
_LOADER = """
from multiprocessing import Process, Queue
from multiprocessing.shared_memory import SharedMemory

SIZE = 200 << 20

def load(number, batches):
    batch = SharedMemory(create=True, size=SIZE)
    batch.buf[:] = bytes([number]) * SIZE
    batches.put(batch.name)
    batch.close()

batches = Queue()
workers = [Process(target=load, args=(number, batches)) for number in range(4)]
for worker in workers:
    worker.start()
read = []
for worker in workers:
    batch = SharedMemory(batches.get())
    read.append(batch.buf[SIZE - 1])
    batch.unlink()
    batch.close()
print("batches", sorted(read))
"""
_FILL = """
import mmap, os
file = os.open("/dev/shm/batch", os.O_RDWR | os.O_CREAT)
os.ftruncate(file, 200 << 20)
batch = mmap.mmap(file, 200 << 20)
batch[:] = bytes(200 << 20)
"""


def test_worker_processes_share_large_batches(containers: Containers) -> None:
    done = containers.run(_LOADER, *_IMAGE, "--memory", "2G")
    assert "batches [0, 1, 2, 3]\n" in done.output


def test_full_shared_memory_is_the_reason(containers: Containers) -> None:
    """A mount of the site replaces the shared memory of the job; here it has 64 MB."""
    containers.cell.run(["mkdir", "-p", "/srv/nm/shm"])
    containers.cell.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m,mode=1777", "tmpfs", "/srv/nm/shm"]
    )
    mount = "docker_mounts=/srv/nm/shm:/dev/shm:rw"
    done = containers.run(_FILL, *_IMAGE, "--conf", mount, "--memory", "1G", check=False)
    assert done.status
    assert "SIGBUS: the shared memory in /dev/shm was probably full" in done.output
