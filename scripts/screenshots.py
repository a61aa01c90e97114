"""Write the pictures of the documentation: a real JupyterLab, with local jobs, in Chromium.

    .venv/bin/python scripts/screenshots.py              all pictures, into docs/assets
    .venv/bin/python scripts/screenshots.py card log     only these

A picture has a light and a dark file, `NAME.png` and `NAME-dark.png`, unless it is listed in
`LIGHT_ONLY`. Each shows a job that runs for it; the notebook of the first job has the cells of
docs/quickstart.md. Needs the front end and Chromium: `scripts/setup.sh python node chromium`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from PIL import Image
from playwright.sync_api import Browser, FloatRect, Locator, expect, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
# The JupyterLab and its pages are those of the browser tests.
sys.path.insert(0, str(ROOT))

from tests.browser.chromium import chromium_arguments  # noqa: E402
from tests.browser.jobs import Jobs  # noqa: E402
from tests.browser.lab import Lab  # noqa: E402
from tests.browser.lab_page import LabPage  # noqa: E402
from tests.unit.pages import first_job_cells  # noqa: E402

ASSETS = ROOT / "docs" / "assets"
#: Kilobytes that a picture may have; a test checks the files too.
MOST_KB = 150
#: Milliseconds: jobs and pages are slow on a busy machine.
PATIENCE = 600_000
#: Colors of a palette, from the best looking to the smallest.
PALETTES = (256, 128, 64, 32)
Theme = Literal["Light", "Dark"]


@dataclass(frozen=True)
class Scene:
    """The server, the jobs and the page of one picture.

    Parameters
    ----------
    save
        Writes the picture of the page, of a part of it, or of a rectangle of it in CSS pixels, in
        each theme.
    """

    page: LabPage
    jobs: Jobs
    save: Callable[[Locator | FloatRect | None], None]


# Programs of the other pictures. They print their scalars as Keras does, which the agent reads.

TRAINING = """\
import os
import random

random.seed(int(os.environ.get("RANK", 0)))
epochs, rate = {epochs}, 3e-8
points = [(x := random.gauss(0, 1), 3 * x - 2 + random.gauss(0, 0.3)) for _ in range({points})]
slope = offset = 0.0
for epoch in range(1, epochs + 1):
    loss = 0.0
    for x, y in points:
        error = slope * x + offset - y
        slope -= rate * error * x
        offset -= rate * error
        loss += error**2 / len(points)
    print(f"Epoch {{epoch}}/{{epochs}}\\nslope: {{slope:.3f}} - loss: {{loss:.4f}}")
"""
MODEL_CELL = """%%submarine --only --file model.py
def normalize(pixels):
    total = sum(pixels)
    return [pixel / total for pixel in pixels]"""
FAILING_CELL = """%%submarine --only
from model import normalize

images = [[3, 1, 0], [0, 0, 0]]
for image in images:
    print(normalize(image), flush=True)"""
LOG = """
import random, sys, time
random.seed(3)
print("Found 8 shards with 60000 images", flush=True)
for step in range(1, 900):
    if step % 90 == 1:
        print(f"\\x1b[1mEpoch {step // 90 + 1}/10\\x1b[0m")
    loss = 2.3 / (1 + step / 60) + random.random() * 0.02
    print(f"step {step:4d}  \\x1b[36mloss {loss:.4f}\\x1b[0m  {random.randint(900, 1100)} images/s")
    if step == 889:
        print("\\x1b[33mWARNING: shard 5 is empty, skipped\\x1b[0m", flush=True)
sys.stdout.flush()
raise ValueError("shard 7: expected 7500 images, found 7112")
"""
CURVES = """
import os, random, sys, time, types
# TensorBoard's writer without TensorFlow.
sys.modules["tensorboard.compat.notf"] = types.ModuleType("tensorboard.compat.notf")
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

random.seed(5)
points = [(x := random.gauss(0, 1), 3 * x - 2 + random.gauss(0, 0.6)) for _ in range(60)]
parts = {{"train": points[:30], "validation": points[30:]}}
folder = os.environ["SUBMARINE_TENSORBOARD_DIR"]
writers = {{name: EventFileWriter(os.path.join(folder, name)) for name in parts}}
slope = offset = 0.0
for step in range(60):
    for name, part in parts.items():
        errors = [slope * x + offset - y for x, y in part]
        values = [
            Summary.Value(tag="epoch/loss", simple_value=sum(e * e for e in errors) / len(part)),
            Summary.Value(tag="epoch/largest_error", simple_value=max(map(abs, errors))),
        ]
        event = Event(wall_time=time.time() + step, step=step, summary=Summary(value=values))
        writers[name].add_event(event)
    for x, y in parts["train"]:
        error = slope * x + offset - y
        slope, offset = slope - {rate} * error * x, offset - {rate} * error
for writer in writers.values():
    writer.close()
"""
NIGHTLY = """%%submarine workflow nightly --schedule "0 30 2 ? * *" --timezone Europe/Berlin
nodes:
  - name: features
    notebook: features.ipynb
  - name: train
    notebook: train.ipynb
    dependsOn: [features]
  - name: report
    notebook: report.ipynb
    dependsOn: [train]
  - name: publish
    type: command
    config: {command: hdfs dfs -put -f model hdfs:///models/digits}
    dependsOn: [train]"""


def open_notebook(scene: Scene, name: str, *cells: str | NotebookNode) -> None:
    """Open a notebook of these cells, without the side bar."""
    page = scene.page
    page.open(page.lab.write(name, *cells))
    page.command("application:toggle-left-area")


def wait_for_state(card: Locator, state: str) -> None:
    """Wait until the card shows the state."""
    expect(card.get_by_text(state, exact=True).first).to_be_visible(timeout=PATIENCE)


def around(*parts: Locator) -> FloatRect:
    """Return the rectangle of the page that contains these parts, with a margin."""
    boxes = [box for part in parts if (box := part.bounding_box())]
    assert len(boxes) == len(parts), "a part of the picture is not visible"
    left, top = min(box["x"] for box in boxes), min(box["y"] for box in boxes)
    right = max(box["x"] + box["width"] for box in boxes)
    bottom = max(box["y"] + box["height"] for box in boxes)
    return {"x": left - 6, "y": top - 6, "width": right - left + 12, "height": bottom - top + 12}


def wait_for_curves(card: Locator) -> None:
    """Wait until the card has a chart of the loss."""
    charts = card.get_by_role("group", name="Measurements")
    expect(charts.get_by_text("loss", exact=True).first).to_be_visible(timeout=PATIENCE)


def card(scene: Scene) -> None:
    """The card of the first job, below its cell."""
    page = scene.page
    open_notebook(scene, "first.ipynb", *first_job_cells()[1:])
    page.run_all()
    run = page.page.locator(".jp-CodeCell", has_text="%submarine run")
    shown = run.locator(".jp-Submarine-card")
    wait_for_state(shown, "SUCCEEDED")
    wait_for_curves(shown)
    shown.scroll_into_view_if_needed()
    scene.save(shown)


def lab(scene: Scene) -> None:
    """JupyterLab: a notebook with the card of a running job, and the jobs panel."""
    page, jobs = scene.page, scene.jobs
    jobs.finished(TRAINING.format(epochs=5, points=10_000), "speech")
    jobs.finished("raise ValueError('unknown label 11')", "words")
    jobs.finished(TRAINING.format(epochs=3, points=10_000), "line")
    program = "%%submarine --only\n" + TRAINING.format(epochs=300, points=600_000).rstrip()
    run = "job = %submarine run line --memory 2G"
    page.open(page.lab.write("line.ipynb", program, run))
    page.command("submarine:jobs")
    page.run_all()
    rows = page.page.get_by_role("listbox", name="Jobs").get_by_role("option")
    expect(rows.filter(has_text="words").first).to_be_visible(timeout=PATIENCE)
    shown = page.card()
    wait_for_state(shown, "RUNNING")
    wait_for_curves(shown)
    page.page.wait_for_timeout(20_000)  # The curves get some points.
    page.page.mouse.move(0, 0)
    shown.scroll_into_view_if_needed()
    scene.save(None)
    jobs.session.job(page.job_ids()[0]).cancel("the picture is taken")


def failure(scene: Scene) -> None:
    """The card of a failed job: the traceback leads to cells."""
    page = scene.page
    run = "%submarine run pixels --backend local"
    open_notebook(scene, "pixels.ipynb", MODEL_CELL, FAILING_CELL, run)
    page.run_all()
    shown = page.card()
    wait_for_state(shown, "FAILED")
    traceback = shown.locator(".jp-Submarine-failure")
    expect(traceback).to_be_visible(timeout=PATIENCE)
    page.page.mouse.move(0, 0)
    page.page.wait_for_timeout(3000)  # The card has its final height.
    scene.save(around(page.page.locator(".jp-CodeCell").first, traceback))


def tasks(scene: Scene) -> None:
    """The card of a running job with four workers."""
    page, jobs = scene.page, scene.jobs
    program = TRAINING.format(epochs=300, points=600_000)
    job = jobs.start(program, "line", instances=4, framework="any")
    cell = new_code_cell("%submarine run line --worker 4", outputs=[jobs.output(job)])
    open_notebook(scene, "workers.ipynb", cell)
    shown = page.card()
    wait_for_state(shown, "RUNNING")
    expect(shown.get_by_text("worker:3").first).to_be_visible(timeout=PATIENCE)
    wait_for_curves(shown)
    page.page.wait_for_timeout(20_000)
    shown.scroll_into_view_if_needed()
    scene.save(shown)
    jobs.session.job(job).cancel("the picture is taken")


def log(scene: Scene) -> None:
    """The log view of a failed job, at its error."""
    page, jobs = scene.page, scene.jobs
    job = jobs.finished(LOG, "images")
    page.open_lab()
    page.command("application:toggle-left-area")
    view = page.open_log(job)
    expect(view.row("expected 7500 images").first).to_be_visible(timeout=PATIENCE)
    view.node.get_by_role("button", name="Next error").click()
    page.page.wait_for_timeout(1000)
    scene.save(view.node)


def tensorboard(scene: Scene) -> None:
    """TensorBoard of two jobs in a tab."""
    page, jobs = scene.page, scene.jobs
    rates = {"fast": 0.004, "slow": 0.001}
    two = [jobs.finished(CURVES.format(rate=rate), name) for name, rate in rates.items()]
    page.open_lab()
    page.command("application:toggle-left-area")
    page.command("submarine:tensorboard", jobs=two)
    frame = page.page.frame_locator("iframe[src*='submarine/tensorboard/']")
    expect(frame.get_by_text("epoch").first).to_be_visible(timeout=PATIENCE)
    # More space for the charts.
    frame.get_by_role("button").filter(has_text="Settings").first.click()
    page.page.wait_for_timeout(8000)  # It draws one chart after the other.
    scene.save(None)


def workflow(scene: Scene) -> None:
    """The graph of a workflow below its cell."""
    page = scene.page
    for name in ("features", "train", "report"):
        page.lab.write(f"{name}.ipynb", "%submarine list")
    open_notebook(scene, "nightly.ipynb", NIGHTLY)
    page.run_all()
    drawn = page.outputs(0)
    expect(drawn.locator("svg text", has_text="features").first).to_be_visible(timeout=PATIENCE)
    page.page.wait_for_timeout(500)
    scene.save(page.page.locator(".jp-CodeCell").first)


PICTURES: dict[str, Callable[[Scene], None]] = {
    taken.__name__: taken for taken in (lab, card, failure, tasks, log, tensorboard, workflow)
}
#: TensorBoard has a theme of its own.
LIGHT_ONLY = ("tensorboard",)
#: Sizes of the page in CSS pixels; cards are as wide as in a window of this width.
VIEWPORTS = {
    "lab": (1360, 880),
    "tasks": (1040, 1200),
    "workflow": (960, 900),
    "log": (1080, 520),
    "tensorboard": (1380, 800),
}
VIEWPORT = (840, 1200)


def files_of(name: str) -> list[tuple[Theme, str]]:
    """The files of a picture, with their themes."""
    light: list[tuple[Theme, str]] = [("Light", f"{name}.png")]
    return light if name in LIGHT_ONLY else [*light, ("Dark", f"{name}-dark.png")]


def small(png: bytes) -> bytes:
    """The same picture with a palette, small enough for the repository."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    for colors in PALETTES:
        written = io.BytesIO()
        image.quantize(colors, dither=Image.Dither.NONE).save(written, "PNG", optimize=True)
        if len(written.getvalue()) <= MOST_KB * 1000:
            return written.getvalue()
    raise ValueError(f"A picture has {len(written.getvalue()) // 1000} kB with {colors} colors.")


@contextlib.contextmanager
def running_lab() -> Iterator[tuple[Lab, Jobs]]:
    """A JupyterLab for jobs of the local backend, with nothing of this machine's user."""
    scratch = Path(tempfile.mkdtemp(prefix="submarine-lab-"))
    server = Lab(scratch, {"SUBMARINE_BACKEND": "local"})
    try:
        server.start()
        with contextlib.closing(Jobs(server)) as jobs:
            yield server, jobs
    finally:
        server.close()
        shutil.rmtree(scratch, ignore_errors=True)


def take(name: str, browser: Browser, server: Lab, jobs: Jobs) -> None:
    """Take one picture in its themes."""
    width, height = VIEWPORTS.get(name, VIEWPORT)
    context = browser.new_context(
        viewport={"width": width, "height": height}, device_scale_factor=1.5
    )
    context.set_default_timeout(PATIENCE)
    lab_page = LabPage(context.new_page(), server)

    def save(part: Locator | FloatRect | None) -> None:
        for theme, file in files_of(name):
            lab_page.theme(theme)
            expect(lab_page.page.locator("#jupyterlab-splash")).to_have_count(0)
            lab_page.page.wait_for_timeout(1000)
            if isinstance(part, Locator):
                png = part.screenshot(animations="disabled")
            else:
                png = lab_page.page.screenshot(animations="disabled", clip=part)
            (ASSETS / file).write_bytes(small(png))
            size = (ASSETS / file).stat().st_size // 1000
            print(f"docs/assets/{file}: {size} kB", flush=True)
        lab_page.theme("Light")  # It is stored, and TensorBoard takes it over when it opens.

    try:
        lab_page.login()
        PICTURES[name](Scene(lab_page, jobs, save))
    except Exception:
        lab_page.shot(f"failed-picture-{name}")
        raise
    finally:
        context.close()
        for session in server.ask("api/sessions").json:
            server.ask(f"api/sessions/{session['id']}", "DELETE")


def main() -> None:
    """Take the pictures that the command line names."""
    # The server and its kernels end with this process, also when it is terminated.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PICTURES))
    names = parser.parse_args().names or list(PICTURES)
    if unknown := [name for name in names if name not in PICTURES]:
        parser.error(f"there is no picture {unknown[0]!r}: the pictures are {', '.join(PICTURES)}")
    expect.set_options(timeout=PATIENCE)
    with running_lab() as (server, jobs), sync_playwright() as playwright:
        browser = playwright.chromium.launch(**chromium_arguments())
        for name in names:
            take(name, browser, server, jobs)


if __name__ == "__main__":
    main()
