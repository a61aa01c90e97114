"""The log view: colours, progress bars, search, errors, follow, filter, download."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from submarine_runtime.protocol import layout
from tests.browser.jobs import Jobs
from tests.browser.lab_page import LabPage, Log

PROGRAM = r"""
import os, sys
print("\x1b[31mred words\x1b[0m and plain ones")
for part in range(101):
    sys.stdout.write(f"\rprogress {part} %")
print()
for n in range(3000):
    print(f"line {n:05d}")
print("ValueError: nonsense at 17")
for n in range(3000, 6000):
    print(f"line {n:05d}")
print("a needle in the hay")
print("<b onclick='window.pwned=1'>not bold</b>")
print("the end", flush=True)
"""
#: Longer than any screen, and than what the view keeps in the page.
LONG = 6000


@pytest.fixture(scope="module")
def job(jobs: Jobs) -> str:
    """A job that has written a log of some length."""
    return jobs.finished(PROGRAM, "logged")


@pytest.fixture
def log(lab_page: LabPage, job: str) -> Log:
    """Its log as a tab."""
    lab_page.open_lab()
    return lab_page.open_log(job)


def test_it_opens_at_the_end_and_goes_to_the_beginning(log: Log, lab_page: LabPage) -> None:
    expect(log.row("the end")).to_be_in_viewport()
    expect(log.node.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "true")
    expect(log.status).to_contain_text("complete")
    assert log.rows.count() < LONG / 4
    expect(log.row("not bold")).to_contain_text("<b onclick=")
    lab_page.shot("log-end")
    log.lines.focus()
    lab_page.page.keyboard.press("Home")
    red = log.row("red words").locator(".jp-Submarine-fg-red")
    expect(red).to_have_text("red words")
    expect(log.row("progress")).to_have_count(1)
    expect(log.row("progress")).to_have_text("progress 100 %")
    lab_page.shot("log-beginning")
    lab_page.page.keyboard.press("End")
    expect(log.row("the end")).to_be_in_viewport()
    assert lab_page.page.evaluate("() => window.pwned") is None
    assert lab_page.errors == []


def test_search_is_the_server_s_and_goes_from_match_to_match(log: Log, lab_page: LabPage) -> None:
    field = log.node.get_by_role("searchbox", name="Search the log")
    field.fill("line 0001")
    field.press("Enter")
    count = log.node.locator(".jp-Submarine-log-count")
    expect(count).to_have_text(re.compile(r"^\d+ of 10$"))
    shown = log.row("line 0001").locator("mark").first
    expect(shown).to_be_in_viewport()
    first = count.text_content()
    field.press("Enter")
    expect(count).not_to_have_text(first or "")
    field.press("Shift+Enter")
    expect(count).to_have_text(first or "")
    lab_page.shot("log-search")
    field.fill("no such words")
    expect(count).to_have_text("no match")
    log.node.get_by_role("button", name="Regular expression").click()
    field.fill("needle|hay$")
    expect(count).to_have_text(re.compile("of 2$|2 matches"))


def test_next_error_finds_it(log: Log, lab_page: LabPage) -> None:
    log.node.get_by_role("button", name="Next error").click()
    expect(log.row("ValueError: nonsense")).to_be_in_viewport()
    lab_page.shot("log-next-error")


def test_follow_stays_where_a_reader_looks(lab_page: LabPage, jobs: Jobs) -> None:
    lab_page.open_lab()
    ticking = "import time\nfor n in range(3000):\n    print(f'tick {n:05d}', flush=True)\n"
    job = jobs.start(ticking + "    time.sleep(0.02)", "ticking")
    log = lab_page.open_log(job)
    lab_page.wait_for(lambda: log.texts()[-1] >= "tick 00100")
    log.lines.evaluate("node => { node.scrollTop = 200; }")
    follow = log.node.get_by_role("button", name="Follow")
    expect(follow).to_have_attribute("aria-pressed", "false")
    top = log.lines.evaluate("node => node.scrollTop")
    lab_page.page.wait_for_timeout(1500)
    assert abs(log.lines.evaluate("node => node.scrollTop") - top) < 40
    follow.click()
    last = log.texts()[-1]
    lab_page.wait_for(lambda: log.texts()[-1] > last)
    last = log.texts()[-1]
    lab_page.wait_for(lambda: log.texts()[-1] > last)
    jobs.session.job(job).cancel("seen enough")


def test_one_task_of_several_and_the_file_of_it(lab_page: LabPage, jobs: Jobs) -> None:
    gang = "import os\nprint('i am', os.environ['SUBMARINE_INDEX'], flush=True)"
    job = jobs.finished(gang, "gang", instances=2, framework="any", policy="all")
    lab_page.open_lab()
    log = lab_page.open_log(job)
    expect(log.row("i am 0")).to_contain_text("worker:0")
    expect(log.row("i am 1")).to_contain_text("worker:1")
    lab_page.shot("log-all-tasks")
    log.node.get_by_role("combobox", name="Task").select_option("worker:1")
    expect(log.row("i am 0")).to_have_count(0)
    expect(log.row("i am 1")).to_be_visible()
    log.node.get_by_role("combobox", name="Stream").select_option("stdout")
    with lab_page.page.expect_download() as download:
        log.node.get_by_role("button", name="Download").click()
    assert "i am 1" in download.value.path().read_text()


#: What XGBoost's tracker prints.
TRACKER = "".join(f"[16:56:0{n}] [{n}]\teval-auc:0.9{n}731\n" for n in range(3))
#: Its process is the agent's; here the chief's program writes to the same file at a sign.
TRACKED = """
import os, time
print("training on", os.environ["SUBMARINE_INDEX"], flush=True)
while not os.path.exists({go!r}):
    time.sleep(0.05)
if os.environ["SUBMARINE_INDEX"] == "0":
    log = os.readlink("/proc/self/fd/1").replace(".stdout.", ".helper.")
    with open(log, "a") as file:
        file.write({lines!r})
while os.path.exists({go!r}):
    time.sleep(0.05)
"""


def test_the_lines_of_the_tracker_appear_and_are_selected(
    lab_page: LabPage, jobs: Jobs, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    source = TRACKED.format(go=str(go), lines=TRACKER)
    job = jobs.start(source, "tracked", instances=2, framework="any", policy="all")
    lab_page.open_lab()
    jobs.wait(job, lambda state: state.value == "RUNNING")
    log = lab_page.open_log(job)
    expect(log.row("training on")).to_have_count(2)
    streams = log.node.get_by_role("combobox", name="Stream")
    options = streams.locator("option")
    expect(options).to_have_text(["Both streams", "stdout", "stderr"])
    go.touch()
    expect(log.row("eval-auc")).to_have_count(3)
    expect(options).to_have_text(["All streams", "stdout", "stderr", "helper"])
    streams.select_option("helper")
    expect(log.rows).to_have_text(TRACKER.splitlines())
    expect(log.status).to_contain_text("live")
    lab_page.shot("log-helper")
    go.unlink()
    expect(log.status).to_contain_text("complete")
    with lab_page.page.expect_download() as download:
        log.node.get_by_role("button", name="Download").click()
    assert download.value.path().read_text() == TRACKER
    assert lab_page.errors == []


def test_the_log_of_64_tasks_ends_with_the_last_task(lab_page: LabPage, jobs: Jobs) -> None:
    job = jobs.finished("print('alone')", "wide-gang")
    lines = [[f"task {task:02d} line {line} {'.' * 60}" for line in range(8)] for task in range(64)]
    add_logs(jobs, job, ["\n".join(some) + "\n" for some in lines])
    lab_page.open_lab()
    log = lab_page.open_log(job)
    end = log.row("task 63 line 7")
    expect(end).to_be_in_viewport()
    expect(log.status).to_contain_text("complete")
    lab_page.shot("log-64-tasks")
    said = [f"worker:{task}{line}" for task, some in enumerate(lines) for line in some]
    assert log.collected(said[0]) == said
    log.lines.focus()
    for key in ("Home", "End"):
        lab_page.page.keyboard.press(key)
        expect(log.row("task 00 line 0") if key == "Home" else end).to_be_in_viewport()


def test_lines_of_64_tasks_and_both_streams_are_in_order_of_time(
    lab_page: LabPage, jobs: Jobs
) -> None:
    """Task 0 writes last; one line is an error whose word is coloured in parts."""
    job = jobs.finished("print('alone')", "wide-clock")
    lines = {
        100 * line + 64 - task + offset: (task, stream, f"{task:02d} {stream} {line} {'.' * 60}")
        for task in range(64)
        for line in range(6)
        for offset, stream in ((0, "stdout"), (0.5, "stderr"))
    }
    task, stream, text = lines[239.5]
    lines[239.5] = task, stream, f"\x1b[1mER\x1b[31mROR\x1b[0m {text}"
    texts: dict[str, list[str]] = {}
    marks: dict[str, list[str]] = {}
    for moment, (task, stream, text) in sorted(lines.items()):
        name = f"worker:{task}/e1-a1/{stream}"
        texts.setdefault(name, []).append(text)
        marks.setdefault(name, []).append(
            f"{len(''.join(texts[name])) + len(texts[name])} {moment}"
        )
    write_logs(
        jobs,
        job,
        {name: "\n".join(some) + "\n" for name, some in texts.items()},
        {name: "\n".join(some) + "\n" for name, some in marks.items()},
    )
    lab_page.open_lab()
    log = lab_page.open_log(job)
    expect(log.row("00 stderr 5")).to_be_in_viewport()
    expect(log.status).to_contain_text("complete")
    lab_page.shot("log-64-tasks-by-time")
    said = [f"worker:{task}{text}" for _, (task, _, text) in sorted(lines.items())]
    plain = [re.sub(r"\x1b\[[0-9]*m", "", line) for line in said]
    assert log.collected(plain[0]) == plain
    log.node.get_by_role("button", name="Next error").click()
    error = log.row("ERROR 25 stderr 2")
    expect(error).to_be_in_viewport()
    expect(error.locator("mark").first).to_have_text("ER")
    lab_page.shot("log-64-tasks-error")
    shown = log.texts()
    begin = plain.index(shown[0])
    assert shown == plain[begin : begin + len(shown)]
    log.lines.focus()
    for key, row in (("Home", "63 stdout 0"), ("End", "00 stderr 5")):
        lab_page.page.keyboard.press(key)
        expect(log.row(row)).to_be_in_viewport()
    assert lab_page.errors == []


def add_logs(jobs: Jobs, job_id: str, texts: list[str]) -> None:
    """Give an ended job, which no server has looked at yet, the logs of so many tasks."""
    names = [f"worker:{index}/e1-a1/stdout" for index in range(len(texts))]
    write_logs(jobs, job_id, dict(zip(names, texts, strict=True)))


def write_logs(
    jobs: Jobs, job_id: str, texts: dict[str, str], indexes: dict[str, str] | None = None
) -> None:
    """Give an ended job, which no server has looked at yet, these logs and their indexes."""
    job = jobs.session.job(job_id)
    lengths = {}
    for name, text in texts.items():
        task, _, stream = name.split("/")
        place = Path(job.directory.file(layout.log_directory(task, 1, 1)))
        place.mkdir(parents=True, exist_ok=True)
        (place / layout.segment_name(stream, 0)).write_text(text)
        if indexes is not None:
            (place / layout.index_name(stream)).write_text(indexes[name])
        lengths[name] = len(text)
    known = job.index_entry()
    assert known is not None
    assert known.record is not None
    jobs.session.store.put(replace(known, record=replace(known.record, logs=lengths)))


def test_long_lines_wrap_when_asked(lab_page: LabPage, jobs: Jobs) -> None:
    job = jobs.finished("print('wide ' * 400)", "wide")
    lab_page.open_lab()
    log = lab_page.open_log(job)
    row = log.row("wide").first
    height = "node => node.getBoundingClientRect().height"
    before = row.evaluate(height)
    log.node.get_by_role("button", name="Wrap").click()
    assert row.evaluate(height) > 3 * before


def test_the_download_is_the_file(log: Log, lab_page: LabPage) -> None:
    log.node.get_by_role("combobox", name="Stream").select_option("stdout")
    expect(log.status).to_contain_text("complete")
    with lab_page.page.expect_download() as download:
        log.node.get_by_role("button", name="Download").click()
    said = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True).stdout
    assert download.value.path().read_bytes() == said


def test_marked_lines_stay_while_more_come_and_are_copied(lab_page: LabPage, jobs: Jobs) -> None:
    ticking = "import time\nfor n in range(3000):\n    print(f'tick {n:05d}', flush=True)\n"
    lab_page.open_lab()
    job = jobs.start(ticking + "    time.sleep(0.005)", "marked")
    log = lab_page.open_log(job)
    lab_page.wait_for(lambda: log.texts()[-1] >= "tick 00100")
    marked = log.lines.evaluate(
        """node => {
          const rows = [...node.querySelectorAll('.jp-Submarine-log-row')].slice(-20, -17);
          const range = document.createRange();
          range.setStart(rows[0], 0);
          range.setEnd(rows[2], rows[2].childNodes.length);
          document.getSelection().removeAllRanges();
          document.getSelection().addRange(range);
          window.addEventListener('copy', () => {
            window.copied = document.getSelection().toString();
          });
          return rows.map(row => row.textContent);
        }"""
    )
    follow = log.node.get_by_role("button", name="Follow")
    expect(follow).to_have_attribute("aria-pressed", "false")
    # More than the page holds while it follows: what is marked would be gone.
    lab_page.page.wait_for_timeout(1500)
    lab_page.page.keyboard.press("Control+C")
    lab_page.page.wait_for_function("() => window.copied !== undefined")
    copied = lab_page.page.evaluate("() => window.copied")
    assert [line for line in copied.splitlines() if line] == marked
    jobs.session.job(job).cancel("seen enough")


def publish(file: Path, value: dict[str, Any]) -> None:
    """As the agent does it: at no time is there half a file."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps(value))
    new.replace(file)


def test_the_delay_is_shown_while_the_port_does_not_answer(lab_page: LabPage, jobs: Jobs) -> None:
    ticking = "import time\nfor n in range(3000):\n    print(f'tick {n:05d}', flush=True)\n"
    job = jobs.start(ticking + "    time.sleep(0.2)", "unheard")
    jobs.wait(job, lambda state: state.value == "RUNNING")
    live = Path(jobs.session.job(job).directory.file(layout.LIVE))
    lab_page.wait_for(live.exists, 60)
    address = json.loads(live.read_text())
    with socket.socket() as closed:
        # No process listens at the port, and no other process gets it.
        closed.bind(("127.0.0.1", 0))
        publish(live, {**address, "port": closed.getsockname()[1]})
        lab_page.open_lab()
        lab_page.command("submarine:logs", job=job)
        log = Log(lab_page.page)
        expect(log.status).to_contain_text("No live connection to the job", timeout=60_000)
        expect(log.status).to_contain_text(re.compile(r"\d.* behind"))
        # What the job has shipped comes all the same.
        expect(log.rows.first).to_be_visible(timeout=60_000)
        lab_page.shot("log-behind")
        publish(live, address)
        expect(log.status).to_contain_text("· live", timeout=60_000)
    seen = log.collected("tick 00000")
    expect(log.row("tick 00000")).to_have_count(1)
    numbers = [int(line.split()[1]) for line in seen]
    assert numbers == list(range(len(numbers)))
    jobs.session.job(job).cancel("seen enough")
