"""Responsiveness of the open log view while a job prints 20,000 lines a second.

For a minute the toggle `Wrap` of the log view is clicked, and the time from the mouse event to the
frame after its effect is measured, with the page's heap and the memory of its process after garbage
collection. The same clicks are measured before, on an idle page, and while a Jupyter terminal next
to an ended log shows the same lines by ``tail -f``. At the end the page is blocked for some
seconds: it must then report the skipped lines, and be at the end of the log again.
"""

from __future__ import annotations

import argparse
import re
import time
from typing import Any

import psutil
from on_browser import PATIENCE, Report, Rig, arguments, rig, spread
from playwright.sync_api import CDPSession, Page

from submarine_jobs.client import Job

#: Limits in milliseconds and MB.
CLICK, GROWTH = 100.0, 100.0
MB = 1_000_000
#: Prints in small portions at a fixed rate; each line has the time.
PROGRAM = """\
import pathlib, sys, time
go, copy = pathlib.Path({go!r}), {copy!r}
print("ready", flush=True)
while not go.exists():
    time.sleep(0.05)
out = open(copy, "w") if copy else sys.stdout
began, number = time.time(), 0
while number < {rate} * {seconds}:
    due = min({rate} * {seconds}, int((time.time() - began) * {rate}))
    now = f"{{time.time():.3f}}"
    for number in range(number, due):
        out.write(f"at {{number:08d}} {{now}} loss: 0.1234 - accuracy: 0.9876 - epoch 1 of 9\\n")
    number = due
    out.flush()
    time.sleep(0.005)
print("all is said", round(time.time() - began, 1), flush=True)
"""
#: Measures each click from the mouse event to the frame after its effect, and the age of the newest
#: line at every second frame.
WATCH = """() => {
  const root = document.querySelector('.jp-Submarine-log');
  const lines = root.querySelector('.jp-Submarine-log-lines');
  const found = { clicks: [], ages: [], frames: 0 };
  root.addEventListener('click', event => {
    const began = event.timeStamp;
    requestAnimationFrame(() => {
      // A message comes after the frame that is made now.
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => found.clicks.push(performance.now() - began);
      port2.postMessage(null);
    });
  }, true);
  const tick = () => {
    found.frames++;
    const sent = /at \\d{8} (\\d+\\.\\d+) /.exec(lines.lastElementChild?.textContent ?? '');
    if (sent !== null && found.frames % 2 === 0) {
      found.ages.push(Date.now() - 1000 * Number(sent[1]));
    }
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
  window.benchmarkFound = found;
}"""
TAKE = """() => {
  const found = window.benchmarkFound;
  const taken = { ...found };
  found.clicks = []; found.ages = []; found.frames = 0;
  return taken;
}"""


#: Blocks the page for some milliseconds.
STALL = """most => { const began = performance.now(); while (performance.now() - began < most); }"""
#: Whether the newest line is less than a second old.
CAUGHT_UP = (
    "() => window.benchmarkFound.ages.length > 0 && window.benchmarkFound.ages.at(-1) < 1000"
)


class Memory:
    """Memory of the page and its process after garbage collection, in MB."""

    def __init__(self, page: Page) -> None:
        self._page: CDPSession = page.context.new_cdp_session(page)
        self._page.send("Performance.enable")
        self._page.send("HeapProfiler.enable")
        browser = page.context.browser
        assert browser is not None
        info = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
        renderers = [psutil.Process(one["id"]) for one in info["processInfo"] if _renders(one)]
        # The process of this page; there is a spare one for the next tab.
        self._process = max(renderers, key=lambda one: one.memory_info().rss)

    def take(self) -> tuple[float, float]:
        """Measure the heap of the page and the resident memory of its process."""
        self._page.send("HeapProfiler.collectGarbage")
        metrics = self._page.send("Performance.getMetrics")["metrics"]
        heap = next(one["value"] for one in metrics if one["name"] == "JSHeapUsedSize")
        return heap / MB, self.resident()

    def resident(self) -> float:
        """Return the present resident memory, garbage included."""
        return float(self._process.memory_info().rss) / MB


def _renders(process: dict[str, Any]) -> bool:
    return bool(process["type"] == "renderer")


def click_for(at: Rig, seconds: float, memory: Memory, every: float = 0.4) -> dict[str, Any]:
    """Click the toggle for some seconds; return the measurements and the peak of the memory."""
    page = at.desk.page
    box = page.get_by_role("button", name="Wrap").bounding_box()
    assert box is not None
    page.evaluate(TAKE)
    deadline, peak, clicks = time.monotonic() + seconds, 0.0, 0
    while time.monotonic() < deadline:
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        clicks += 1
        peak = max(peak, memory.resident())
        page.wait_for_timeout(1000 * every)
    page.wait_for_timeout(500)
    found: dict[str, Any] = page.evaluate(TAKE)
    return {**found, "made": clicks, "peak": peak}


def flood(at: Rig, name: str, chosen: argparse.Namespace, seconds: float, copy: str = "") -> Job:
    """Start a job that prints to its log, or to a file, on request."""
    go = str(at.lab.scratch / f"go-{name}")
    program = PROGRAM.format(go=go, copy=copy, rate=chosen.rate, seconds=seconds)
    return at.submit(program, f"flood-{name}")


def stall(at: Rig, seconds: float, said: Report) -> None:
    """Block the page during the flood; return its report and the time until it is at the end."""
    page = at.desk.page
    page.evaluate(STALL, 1000 * seconds)
    page.evaluate(TAKE)
    began = time.monotonic()
    page.wait_for_function(CAUGHT_UP)
    took = 1000 * (time.monotonic() - began)
    said.add(f"at the end again after {seconds} s of standing still", took)
    status = page.locator(".jp-Submarine-log-status").inner_text()
    print(f"the view says: {status}")
    said.add("does not say what it skipped", float("skipped" not in status), "", bar=0)


def log_view(at: Rig, chosen: argparse.Namespace, said: Report) -> None:
    """Measure with the log view."""
    desk = at.desk
    # Additional seconds to measure memory, and to block the page.
    length = chosen.seconds + chosen.stall + 8
    job = flood(at, "log", chosen, length)
    try:
        desk.wait_for(lambda: at.session.job(job.id).record().state.value == "RUNNING", PATIENCE)
        desk.open_lab()
        log = desk.open_log(job.id)
        log.row("ready").wait_for()
        desk.page.evaluate(WATCH)
        memory = Memory(desk.page)
        quiet = click_for(at, 5, memory)
        before = memory.take()
        (at.lab.scratch / "go-log").touch()
        busy = click_for(at, chosen.seconds, memory)
        if chosen.screenshot:
            desk.page.screenshot(path=chosen.screenshot)
        after = memory.take()
        if chosen.stall:
            stall(at, chosen.stall, said)
        log.row("all is said").wait_for()
        pace = log.row("all is said").last.inner_text()
    finally:
        at.end(job)
    calm, clicks, ages = spread(quiet["clicks"]), spread(busy["clicks"]), spread(busy["ages"])
    took = float(re.findall(r"[\d.]+", pace)[-1])
    lines = chosen.rate * length
    print(f"{lines} lines in {took:.0f} s, {lines / took:.0f} a second; {busy['made']} clicks")
    for part in ("p50", "p99", "max"):
        against = ("on a quiet page", calm[part])
        said.add(f"click to next frame, {part}", clicks[part], bar=CLICK, against=against)
    said.add("clicks without an answer", busy["made"] - clicks["count"], "", bar=0)
    said.add("the page's heap grew by", after[0] - before[0], "MB", bar=GROWTH)
    said.add("its process grew by", after[1] - before[1], "MB", bar=GROWTH)
    said.add("its process grew at most by", busy["peak"] - before[1], "MB")
    for part in ("p50", "max"):
        said.add(f"age of the newest line on the screen, {part}", ages[part])
    said.add("frames a second", busy["frames"] / chosen.seconds, "")


def terminal(at: Rig, chosen: argparse.Namespace, said: Report) -> None:
    """Measure the same clicks next to a terminal that shows the same lines."""
    desk, copy = at.desk, at.lab.scratch / "flood.txt"
    job = flood(at, "terminal", chosen, chosen.terminal_seconds, str(copy))
    try:
        desk.wait_for(lambda: at.session.job(job.id).record().state.value == "RUNNING", PATIENCE)
        desk.open_lab()
        log = desk.open_log(job.id)
        log.row("ready").wait_for()
        desk.page.evaluate(TERMINAL, f"clear; tail -F {copy} 2>/dev/null")
        desk.page.wait_for_timeout(2000)
        desk.page.evaluate(WATCH)
        memory = Memory(desk.page)
        before = memory.take()
        (at.lab.scratch / "go-terminal").touch()
        busy = click_for(at, chosen.terminal_seconds, memory)
        after = memory.take()
    finally:
        at.end(job)
    clicks = spread(busy["clicks"])
    print(f"for comparison, a terminal with tail -f, {chosen.terminal_seconds} s:")
    said.add("click to next frame, p50", clicks["p50"])
    said.add("click to next frame, max", clicks["max"])
    said.add("the page's heap grew by", after[0] - before[0], "MB")
    said.add("its process grew by", after[1] - before[1], "MB")


TERMINAL = """async command => {
  const { commands, shell } = window.jupyterapp;
  const log = shell.currentWidget;
  const widget = await commands.execute('terminal:create-new');
  shell.add(widget, 'main', { mode: 'split-right', ref: log.id });
  await widget.content.ready;
  widget.content.session.send({ type: 'stdin', content: [command + '\\r'] });
}"""


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.add_argument("--rate", type=int, default=20_000, help="lines a second")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--stall", type=int, default=12, help="seconds of standing still; 0: none")
    parser.add_argument("--terminal-seconds", type=int, default=15, help="0: no comparison")
    chosen = parser.parse_args()
    said = Report()
    with rig(chosen.minicluster, terminals=True) as at:
        log_view(at, chosen, said)
        if chosen.terminal_seconds:
            terminal(at, chosen, said)
    said.finish(chosen)


if __name__ == "__main__":
    main()
