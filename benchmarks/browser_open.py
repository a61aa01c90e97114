"""Time to open a log of 1 GB, search in it, and show job cards and 10,000 jobs in a browser.

Uses a real JupyterLab and Chromium; each time ends with the frame after the result is in the page.
Logs: a log of 1 GB is opened at its end, alternating with one of 1 kB, and searched; the reference
is ``grep`` over the same file. Cards: the first and the second output of a new page that has a job,
from the kernel's message; the reference is the same output as plain HTML. Panel: the list of a
server with 10,000 jobs of a simulated ResourceManager; the reference is JupyterLab's list of 500
files (it needs a minute for 10,000).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from on_browser import PATIENCE, Report, Rig, arguments, new_desk, rig
from simulated_cluster import USER, ResourceManager, fill, known

from submarine_jobs.display import MIME_TYPE, mimebundle
from submarine_jobs.tracking import JobStore
from submarine_runtime.protocol import State

#: Limits in milliseconds.
OPEN, CARD, PANEL = 500.0, 150.0, 1000.0
FILES = 500
PARTS = ("logs", "cards", "panel")
#: Like the program of ``log_open``, with one hit at the beginning.
PROGRAM = """\
import sys
sys.stdout.buffer.write(b"a needle in the beginning\\n")
line = b"%08d loss: 0.1234 - accuracy: 0.9876 - a line of log as training prints it, okay\\n"
written, number = 0, 0
while written < {size}:
    count = max(1, min(10000, ({size} - written) // 88))
    block = b"".join(line % (number + i) for i in range(count))
    sys.stdout.buffer.write(block)
    written, number = written + len(block), number + count
    if number % 100000 == 0:
        sys.stdout.buffer.write(b"Epoch done: checkpoint written\\n")
print("RuntimeError: CUDA out of memory")
print("the end")
"""
#: Runs a command of JupyterLab and waits until an element has a text; milliseconds to the frame
#: after that.
COMMAND = """async ([command, args, selector, text]) => {
  const began = performance.now();
  const stands = new Promise(resolve => {
    const look = () => {
      for (const node of document.querySelectorAll(selector)) {
        if (node.offsetParent !== null && node.textContent.includes(text)) {
          observer.disconnect();
          requestAnimationFrame(() => resolve(performance.now() - began));
          return;
        }
      }
    };
    const observer = new MutationObserver(look);
    const words = { childList: true, subtree: true, characterData: true, attributes: true };
    observer.observe(document.body, words);
  });
  void window.jupyterapp.commands.execute(command, args);
  return await stands;
}"""
CLOSE = "() => window.jupyterapp.shell.currentWidget.close()"
#: Records when Enter was pressed, a hit was marked, and the number of matches was shown.
SEARCH = """() => {
  const root = document.querySelector('.jp-Submarine-log');
  const found = { began: null, hit: null, count: null };
  root.addEventListener('keydown', event => {
    if (event.key === 'Enter') {
      Object.assign(found, { began: event.timeStamp, hit: null, count: null });
    }
  }, true);
  const look = (name, there) => {
    if (found.began !== null && found[name] === null && there) {
      found[name] = -1;
      requestAnimationFrame(() => { found[name] = performance.now() - found.began; });
    }
  };
  new MutationObserver(() => {
    look('hit', root.querySelector('.jp-Submarine-log-lines mark') !== null);
    look('count', /of [\\d,]+$/.test(root.querySelector('.jp-Submarine-log-count').textContent));
  }).observe(root, { childList: true, subtree: true, characterData: true });
  window.benchmarkFound = found;
}"""
#: From the kernel's message with an output to the frame after the output is in the page.
OUTPUTS = """() => {
  const panel = window.jupyterapp.shell.currentWidget;
  const found = [];
  let began = null;
  panel.sessionContext.session.kernel.anyMessage.connect((_, { msg, direction }) => {
    if (direction === 'recv' && msg.header.msg_type === 'display_data') {
      began = performance.now();
    }
  });
  const selector = '.jp-Submarine-card, .jp-RenderedHTML';
  const known = new Set();
  new MutationObserver(() => {
    for (const node of panel.node.querySelectorAll(selector)) {
      if (!known.has(node) && node.textContent.includes(window.benchmarkJob)) {
        known.add(node);
        const since = began;
        requestAnimationFrame(() => found.push(performance.now() - since));
      }
    }
  }).observe(panel.node, { childList: true, subtree: true, characterData: true });
  window.benchmarkFound = found;
}"""


def logs(at: Rig, chosen: argparse.Namespace, said: Report) -> None:
    """Open the two logs alternately, then search in the large one."""
    began = time.monotonic()
    large = at.submit(PROGRAM.format(size=chosen.megabytes * 1_000_000), "large")
    small = at.submit(PROGRAM.format(size=1000), "small")
    small.wait_success(PATIENCE)
    large.wait_success(600)
    print(f"a log of {chosen.megabytes} MB was written in {time.monotonic() - began:.0f} s")
    at.desk.open_lab()
    took: dict[str, list[float]] = {large.id: [], small.id: []}
    for number in range(2 * chosen.runs):
        job = large.id if number % 2 == 0 else small.id
        words = ["submarine:logs", {"job": job}, ".jp-Submarine-log-row", "the end"]
        took[job].append(at.desk.page.evaluate(COMMAND, words))
        at.desk.page.evaluate(CLOSE)
    # The first one loads the code of the front end too.
    middle = {job: statistics.median(times[1:]) for job, times in took.items()}
    against = ("one of 1 kB", middle[small.id])
    said.add(
        f"a log of {chosen.megabytes} MB at its end", middle[large.id], bar=OPEN, against=against
    )
    said.add("the same, the first of its page", took[large.id][0], bar=OPEN)
    search(at, large.id, said)
    if chosen.screenshot:
        at.desk.page.screenshot(path=chosen.screenshot)


def search(at: Rig, job: str, said: Report) -> None:
    """Search in the large log from its end: a near hit, a far hit, and all hits."""
    page = at.desk.page
    log = at.desk.open_log(job)
    page.evaluate(SEARCH)
    field = log.node.get_by_role("searchbox", name="Search the log")
    for name, words in (
        ("at the end", "CUDA out of memory"),
        ("frequent", "Epoch done"),
        ("at the beginning, 1 GB away", "a needle in the beginning"),
    ):
        grep = _grep(at, job, words)
        log.node.get_by_role("button", name="Follow").click()
        field.fill(words)
        field.press("Enter")
        page.wait_for_function("() => window.benchmarkFound.hit > 0")
        page.wait_for_function("() => window.benchmarkFound.count > 0")
        found = page.evaluate("() => window.benchmarkFound")
        said.add(f"first hit, {name}", found["hit"], against=("grep over all", grep))
        said.add("all its matches counted", found["count"], against=("grep over all", grep))


def _grep(at: Rig, job: str, words: str) -> float:
    """Return the milliseconds that ``grep`` needs for the files of a job's log."""
    files = [path for path in at.lab.scratch.rglob("*") if path.is_file() and job in str(path)]
    large = [str(path) for path in files if path.stat().st_size > 1 << 16]
    began = time.monotonic()
    subprocess.run(["grep", "-c", words, *large], check=False, capture_output=True)
    return 1000 * (time.monotonic() - began)


def cards(at: Rig, chosen: argparse.Namespace, said: Report) -> None:
    """Show outputs in new pages, alternating card and HTML."""
    job = at.submit("print('for its card')", "carded")
    job.wait_success(PATIENCE)
    data = mimebundle(job.view())
    data.pop("text/plain")
    paths = {}
    for name in ("card", "html"):
        kept = {k: v for k, v in data.items() if (k == MIME_TYPE) == (name == "card")}
        paths[name] = at.lab.scratch / f"{name}.json"
        paths[name].write_text(json.dumps(kept))
    cell = (
        "import json\nfrom IPython.display import display\ndisplay(json.load(open({!r})), raw=True)"
    )
    cells = {name: cell.format(str(path)) for name, path in paths.items()}
    took: dict[str, list[float]] = {name: [] for name in ("card", "card again", "html")}
    for number in range(chosen.runs):
        order = ("card", "card", "html")
        notebook = at.lab.write(f"cards-{number}.ipynb", *(cells[name] for name in order))
        # A browser with an empty cache.
        desk = new_desk(at.browser, at.lab)
        desk.open(notebook)
        desk.page.evaluate("id => { window.benchmarkJob = id; }", job.id)
        desk.page.evaluate(OUTPUTS)
        for index, name in enumerate(("card", "card again", "html")):
            desk.run_cell(index)
            desk.page.wait_for_function(f"() => window.benchmarkFound.length > {index}")
            took[name].append(desk.page.evaluate("() => window.benchmarkFound.at(-1)"))
        desk.shut_down_kernel()
        desk.page.context.close()
    middle = {name: statistics.median(times) for name, times in took.items()}
    against = ("the same as HTML", middle["html"])
    said.add("the first card of a page, median", middle["card"], bar=CARD, against=against)
    said.add("the first card of a page, most", max(took["card"]))
    said.add("one more card, median", middle["card again"], against=against)


class ManyJobs:
    """A simulated cluster and an index with many jobs of the user."""

    def __init__(self, jobs: int, running: int) -> None:
        self.jobs, self.running = jobs, running
        self.rm = ResourceManager()

    def prepare(self, scratch: Path) -> Mapping[str, str]:
        """Write the index and the cluster's configuration; return the server's variables."""
        conf = scratch / "conf"
        conf.mkdir()
        for name, key, value in (
            ("core-site", "fs.defaultFS", "hdfs://127.0.0.1:1"),
            ("yarn-site", "yarn.resourcemanager.webapp.address", f"127.0.0.1:{self.rm.port}"),
        ):
            entry = f"<property><name>{key}</name><value>{value}</value></property>"
            (conf / f"{name}.xml").write_text(f"<configuration>{entry}</configuration>")
        rows = []
        for number in range(self.jobs):
            runs = number % (self.jobs // self.running) == 0
            rows.append(known(number, State.RUNNING if runs else State.SUCCEEDED))
            if runs:
                identity = str((rows[-1].handle or {})["application_id"])
                self.rm.apps[identity] = rows[-1].job_id
        index = scratch / "state" / "jobs.sqlite"
        JobStore(index).put(rows[0])
        fill(index, rows)
        return {
            "SUBMARINE_BACKEND": "yarn",
            "SUBMARINE_HADOOP_CONF_DIR": str(conf),
            "HADOOP_USER_NAME": USER,
        }


def panel(at: Rig, chosen: argparse.Namespace, said: Report) -> None:
    """Show the panel in new pages, and a folder with as many files."""
    many = at.lab.notebooks / "many"
    many.mkdir()
    for number in range(FILES):
        (many / f"file-{number:05d}.txt").touch()
    took: dict[str, list[float]] = {"panel": [], "files": []}
    for _ in range(chosen.runs):
        desk = new_desk(at.browser, at.lab)
        desk.open_lab()
        words: list[Any] = ["filebrowser:go-to-path", {"path": "many"}]
        words += [".jp-DirListing-item", "file-00000"]
        took["files"].append(desk.page.evaluate(COMMAND, words))
        words = ["submarine:jobs", {}, "#submarine-jobs-panel [role=option]", "digits"]
        took["panel"].append(desk.page.evaluate(COMMAND, words))
        desk.page.get_by_text(f"{chosen.jobs} jobs").wait_for()
        if chosen.screenshot:
            desk.page.screenshot(path=chosen.screenshot.with_stem("panel"))
        desk.page.context.close()
    middle = {name: statistics.median(times) for name, times in took.items()}
    against = (f"Lab's list of {FILES} files", middle["files"])
    said.add(
        f"the panel with {chosen.jobs} jobs, median", middle["panel"], bar=PANEL, against=against
    )
    said.add("the panel, the server's first", took["panel"][0], bar=PANEL)


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--running", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5, help="times that each is opened")
    chosen = parser.parse_args()
    said = Report()
    if {"logs", "cards"} & set(chosen.only):
        with rig(chosen.minicluster) as at:
            if "cards" in chosen.only:
                cards(at, chosen, said)
            if "logs" in chosen.only:
                logs(at, chosen, said)
    if "panel" in chosen.only:
        with rig(None, ManyJobs(chosen.jobs, chosen.running).prepare) as at:
            panel(at, chosen, said)
    said.finish(chosen)


if __name__ == "__main__":
    main()
