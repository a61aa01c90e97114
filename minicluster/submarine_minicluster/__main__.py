"""Run the commands of `submarine minicluster` as `python -m submarine_minicluster`."""

from __future__ import annotations

from submarine_minicluster.cli import minicluster

if __name__ == "__main__":
    minicluster(prog_name="python -m submarine_minicluster")
