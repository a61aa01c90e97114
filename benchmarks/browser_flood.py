"""A flood of 20,000 lines a second in the open log view: clicks, memory, what is skipped.

A real job floods its log for a minute. Meanwhile the log view's toggle `Wrap` is clicked as a mouse
does it, and the time from the click to the frame after its effect is taken, as are the page's heap
and the memory of its process after a collection of garbage. For comparison the same clicks are
timed before the flood, on a page that has nothing to do, and while a Jupyter terminal beside an
ended log shows the same flood by ``tail -f``. At the end the page stands still for some seconds, as
one that cannot keep up: it must say what it skipped and be at the end again.
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

#: Milliseconds, MB.
CLICK, GROWTH = 100.0, 100.0
MB = 1_000_000
#: Prints in small portions, at the pace of the clock; each line says when.
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
#: Takes each click on the toggle from the mouse's event to the frame after its effect, and the age
#: of the newest line at each second frame.
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


#: The page does nothing for so many milliseconds.
STALL = """most => { const began = performance.now(); while (performance.now() - began < most); }"""
#: The age of the newest line is under a second.
CAUGHT_UP = (
    "() => window.benchmarkFound.ages.length > 0 && window.benchmarkFound.ages.at(-1) < 1000"
)


class Memory:
    """What the page and its process hold, in MB, after garbage was collected."""

    def __init__(self, page: Page) -> None:
        self._page: CDPSession = page.context.new_cdp_session(page)
        self._page.send("Performance.enable")
        self._page.send("HeapProfiler.enable")
        browser = page.context.browser
        assert browser is not None
        info = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
        renderers = [psutil.Process(one["id"]) for one in info["processInfo"] if _renders(one)]
        # The page's own; another waits for the next tab.
        self._process = max(renderers, key=lambda one: one.memory_info().rss)

    def take(self) -> tuple[float, float]:
        """Heap of the page, resident memory of its process."""
        self._page.send("HeapProfiler.collectGarbage")
        metrics = self._page.send("Performance.getMetrics")["metrics"]
        heap = next(one["value"] for one in metrics if one["name"] == "JSHeapUsedSize")
        return heap / MB, self.resident()

    def resident(self) -> float:
        """Resident memory now, with the garbage."""
        return float(self._process.memory_info().rss) / MB


def _renders(process: dict[str, Any]) -> bool:
    return bool(process["type"] == "renderer")


def click_for(at: Rig, seconds: float, memory: Memory, every: float = 0.4) -> dict[str, Any]:
    """Click the toggle for so many seconds; what was found meanwhile, and memory's peak."""
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
    """A job that floods its log, or a file, when it is told to."""
    go = str(at.lab.scratch / f"go-{name}")
    program = PROGRAM.format(go=go, copy=copy, rate=chosen.rate, seconds=seconds)
    return at.submit(program, f"flood-{name}")


def stall(at: Rig, seconds: float, said: Report) -> None:
    """Let the page stand still in the flood; what it says then, and when it is at the end again."""
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
    """The minute with the log view."""
    desk = at.desk
    # Some seconds more: for taking memory, standing still and coming back.
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
    """The same clicks beside a terminal that shows the same flood."""
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
