"""Time to bundle a notebook of 200 cells, compared with writing the same text to a zip file.

Prints both medians of one interleaved run, and their ratio. The limit for the bundle is 50 ms.
"""

from __future__ import annotations

import io
import statistics
import sys
import time
import zipfile

from submarine_jobs.program import Cell, build_bundle

CELLS, ROUNDS = 200, 15


def cells() -> list[Cell]:
    """Return cells of 20 lines each, half of them in modules of a package."""
    made = []
    for number in range(CELLS):
        lines = [f"def f{number}_{i}(x, y={i}):  # {i}\n    return x + y" for i in range(10)]
        made.append(
            Cell(
                cell_id=f"cell-{number}",
                source="\n".join(lines) + "\n",
                label=f"[{number}]",
                execution_count=number,
                first_line=2,
                only=False,
                filename="main.py" if number % 2 else f"pkg/part{number % 10}.py",
            )
        )
    return made


def plain(collected: list[Cell]) -> None:
    """Write one zip file, without source map and checks."""
    with zipfile.ZipFile(io.BytesIO(), "w") as archive:
        archive.writestr("main.py", "\n".join(cell.source for cell in collected))


def ours(collected: list[Cell]) -> None:
    """Merge, map, digest and zip."""
    bundle = build_bundle(collected)
    bundle.zip_bytes()
    _ = bundle.digest


def main() -> int:
    """Measure both alternately."""
    collected = cells()
    times: dict[str, list[float]] = {"plain": [], "ours": []}
    for _ in range(ROUNDS):
        for name, work in (("plain", plain), ("ours", ours)):
            begin = time.perf_counter()
            work(collected)
            times[name].append((time.perf_counter() - begin) * 1000)
    middle = {name: statistics.median(values) for name, values in times.items()}
    print(f"{CELLS} cells: ours {middle['ours']:.1f} ms, one plain zip {middle['plain']:.1f} ms")
    print(f"ratio {middle['ours'] / middle['plain']:.1f}; bar 50 ms")
    return 0 if middle["ours"] < 50 else 1


if __name__ == "__main__":
    sys.exit(main())
