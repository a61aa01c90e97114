"""Latency from `print` in a container to the browser's next frame with that line: p50, p99.

A real job prints the time of day, line by line. A page of a real JupyterLab has the job's log open
and, for comparison, a Jupyter terminal with ``tail -f`` of the same lines. Both are measured in the
same run: from the time in the line to the start of the frame after the line is in the page. The
program and the browser run on one machine, so they share one clock.

``--busy`` measures again while the job keeps every core of this machine busy. It has no limit.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from on_browser import PATIENCE, Report, Rig, arguments, rig, spread

#: Limits on an idle machine, in milliseconds.
P50, P99 = 120.0, 300.0
#: Waits until the page shows the log, prints, and waits until the page has all lines.
PROGRAM = """\
import os, pathlib, random, subprocess, sys, time
go, copy = pathlib.Path({go!r}), open({copy!r}, "w", buffering=1)
print("ready", flush=True)
print("ready", file=copy)
while not go.exists():
    time.sleep(0.05)
burn = [sys.executable, "-c", "while True: sum(range(100000))"]
burners = [subprocess.Popen(burn) for _ in range({burners})]
try:
    time.sleep(2 if burners else 0.5)
    for number in range({lines}):
        # Of different lengths: in step with no frame and no timer.
        time.sleep(random.uniform(0.5, 1.5) * {pause})
        line = f"at {{number:06d}} {{time.time()!r}} ."
        print(line, flush=True)
        print(line, file=copy)
finally:
    for burner in burners:
        burner.kill()
print("all is said", flush=True)
"""
#: Records for each line when the frame after it begins, for a log view and for a terminal.
WATCH = """() => {
  const line = /at (\\d{6}) (\\d+\\.\\d+) \\./g;
  const seen = { log: {}, terminal: {} };
  const look = (place, text) => {
    for (const [, number, sent] of text.matchAll(line)) {
      if (!(number in seen[place])) {
        seen[place][number] = null;
        requestAnimationFrame(() => {
          seen[place][number] = Date.now() - 1000 * Number(sent);
        });
      }
    }
  };
  const lines = document.querySelector('.jp-Submarine-log-lines');
  new MutationObserver(records => {
    for (const record of records) {
      for (const node of record.addedNodes) {
        look('log', node.textContent);
      }
    }
  }).observe(lines, { childList: true, subtree: true });
  const screen = window.benchmarkTerminal._term;
  screen.onRender(({ start, end }) => {
    const buffer = screen.buffer.active;
    for (let row = start; row <= end; row++) {
      look('terminal', buffer.getLine(buffer.viewportY + row)?.translateToString(true) ?? '');
    }
  });
  window.benchmarkSeen = seen;
}"""
TERMINAL = """async command => {
  const { commands, shell } = window.jupyterapp;
  const log = shell.currentWidget;
  const widget = await commands.execute('terminal:create-new');
  shell.add(widget, 'main', { mode: 'split-right', ref: log.id });
  shell.activateById(widget.id);
  const terminal = widget.content;
  await terminal.ready;
  terminal.session.send({ type: 'stdin', content: [command + '\\r'] });
  window.benchmarkTerminal = terminal;
}"""
HAS_TEXT = """text => {
  const buffer = window.benchmarkTerminal._term.buffer.active;
  for (let row = 0; row < buffer.length; row++) {
    if (buffer.getLine(row).translateToString(true) === text) return true;
  }
  return false;
}"""


def watch(at: Rig, name: str, chosen: argparse.Namespace, burners: int) -> dict[str, Any]:
    """Run one job and return the milliseconds of each line in both views."""
    page, scratch = at.desk.page, at.lab.scratch
    go, copy = scratch / f"go-{name}", scratch / f"copy-{name}.txt"
    program = PROGRAM.format(
        go=str(go), copy=str(copy), lines=chosen.lines, pause=chosen.pause, burners=burners
    )
    job = at.submit(program, f"latency-{name}")
    try:
        at.wait(copy)
        at.desk.open_lab()
        log = at.desk.open_log(job.id)
        log.row("ready").wait_for()
        page.evaluate(TERMINAL, f"clear; tail -n +1 -f {copy}")
        page.wait_for_function(HAS_TEXT, arg="ready")
        page.evaluate(WATCH)
        go.touch()
        at.desk.wait_for(
            lambda: (
                page.evaluate("() => !!document.querySelector('.jp-Submarine-log-lines')")
                and log.row("all is said").count() > 0
            ),
            chosen.lines * chosen.pause * 2 + PATIENCE,
        )
        page.wait_for_timeout(1000)
        if chosen.screenshot:
            page.screenshot(path=chosen.screenshot)
        seen: dict[str, dict[str, float | None]] = page.evaluate("() => window.benchmarkSeen")
    finally:
        at.end(job)
    return {
        place: [one for one in lines.values() if one is not None] for place, lines in seen.items()
    }


def report(found: dict[str, Any], name: str, lines: int, said: Report, *, bars: bool) -> None:
    """Print the delays of one run."""
    ours, theirs = spread(found["log"]), spread(found["terminal"])
    print(
        f"{name}: {ours['count']} of {lines} lines in the log view, {theirs['count']} in a terminal"
    )
    for part, bar in (("p50", P50), ("p99", P99), ("max", None)):
        said.add(
            f"{name}: print to pixel, {part}",
            ours[part],
            bar=bar if bars else None,
            against=("tail -f in a terminal", theirs[part]),
        )
    # A missing line is above every limit.
    said.add(f"{name}: lines that did not come", lines - ours["count"], "lines", bar=0)


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--pause", type=float, default=0.1, help="seconds between two lines")
    parser.add_argument("--busy", action="store_true", help="measure beside busy cores, too")
    chosen = parser.parse_args()
    said = Report()
    with rig(chosen.minicluster, terminals=True) as at:
        found = watch(at, "idle", chosen, 0)
        report(found, f"idle, {at.backend}", chosen.lines, said, bars=True)
        if chosen.busy:
            found = watch(at, "busy", chosen, cores())
            report(found, f"busy, {at.backend}", chosen.lines, said, bars=False)
    said.finish(chosen)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


if __name__ == "__main__":
    main()
