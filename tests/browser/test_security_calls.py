"""Access control of each call: no token, another origin, no XSRF token, paths that lead elsewhere.

By requests, with no browser: a browser would not even send some of them.
"""

from __future__ import annotations

import re
from http.cookies import SimpleCookie

import pytest

from submarine_server.extension import routes
from tests.browser.calls import API
from tests.browser.jobs import Jobs
from tests.browser.lab import BASE, Lab

READ = (
    "health",
    "jobs",
    "jobs/{job}",
    "jobs/{job}/tasks",
    "jobs/{job}/events",
    "jobs/{job}/metrics",
    "jobs/{job}/cells",
    "jobs/{job}/script",
    "jobs/{job}/models",
    "jobs/{job}/lineage",
    "jobs/{job}/logs",
    "jobs/{job}/log?task=worker:0&stream=stdout",
    "jobs/{job}/log/search?task=worker:0&stream=stdout&q=x",
    "jobs/{job}/log/times?task=worker:0&stream=stdout",
    "jobs/{job}/command",
    "cluster",
    "complete?words=ru",
    "channel",
)
WRITE = (
    "jobs",
    "jobs/{job}/cancel",
    "jobs/{job}/rerun",
    "jobs/{job}/models",
    "jobs/{job}/log/page",
)
TENSORBOARD = "submarine/tensorboard/{job}/"
EVIL = "http://evil.example"


@pytest.fixture(scope="module")
def job(jobs: Jobs) -> str:
    """A job that has ended."""
    return jobs.finished("print('secret result')", "guarded")


@pytest.fixture(scope="module")
def cookies(lab: Lab) -> dict[str, str]:
    """The cookies of a user who logged in with a browser."""
    answer = lab.ask(f"lab?token={lab.token}", token=False)
    found = SimpleCookie(answer.headers.get("set-cookie", ""))
    assert found, answer
    # http.client folds several headers into one; the login cookie is the one that counts.
    return {name: morsel.value for name, morsel in found.items()}


def test_every_address_of_the_server_extension_is_looked_at_here(job: str) -> None:
    known = [*(BASE + API + path for path in (*READ, *WRITE)), BASE + TENSORBOARD]
    paths = [path.format(job=job).partition("?")[0] for path in known]
    for pattern, *_ in routes():
        text = pattern if isinstance(pattern, str) else pattern.pattern
        below = re.compile(re.escape(BASE.rstrip("/")) + text.removesuffix("$") + "$")
        assert any(below.match(path) for path in paths), f"no test calls {text}"


@pytest.mark.parametrize("path", READ)
def test_nothing_is_returned_without_a_login(lab: Lab, job: str, path: str) -> None:
    answer = lab.ask(API + path.format(job=job), token=False)
    assert answer.status in (401, 403), answer
    assert b"secret" not in answer.body


@pytest.mark.parametrize("path", WRITE)
def test_nothing_is_done_without_a_login(lab: Lab, job: str, path: str) -> None:
    assert lab.ask(API + path.format(job=job), "POST", token=False, body={}).status in (401, 403)


@pytest.mark.parametrize("path", READ)
@pytest.mark.parametrize("origin", [EVIL, "null", "http://127.0.0.1.evil.example"])
def test_another_origin_reads_nothing(lab: Lab, job: str, path: str, origin: str) -> None:
    answer = lab.ask(API + path.format(job=job), headers={"Origin": origin})
    assert answer.status == 403, answer
    assert answer.headers.get("access-control-allow-origin") not in ("*", origin)


def test_the_right_host_with_another_port_or_scheme_is_another_origin(lab: Lab, job: str) -> None:
    for origin in (f"http://127.0.0.1:{lab.port + 1}", f"https://127.0.0.1:{lab.port}"):
        assert lab.ask(f"{API}jobs/{job}", headers={"Origin": origin}).status == 403
    assert lab.ask(f"{API}jobs/{job}", headers={"Origin": lab.origin}).status == 200


@pytest.mark.parametrize("path", WRITE)
def test_a_cookie_alone_does_nothing(
    lab: Lab, job: str, path: str, cookies: dict[str, str]
) -> None:
    cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    path = API + path.format(job=job)
    for more in ({}, {"Origin": EVIL}, {"Sec-Fetch-Site": "cross-site"}):
        headers = {"Cookie": cookie, "Content-Type": "text/plain", **more}
        answer = lab.ask(path, "POST", token=False, headers=headers, body={})
        # For a page of another origin jupyter-server itself says that there is nothing.
        assert answer.status in ((403, 404) if "Origin" in more else (403,)), (more, answer)


TRICKS = (
    "..",
    "../..",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e%2f%2e%2e%2f",
    "....//....//etc",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "file:%2f%2f%2fetc%2fpasswd",
    "http:%2f%2fevil.example%2f",
    "a%00b",
    "%5c..%5c..",
    "%c0%ae%c0%ae%2f",
    "*",
    "-rf",
    "%0d%0aSet-Cookie:%20x=1",
    "%F0%9F%92%A9",
    "x" * 3000,
)


@pytest.mark.parametrize("trick", TRICKS)
def test_a_job_id_is_never_a_path(lab: Lab, trick: str) -> None:
    for path in (f"jobs/{trick}", f"jobs/{trick}/log?task=worker:0&stream=stdout"):
        refused(lab.ask(API + path))
    refused(lab.ask(f"submarine/tensorboard/{trick}/"))


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("name", ["task", "attempt", "stream"])
def test_names_of_logs_are_never_paths(lab: Lab, job: str, trick: str, name: str) -> None:
    words = {"task": "worker:0", "attempt": "e1-a1", "stream": "stdout", name: trick}
    query = "&".join(f"{key}={value}" for key, value in words.items())
    for path in ("log", "log/search", "log/times"):
        answer = lab.ask(f"{API}jobs/{job}/{path}?{query}&q=root")
        refused(answer)
        assert b"root:" not in answer.body


@pytest.mark.parametrize(
    "query",
    [
        "offset=-99999999999999999999&limit=10",
        "offset=1e9",
        "offset=abc",
        "limit=-1",
        "limit=999999999999999999999999",
        "offset=%00",
        "limit=0x10",
    ],
)
def test_nonsense_numbers_are_refused_or_bounded(lab: Lab, job: str, query: str) -> None:
    answer = lab.ask(f"{API}jobs/{job}/log?task=worker:0&stream=stdout&{query}")
    assert answer.status in (200, 400, 404, 416), answer
    assert len(answer.body) < 1 << 22


def test_an_expression_that_never_ends_is_stopped(lab: Lab, jobs: Jobs) -> None:
    slow = jobs.finished("print('a' * 60 + '!')", "slow-search")
    path = f"jobs/{slow}/log/search?task=worker:0&stream=stdout&regex=1&q=(a%2B)%2B%24"
    answer = lab.ask(API + path, timeout=20)
    assert answer.status in (200, 400), answer
    assert lab.ask(f"{API}health", timeout=5).status == 200


def test_a_log_is_never_a_page(lab: Lab, jobs: Jobs) -> None:
    evil = jobs.finished("print('<script>alert(document.domain)</script>')", "page")
    answer = lab.ask(f"{API}jobs/{evil}/log?task=worker:0&stream=stdout&offset=0&limit=1000")
    assert answer.status == 200
    assert b"<script>" in answer.body
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    download = lab.ask(f"{API}jobs/{evil}/log?task=worker:0&stream=stdout&download=1")
    assert download.headers["content-disposition"].startswith("attachment")


def refused(answer: object) -> None:
    """Nothing was found, and the server has not failed."""
    status = getattr(answer, "status", 0)
    # A path that a client would normalise may lead to the page that Lab has for every address.
    assert status in (302, 400, 403, 404), answer
    assert "root:x:" not in str(getattr(answer, "body", ""))
    assert "x=1" not in getattr(answer, "headers", {}).get("set-cookie", "")
