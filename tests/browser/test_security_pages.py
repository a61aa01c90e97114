"""What a hostile job, log, page or notebook gets in a real browser: shown as text, or refused."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from playwright.sync_api import Page, expect

from submarine_jobs.display import MIME_TYPE
from tests.browser.calls import API
from tests.browser.jobs import Jobs
from tests.browser.lab import BASE, Lab
from tests.browser.lab_page import LabPage

EVIL = "<img src=x onerror='window.pwned=1'><script>window.pwned=2</script>"
LINK = "javascript:window.pwned=3"
TIMEOUT = 90_000
SLEEP = "import time\nprint('up', flush=True)\ntime.sleep(300)"


def harmless(page: Page) -> None:
    """No injected script has run."""
    page.wait_for_timeout(300)
    assert page.evaluate("() => window.pwned") is None


def asked(lab_page: LabPage) -> list[tuple[str, str]]:
    """Requests of a page from now on: method and address."""
    found: list[tuple[str, str]] = []
    lab_page.page.on("request", lambda request: found.append((request.method, request.url)))
    return found


def test_a_hostile_job_is_text(lab_page: LabPage) -> None:
    program = f'%%submarine --only\nprint("{EVIL}", flush=True)\nraise ValueError("{EVIL}")'
    name = "<img src=x onerror=window.pwned=1>"
    cells = (program, f"%submarine run '{name}' --backend local")
    lab_page.open(lab_page.lab.write("hostile.ipynb", *cells))
    lab_page.run_all()
    card = lab_page.card()
    expect(card.get_by_text("FAILED").first).to_be_visible(timeout=TIMEOUT)
    expect(card.get_by_text("window.pwned").first).to_be_visible()
    assert card.locator("img[src=x], script").count() == 0
    card.get_by_role("button", name="Logs").click()
    expect(lab_page.page.locator(".jp-Submarine-log").get_by_text("onerror").first).to_be_visible()
    lab_page.command("submarine:jobs")
    lab_page.shot("hostile-job")
    assert lab_page.page.locator("[class*=jp-Submarine] script, img[src=x]").count() == 0
    harmless(lab_page.page)


def hostile_outputs(job: str, good: dict[str, Any]) -> list[dict[str, Any]]:
    """Forged outputs of our MIME type."""
    record = {**good["record"], "name": EVIL, "detail": EVIL, "links": {"YARN": LINK, EVIL: LINK}}
    failure = {
        "type": EVIL,
        "message": EVIL,
        "text": EVIL,
        "frames": [{"file": EVIL, "line": "NaN", "function": EVIL, "code": EVIL, "cell": EVIL}],
    }
    return [
        {**good, "name": EVIL, "state": EVIL, "record": {**record, "failure": failure}},
        {**good, "job_id": "../../../../api/kernels", "record": record},
        {**good, "job_id": EVIL},
        {**good, "job_id": 7, "record": [1, {"tasks": 3}]},
        {**good, "record": {**record, "tasks": "no list", "phases": {"a": 1}, "logs": 1e308}},
        {**good, "record": {**record, "tasks": [{"task": EVIL, "log_url": LINK}] * 3000}},
        {"job_id": job},
        {"job_id": job, "job_dir": "http://evil.example/", "record": None},
        {},
    ]


def test_an_untrusted_notebook_shows_only_text_and_changes_nothing(
    lab_page: LabPage, jobs: Jobs
) -> None:
    job = jobs.start(SLEEP, "victim")
    jobs.wait(job, lambda state: state.value == "RUNNING")
    good = jobs.output(job)["data"][MIME_TYPE]
    attributes = (
        "data-commandlinker-command='submarine:cancel' "
        f'data-commandlinker-args=\'{{"job":"{job}"}}\' '
        f"data-command='submarine:cancel' data-job='{job}' data-submarine-job='{job}' "
        "class='jp-Submarine-button jp-mod-warn' onclick='window.pwned=4'"
    )
    trap = f"<button {attributes}>press me</button><a {attributes} href='{LINK}'>or me</a>"
    html = new_output("display_data", data={"text/html": f"{EVIL}<div>{trap}</div>"})
    cells = [
        new_markdown_cell(f"Hello {trap}"),
        new_code_cell("1", outputs=[html]),
        *(
            new_code_cell(
                "2",
                outputs=[
                    new_output("display_data", data={MIME_TYPE: data, "text/plain": "the text"})
                ],
            )
            for data in hostile_outputs(job, good)
        ),
    ]
    seen = asked(lab_page)
    lab_page.open(lab_page.lab.write("untrusted.ipynb", *cells))
    page = lab_page.page
    expect(page.locator(".jp-Submarine-card").first).to_be_visible(timeout=TIMEOUT)
    page.wait_for_timeout(1500)
    for label in ("press me", "or me"):
        for element in page.get_by_text(label, exact=True).all():
            element.click(force=True, no_wait_after=True)
    page.wait_for_timeout(500)
    harmless(page)
    lab_page.shot("untrusted-notebook")
    assert page.locator(".jp-Dialog").count() == 0
    assert not [url for method, url in seen if method != "GET" and "submarine" in url]
    strangers = [
        url for _, url in seen if not url.startswith((lab_page.lab.origin, "data:", "blob:"))
    ]
    assert strangers == []
    assert not [url for _, url in seen if "/api/kernels" in url and "submarine" in url]
    links = page.evaluate(
        "() => [...document.querySelectorAll('[class*=jp-Submarine] a')].map(a => a.href)"
    )
    assert all(link.startswith(("http:", "https:")) for link in links)
    assert not jobs.session.job(job).record().state.ended
    assert lab_page.errors == []


@pytest.fixture(scope="module")
def stranger() -> Iterator[str]:
    """A page of another origin on this machine."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"<!doctype html><title>stranger</title><p>hello"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    # The same site for cookies: that is what makes another port of the machine dangerous.
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


TRY = """async ([url, socket]) => {
  const found = {};
  try {
    const answer = await fetch(url, {credentials: 'include'});
    found.read = await answer.text();
  } catch { found.read = null; }
  try {
    await fetch(url + '/cancel', {
      method: 'POST', credentials: 'include', mode: 'no-cors', body: '{"why": "evil"}'
    });
  } catch { /* nothing to read */ }
  found.said = await new Promise(done => {
    const opened = new WebSocket(socket);
    opened.onmessage = () => done('a message');
    opened.onclose = opened.onerror = () => done('closed');
    setTimeout(() => done('silence'), 5000);
  });
  return found;
}"""


def test_a_page_of_another_origin_gets_nothing(
    lab_page: LabPage, jobs: Jobs, stranger: str
) -> None:
    job = jobs.start(SLEEP, "coveted")
    jobs.wait(job, lambda state: state.value == "RUNNING")
    lab_page.page.goto(stranger)
    url = f"{lab_page.lab.url}{API}jobs/{job}"
    socket = f"ws://127.0.0.1:{lab_page.lab.port}{BASE}{API}channel"
    found = lab_page.page.evaluate(TRY, [url, socket])
    assert found == {"read": None, "said": "closed"}
    lab_page.page.wait_for_timeout(1000)
    assert not jobs.session.job(job).record().state.ended


def test_without_a_login_the_page_is_the_login(
    new_lab_page: Callable[..., LabPage], jobs: Jobs, lab: Lab
) -> None:
    job = jobs.finished("print('secret')", "private")
    lab_page = new_lab_page(login=False)
    answer = lab_page.page.goto(f"{lab.url}submarine/tensorboard/{job}/")
    assert answer is not None
    assert "/login" in lab_page.page.url
    answer = lab_page.page.goto(f"{lab.url}{API}jobs/{job}")
    assert answer is not None
    assert answer.status in (401, 403)
    assert "secret" not in lab_page.page.content()
