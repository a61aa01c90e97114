"""Seconds until one more package of an environment is on a node, over packing it as one archive.

An environment of 20,000 files and 2 GB, half of which compresses well, is packed, put into a cache
and unpacked as by the agent of a node. Then a package of 3,800 files and 150 MB is added, as by
``pip install scikit-learn``, and the same happens in two ways: as a delta, and as one archive, by a
client that does not know the first. Prints the seconds of each step and the ratio of both ways.

The limits are 30 s for the package, 180 s for a first environment of 7 GB (``--megabytes 7000``;
smaller ones in proportion), and 0.3 of the time of one archive. The cache is a directory of this
machine; a transfer to and from HDFS is not included. ``--packages DIR`` takes a real
``site-packages`` in place of the generated one.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from submarine_jobs.environments import (
    current_layout,
    list_items,
    provide_environment,
    provision,
)
from submarine_jobs.model import PackedEnvironment, PythonEnv
from submarine_jobs.storage import LocalStorage
from submarine_runtime.agent.preparation.python_environment import place_environment
from submarine_runtime.protocol import layout
from submarine_runtime.storage import Scratch

FIRST_LIMIT, FIRST_MEGABYTES, LIMIT, RATIO = 180.0, 7000, 30.0, 0.3
PARTS = (layout.PYTHON_ENV_ARCHIVE, layout.PYTHON_ENV_DELTA, layout.PYTHON_ENV_DESCRIPTION)


def write_files(root: Path, files: int, megabytes: int, seed: int) -> None:
    """Write files of different sizes; every second one does not compress."""
    chance = random.Random(seed)
    words = [chance.randbytes(chance.randint(3, 12)) for _ in range(2000)]
    text = b"".join(chance.choice(words) for _ in range(400_000))
    noise = chance.randbytes(len(text))
    sizes = [chance.paretovariate(1.2) for _ in range(files)]
    scale = megabytes * 1_000_000 / sum(sizes)
    for number, share in enumerate(sizes):
        source = noise if number % 2 else text
        path = root / f"p{seed}_{number % 400}" / f"module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        left, at = int(share * scale), chance.randrange(len(source))
        with path.open("wb") as file:
            while left > 0:
                left -= file.write(source[at : at + left])
                at = 0


def provide(packages: Path, cache: Path, state: Path, *, whole: bool) -> PackedEnvironment:
    """Pack the environment that has ``packages``, and put it into the cache."""
    chosen = replace(current_layout((packages,)), scripts=None)
    provision.kernel_items = lambda: list(list_items(chosen))  # type: ignore[attr-defined]
    provided = provide_environment(
        PythonEnv("auto"), LocalStorage(), str(cache), state, whole=whole
    )
    assert provided is not None
    print(f"  {provided.uploaded / 1e6:.0f} MB uploaded")
    return provided.files


def localize(files: PackedEnvironment, node: Path, container: Path) -> None:
    """Link the files into a container, as YARN does; those that the node has are not copied."""
    container.mkdir(parents=True)
    for name, url in zip(PARTS, (files.archive, files.delta, files.description), strict=True):
        if url:
            source = Path(url.removeprefix("file://"))
            local = node / source.stem / source.name
            if not local.exists():
                local.parent.mkdir(parents=True)
                os.link(source, local)
            (container / name).symlink_to(local)


def unpack(container: str) -> None:
    """Unpack as the agent does."""
    scratch = Scratch(container, os.path.join(container, "logs"), "worker-0")
    ending = place_environment(scratch, lambda _text, _share: None, time.sleep)
    if ending is not None:
        raise SystemExit(ending.detail)


def measure(what: str, packages: Path, root: Path, *, whole: bool) -> float:
    """Return the seconds to pack the environment and to unpack it in a new container.

    Parameters
    ----------
    root
        Directory of the client's state, the cache and the node.
    """
    begin = time.perf_counter()
    files = provide(packages, root / "cache", root / "state", whole=whole)
    packed = time.perf_counter() - begin
    container = root / f"container-{what.replace(' ', '-')}"
    localize(files, root / "node", container)
    command = [sys.executable, __file__, "--unpack", str(container)]
    begin = time.perf_counter()
    subprocess.run(command, check=True)
    unpacked = time.perf_counter() - begin
    print(f"{what}: packed in {packed:.1f} s, unpacked in {unpacked:.1f} s")
    return packed + unpacked


def main() -> int:
    """Measure once; return 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--packages", type=Path)
    parser.add_argument("--directory", type=Path, help="for the temporary files")
    parser.add_argument("--unpack", metavar="CONTAINER", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.unpack:
        unpack(args.unpack)
        return 0
    with tempfile.TemporaryDirectory(dir=args.directory) as directory:
        root = Path(directory)
        packages = root / "packages"
        if args.packages:
            shutil.copytree(args.packages, packages, symlinks=True)
        else:
            write_files(packages, args.files, args.megabytes, 1)
        megabytes = sum(f.stat().st_size for f in packages.rglob("*") if f.is_file()) / 1e6
        print(f"{megabytes:.0f} MB, load average {os.getloadavg()[0]:.1f}")
        first = measure("first", packages, root / "layers", whole=False)
        write_files(packages, 3800, 150, 2)
        layered = measure("delta", packages, root / "layers", whole=False)
        whole = measure("one archive", packages, root / "former", whole=True)
    first_limit = max(LIMIT, FIRST_LIMIT * megabytes / FIRST_MEGABYTES)
    print(f"first environment {first:.1f} s (limit {first_limit:.0f} s)")
    print(f"one more package {layered:.1f} s (limit {LIMIT:.0f} s), as one archive {whole:.1f} s")
    print(f"ratio {layered / whole:.2f} (limit {RATIO})")
    return 0 if first <= first_limit and layered <= LIMIT and layered / whole <= RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
