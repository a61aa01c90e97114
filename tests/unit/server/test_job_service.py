"""The server's service without a server: lanes, sharing, failures, origins of pages."""

from __future__ import annotations

import asyncio
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from tornado.httputil import HTTPHeaders

from submarine_jobs.errors import (
    ClusterError,
    ConfigError,
    JobNotFoundError,
    NoClusterError,
    RefusedError,
    StorageError,
    UsageError,
)
from submarine_server.base import ApiError, api_error
from submarine_server.base.origin import parse_origin, rejection_reason, server_origin
from submarine_server.service import CallLimiter, JobService
from submarine_server.service.job_service import BusyError


@pytest.mark.slow
def test_a_lane_is_as_wide_as_it_says_and_no_caller_waits_for_ever() -> None:
    gate, running = threading.Event(), []

    def hang() -> None:
        running.append(1)
        gate.wait(60)

    async def scene() -> None:
        lane = CallLimiter(2, max_waiting=3)
        calls = [asyncio.ensure_future(lane.run(hang, 2)) for _ in range(5)]
        while len(running) < 2:
            await asyncio.sleep(0.01)
        with pytest.raises(BusyError):
            await lane.run(hang, 2)
        for call in calls:
            with pytest.raises(TimeoutError):
                await call
        with pytest.raises(TimeoutError):  # those that were left behind keep their places
            await lane.run(hang, 0.1)
        assert len(running) == 2
        gate.set()
        assert await lane.run(lambda: 7, 60) == 7

    asyncio.run(scene())


def test_what_hangs_in_the_cluster_does_not_hold_up_this_machine() -> None:
    gate = threading.Event()

    async def scene() -> float:
        service = JobService()
        hung = [asyncio.ensure_future(service.call(gate.wait, 120, timeout=120)) for _ in range(40)]
        await asyncio.sleep(0.1)
        began = time.monotonic()
        assert await service.call_local(lambda: 5) == 5
        took = time.monotonic() - began
        gate.set()
        await asyncio.gather(*hung, return_exceptions=True)
        return took

    assert asyncio.run(scene()) < 60


@pytest.mark.slow
def test_one_call_for_all_that_ask_and_errors_are_not_kept() -> None:
    async def scene() -> None:
        service, calls = JobService(), []

        async def make() -> int:
            calls.append(1)
            await asyncio.sleep(0.05)
            if len(calls) == 2:
                raise ClusterError("away")
            return len(calls)

        assert (
            await asyncio.gather(*(service.call_shared("x", make, 60) for _ in range(50)))
            == [1] * 50
        )
        assert await service.call_shared("x", make, 60) == 1
        await asyncio.sleep(0.05)
        with pytest.raises(ClusterError):
            await service.call_shared("x", make, 0.01)  # what was kept is older
        assert await service.call_shared("x", make, 60) == 3

    asyncio.run(scene())


@pytest.mark.slow
def test_a_cancelled_waiter_does_not_cancel_the_others() -> None:
    async def scene() -> None:
        service = JobService()

        async def make() -> str:
            await asyncio.sleep(0.2)
            return "there"

        impatient = asyncio.ensure_future(service.call_shared("x", make, 1))
        patient = asyncio.ensure_future(service.call_shared("x", make, 1))
        await asyncio.sleep(0.05)
        impatient.cancel()
        assert await patient == "there"

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (JobNotFoundError("no"), 404, "not_found"),
        (UsageError("no"), 400, "usage"),
        (ConfigError("no"), 502, "config"),
        (RefusedError("no"), 409, "refused"),
        (NoClusterError("no"), 502, "no_cluster"),
        (ClusterError("no"), 502, "unreachable"),
        (StorageError("Cannot read hdfs://x: permission denied."), 403, "forbidden"),
        (ClusterError("the ResourceManager does not answer: timed out"), 504, "timeout"),
        (TimeoutError(), 504, "timeout"),
        (FileNotFoundError("x"), 404, "not_found"),
        (ApiError(413, "no"), 413, "too_large"),
    ],
)
def test_every_failure_has_its_status(error: Exception, status: int, code: str) -> None:
    found = api_error(error)
    assert found is not None
    assert (found.status_code, found.code) == (status, code)
    assert set(found.body()) == {"error", "fix", "code"}


def test_a_fault_of_ours_is_no_answer_and_words_are_bounded() -> None:
    assert api_error(ZeroDivisionError()) is None
    found = api_error(ClusterError("x\n\x1b[31m" * 5000))
    assert found is not None
    assert len(found.error) <= 600
    assert "\x1b" not in found.error
    assert "\n" not in found.error


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("http://a.example", ("http", "a.example", 80)),
        ("HTTPS://A.example:443", ("https", "a.example", 443)),
        ("http://[::1]:8888", ("http", "::1", 8888)),
        ("null", None),
        ("", None),
        ("file://", None),
        ("http://a.example/", None),
        ("http://a.example@evil.example", None),
        ("http://a.example:port", None),
        ("http://a.example:99999", None),
    ],
)
def test_origins_are_read_whole_or_not_at_all(text: str, origin: Any) -> None:
    assert parse_origin(text) == origin


def test_a_proxy_may_say_that_it_ended_tls() -> None:
    headers = {"Host": "hub.example", "X-Forwarded-Proto": "https,http"}
    assert server_origin("http", headers) == ("https", "hub.example", 443)
    assert server_origin("http", {"Host": "hub.example:80"}) == ("http", "hub.example", 80)


def _asked(method: str = "GET", allow: str = "", pattern: str = "", **headers: str) -> str:
    sent = HTTPHeaders({name.replace("_", "-"): value for name, value in headers.items()})
    sent.setdefault("Host", "jupyter.example:8888")
    request = SimpleNamespace(headers=sent, protocol="http", method=method)
    handler: Any = SimpleNamespace(request=request, allow_origin=allow, allow_origin_pat=pattern)
    return rejection_reason(handler)


OWN = "http://jupyter.example:8888"


def test_own_pages_scripts_and_links_may() -> None:
    assert not _asked()
    assert not _asked("POST")  # a script; a browser's form is XSRF's matter
    assert not _asked("POST", Origin=OWN, Sec_Fetch_Site="same-origin")
    assert not _asked(Upgrade="websocket", Origin=OWN)
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert not _asked(Sec_Fetch_Dest="document", **link)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://jupyter.example"},
        {"Origin": "https://jupyter.example:8888"},
        {"Origin": "http://jupyter.example:88888"},
        {"Origin": "http://jupyter.example:8888.evil.example"},
        {"Origin": "http://evil.example/" + OWN},
        {"Origin": "null"},
        {"Origin": ""},
        {"Upgrade": "websocket"},
        {"Upgrade": "WebSocket", "Origin": "http://evil.example"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"},
        {"Sec_Fetch_Site": "nonsense"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_pages_may_not(method: str, headers: dict[str, str]) -> None:
    assert _asked(method, **headers)


def test_a_link_does_not_post() -> None:
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert _asked("POST", Sec_Fetch_Dest="document", **link)


def test_the_owner_may_allow_others_whole() -> None:
    other = {"Origin": "https://other.example", "Sec_Fetch_Site": "cross-site"}
    assert not _asked("POST", allow="https://other.example", **other)
    assert not _asked("POST", pattern=r"https://other\.example", **other)
    assert _asked("POST", allow="https://other.example.org", **other)
    assert _asked("POST", pattern=r"https://other", **other)
