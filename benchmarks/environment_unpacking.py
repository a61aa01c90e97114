"""Seconds until a Python environment is unpacked by the agent, compared with the program tar.

Both unpack the same ``.tar.gz`` in turns, each in a process of its own: ``tar -xzf``, and the
agent's module, which also reports its progress. The archive has 60,000 files and 2 GB by default,
as an environment with TensorFlow does. Prints the seconds of each round, the medians and their
ratio; its limit is 1.2.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from submarine_jobs.environments.archive import ParallelGzip
from submarine_runtime.agent.preparation.python_environment import place_environment
from submarine_runtime.protocol import layout
from submarine_runtime.storage import Scratch

LIMIT = 1.2


def write(path: Path, files: int, megabytes: int) -> None:
    """Write an archive of files of different sizes, which compress to about a third."""
    chance = random.Random(1)
    words = [chance.randbytes(chance.randint(3, 12)) for _ in range(2000)]
    text = b"".join(chance.choice(words) for _ in range(400_000))
    sizes = [chance.paretovariate(1.2) for _ in range(files)]
    scale = megabytes * 1_000_000 / sum(sizes)
    with path.open("wb") as file:
        stream = ParallelGzip(file, os.cpu_count() or 1)
        with tarfile.open(fileobj=stream, mode="w|") as archive:
            for number, share in enumerate(sizes):
                info = tarfile.TarInfo(f"lib/p{number % 400}/module_{number}.py")
                info.size, info.mode = int(share * scale), 0o644
                at = chance.randrange(len(text))
                content = (text[at:] + text * (1 + info.size // len(text)))[: info.size]
                archive.addfile(info, io.BytesIO(content))
        stream.finish()


def unpack(archive: str, root: str) -> None:
    """Unpack as the agent does."""
    reports = []
    os.symlink(archive, os.path.join(root, layout.PYTHON_ENV_ARCHIVE))
    scratch = Scratch(root, os.path.join(root, "logs"), "worker-0")
    ending = place_environment(scratch, lambda _text, share: reports.append(share), time.sleep)
    if ending is not None:
        raise SystemExit(ending.detail)
    print(f"{len(reports)} reports", file=sys.stderr)


def main() -> int:
    """Run the rounds; return 1 if the ratio is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=60_000)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--unpack", nargs=2, metavar=("ARCHIVE", "ROOT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.unpack:
        unpack(*args.unpack)
        return 0
    seconds: dict[str, list[float]] = {"tar": [], "agent": []}
    with tempfile.TemporaryDirectory() as directory:
        cache = Path(directory) / "filecache" / "10"
        cache.mkdir(parents=True)
        archive = cache / "env.tar.gz"
        write(archive, args.files, args.megabytes)
        print(f"{args.files} files, {archive.stat().st_size / 1e6:.0f} MB packed")
        for round_number in range(args.rounds):
            for name in seconds:
                root = Path(directory) / f"{name}-{round_number}"
                root.mkdir()
                command = ["tar", "-xzf", str(archive), "-C", str(root)]
                if name == "agent":
                    command = [sys.executable, __file__, "--unpack", str(archive), str(root)]
                begin = time.perf_counter()
                subprocess.run(command, check=True)
                seconds[name].append(time.perf_counter() - begin)
                print(f"round {round_number} {name}: {seconds[name][-1]:.1f} s")
                shutil.rmtree(root)
                for place in cache.iterdir():
                    if place.is_dir():
                        shutil.rmtree(place)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    ratio = medians["agent"] / medians["tar"]
    print(f"tar {medians['tar']:.1f} s, agent {medians['agent']:.1f} s: {ratio:.2f} of tar's time")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
