"""The program of a kernel's job: keeps a kernel until nobody wants it any more."""

from __future__ import annotations

import argparse
import asyncio

from .keeper import Keeper
from .kernel_process import module


def main() -> None:
    """Run until the kernel has ended for good."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--idle", type=float, required=True)
    idle = parser.parse_args().idle
    module()  # without ipykernel there is nothing to keep
    asyncio.run(_keep(idle))


async def _keep(idle: float) -> None:
    # Within the loop: before Python 3.10 an event belongs to the loop that there is.
    await Keeper(idle).keep()
