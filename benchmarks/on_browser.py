"""Common code of the benchmarks in a browser: a real JupyterLab and a page of a real Chromium.

JupyterLab and its page are those of the browser tests. This module adds a backend, jobs, and a
report that compares figures with their limits.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from on_minicluster import open_session
from playwright.sync_api import Browser, sync_playwright

from submarine_jobs.client import Job, Session
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_jobs.program import Cell, build_bundle
from submarine_minicluster import Minicluster

# The rig is a part of the tests, which are not installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.browser.chromium import chromium_arguments
from tests.browser.lab import Lab
from tests.browser.lab_page import LabPage

VIEWPORT = {"width": 1400, "height": 1000}
#: Time limit for a job or a page on a busy machine, in seconds.
PATIENCE = 120.0


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Parse the common command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--minicluster", help="run jobs there; else as processes of this machine")
    parser.add_argument("--json", type=Path, help="write the numbers there, too")
    parser.add_argument("--screenshot", type=Path, help="keep a picture of the page at its end")
    return parser


@dataclass
class Rig:
    """JupyterLab, a logged-in page, and the session of the same user."""

    lab: Lab
    desk: LabPage
    browser: Browser
    session: Session
    backend: str

    def submit(self, source: str, name: str) -> Job:
        """Run a program as a job of one task."""
        bundle = build_bundle([Cell("c", source, label="[1]", execution_count=1)])
        role = Role(resources=Resources(memory=512))
        spec = JobSpec(name, self.backend, roles=(role,), python=sys.executable)
        return self.session.submit(spec, bundle)

    def wait(self, path: Path) -> None:
        """Wait until a job has created a file."""
        self.desk.wait_for(path.exists, PATIENCE)

    def end(self, job: Job) -> None:
        """Cancel a running job, and wait until it has ended."""
        if not job.record().state.ended:
            job.cancel("it was measured")
        with contextlib.suppress(TimeoutError):
            job.wait(PATIENCE)


@contextlib.contextmanager
def rig(
    cluster: str | None = None,
    prepare: Callable[[Path], Mapping[str, str]] | None = None,
    **options: Any,
) -> Iterator[Rig]:
    """Start JupyterLab, the browser and the backend, and remove them afterwards.

    Parameters
    ----------
    cluster
        The minicluster for the jobs; None for the local backend.
    prepare
        Called with the scratch directory before the server starts; returns environment variables.
    options
        Further options of ``Lab``.
    """
    scratch = Path(tempfile.mkdtemp(prefix="submarine-bench-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        backend = "yarn" if cluster else "local"
        (scratch / "state").mkdir()
        own = prepare(scratch) if prepare else {}
        places = {**_places(cluster), "SUBMARINE_BACKEND": backend, **own}
        lab = Lab(scratch, places, **options)
        stack.callback(lab.close)
        session = _session(stack, scratch / "state", places, backend)
        lab.start()
        browser = stack.enter_context(_chromium())
        desk = new_desk(browser, lab)
        yield Rig(lab, desk, browser, session, backend)


def new_desk(browser: Browser, lab: Lab) -> LabPage:
    """Open a page in a browser with an empty cache."""
    context = browser.new_context(viewport=VIEWPORT)  # type: ignore[arg-type]
    context.set_default_timeout(1000 * PATIENCE)
    desk = LabPage(context.new_page(), lab)
    desk.login()
    return desk


def _places(cluster: str | None) -> dict[str, str]:
    if not cluster:
        return {}
    minicluster = Minicluster(cluster)
    minicluster.start()
    return minicluster.environ()


def _session(
    stack: contextlib.ExitStack, state: Path, places: Mapping[str, str], backend: str
) -> Session:
    if backend == "local":
        return Session(Profile(backend="local", state_dir=state))
    os.environ.update(places)
    session = open_session(state, {})
    from submarine_jobs.backends.yarn.driver import stop_driver

    stack.callback(stop_driver, session.profile)
    return session


@contextlib.contextmanager
def _chromium() -> Iterator[Browser]:
    try:
        # The page must report its precise memory.
        found = chromium_arguments("--enable-precise-memory-info")
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**found)
        try:
            yield browser
        finally:
            browser.close()


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return number, p50, p99 and maximum."""
    ordered = sorted(values)
    if not ordered:
        raise SystemExit("Nothing was measured.")
    return {
        "count": len(ordered),
        "p50": statistics.median(ordered),
        "p99": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
        "max": ordered[-1],
    }


class Report:
    """Figures, each printed with its limit and its reference."""

    def __init__(self) -> None:
        self.figures: list[dict[str, Any]] = []

    def add(
        self,
        name: str,
        value: float,
        unit: str = "ms",
        *,
        bar: float | None = None,
        against: tuple[str, float] | None = None,
    ) -> None:
        """Print a figure; ``bar`` is its maximum."""
        words = f"{name:52} {value:8.1f} {unit:5}"
        if bar is not None:
            words += f"  bar {bar:g} {'kept' if value <= bar else 'MISSED'}"
        if against is not None:
            other, number = against
            ratio = f", ratio {value / number:.2f}" if number else ""
            words += f"  {other} {number:.1f}{ratio}"
        print(words, flush=True)
        self.figures.append(
            {"name": name, "value": value, "unit": unit, "bar": bar, "against": against}
        )

    @property
    def good(self) -> bool:
        """Whether all figures are within their limits."""
        return all(one["bar"] is None or one["value"] <= one["bar"] for one in self.figures)

    def finish(self, chosen: argparse.Namespace) -> None:
        """Write the figures to a file if requested; exit with 1 if a limit is missed."""
        if chosen.json:
            chosen.json.write_text(json.dumps(self.figures, indent=1))
        sys.exit(0 if self.good else 1)
