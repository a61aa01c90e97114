"""The client against what Azkaban replies by its documents, its errors and its odd cases."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
import tenacity

from submarine_jobs.errors import UsageError
from submarine_workflows.azkaban.api import (
    Azkaban,
    AzkabanError,
    Connection,
    LogFollower,
    NoProjectError,
    SessionFile,
    Settings,
    UnconfirmedError,
    UnreachableError,
    connection as connection_module,
)
from submarine_workflows.azkaban.submission import start
from tests.azkaban import server as servers
from tests.azkaban.replies import JETTY, LOGIN_PAGE, Reply, broken
from tests.waiting import until

FLOW = 'nodes: [{name: one, type: command, config: {command: "echo <b>&amp; grüße 北京"}}]\n'


def packed(flow: str = FLOW, name: str = "nightly") -> bytes:
    from submarine_workflows.azkaban.project import Project

    files = {f"{name}.flow": flow.encode(), "p.project": b"azkaban-flow-version: 2.0\n"}
    return Project(name, (name,), files).to_zip()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[servers.Azkaban]:
    with servers.running(tmp_path / "azkaban", kill_seconds=5) as running:
        yield running


@pytest.fixture
def kept(tmp_path: Path, server: servers.Azkaban) -> SessionFile:
    return SessionFile(tmp_path / "state", Settings(server.url, "alice"))


Client = Callable[..., Azkaban]


@pytest.fixture
def client(server: servers.Azkaban, kept: SessionFile, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(connection_module, "RETRY_WAIT", tenacity.wait_none())

    def make(password: str = "correct horse", **changes: str) -> Azkaban:
        settings = Settings(**{"url": server.url, "user": "alice", **changes})
        return Azkaban(Connection(settings, lambda: password, kept))

    return make


@pytest.mark.slow
def test_the_whole_way(server: servers.Azkaban, client: Client) -> None:
    azkaban = client()
    with pytest.raises(NoProjectError, match=r"Project nightly doesn't exist\."):
        azkaban.flows("nightly")
    assert azkaban.create("nightly", "words") is True
    assert azkaban.create("nightly", "words") is False
    uploaded = azkaban.upload("nightly", packed(), "nightly.zip")
    assert uploaded.version == "1"
    assert azkaban.flows("nightly").flows == ("nightly",)
    schedule = azkaban.schedule("nightly", "nightly", "0 30 2 ? * *")
    found = azkaban.scheduled(uploaded.project_id, "nightly")
    assert found is not None
    assert (found.schedule_id, found.cron) == (schedule, "0 30 2 ? * *")
    assert azkaban.unschedule(schedule) == "flow nightly removed from Schedules."
    assert azkaban.scheduled(uploaded.project_id, "nightly") is None

    started = azkaban.execute("nightly", "nightly", {"date": "x y"})
    assert "queued successfully" in started.message
    until(lambda: azkaban.execution(started.execid).over)
    execution = azkaban.execution(started.execid)
    (node,) = execution.nodes
    assert (execution.status, node.status, node.path) == ("SUCCEEDED", "SUCCEEDED", "one")
    text = azkaban.log(started.execid, "one", 0).text
    assert "\n<b>&amp; grüße 北京\n" in text  # entities of the transport gone, the log's own kept
    (past,) = azkaban.past("nightly", "nightly", 10)
    assert (past.execid, past.status, past.user) == (started.execid, "SUCCEEDED", "alice")
    assert azkaban.running("nightly", "nightly") == []
    assert server.requests.count("POST / login") == 1


@pytest.mark.slow
def test_a_log_is_read_by_the_offsets_of_bytes(
    server: servers.Azkaban, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from submarine_workflows.azkaban.api import LogFollower

    monkeypatch.setattr("submarine_workflows.azkaban.api.client.LOG_PIECE", 61)
    azkaban = client()
    azkaban.create("nightly", "words")
    azkaban.upload("nightly", packed(), "nightly.zip")
    execid = azkaban.execute("nightly", "nightly").execid
    follower = LogFollower(azkaban, execid, "one", interval=0.05)
    server.fault("fetchexecflow", *[Reply("<html>starts</html>", 503, "text/html")] * 9)
    text = "".join(follower.follow())
    (log,) = server.executions[execid].find("one").logs  # type: ignore[union-attr]
    assert text == log.read_text()
    assert follower.status in ("SUCCEEDED", "RUNNING")
    with pytest.raises(UsageError, match="no node `two`"):
        list(LogFollower(azkaban, execid, "two").read_current())


@pytest.mark.slow
def test_a_log_that_is_between_executor_and_database_is_waited_for(
    server: servers.Azkaban, client: Client
) -> None:
    azkaban = client()
    azkaban.create("nightly", "words")
    azkaban.upload("nightly", packed(), "nightly.zip")
    execid = azkaban.execute("nightly", "nightly").execid
    until(lambda: azkaban.execution(execid).over)
    gone = Reply(JETTY.format(500), 500, "text/html")
    server.fault("fetchExecJobLogs", gone, gone, gone)
    whole = "".join(LogFollower(azkaban, execid, "one", interval=0.01).read_current())
    assert whole.endswith("grüße 北京\n")
    server.fault("fetchExecJobLogs", gone, gone)
    assert "".join(LogFollower(azkaban, execid, "one", interval=0.01).follow()) == whole
    server.fault("fetchExecJobLogs", *[gone] * 20)
    with pytest.raises(UnreachableError, match="Azkaban failed at the log of one"):
        list(LogFollower(azkaban, execid, "one", interval=0.01).read_current())


def test_a_session_is_kept_for_the_next_command(
    server: servers.Azkaban, client: Client, kept: SessionFile, tmp_path: Path
) -> None:
    client().create("a", "words")
    client(password="not asked for").create("b", "words")
    assert server.requests.count("POST / login") == 1
    (file,) = (tmp_path / "state").rglob("*.session")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text() == next(iter(server.sessions))
    assert "correct" not in file.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("call", ["get", "change", "upload"])
def test_a_session_that_is_over_is_renewed_once(
    server: servers.Azkaban, client: Client, call: str
) -> None:
    azkaban = client()
    azkaban.create("nightly", "words")
    server.sessions.clear()
    if call == "get":
        assert azkaban.flows("nightly").flows == ()
    elif call == "change":
        assert azkaban.create("other", "words")
    else:
        assert azkaban.upload("nightly", packed(), "x.zip").version == "1"
    assert server.requests.count("POST / login") == 2


@pytest.mark.slow
def test_the_login_page_is_a_session_that_is_over(server: servers.Azkaban, client: Client) -> None:
    azkaban = client()
    azkaban.create("nightly", "words")
    page = Reply(LOGIN_PAGE, kind="text/html")
    server.fault("fetchprojectflows", page)
    assert azkaban.flows("nightly").flows == ()
    server.fault("fetchprojectflows", page, page)
    with pytest.raises(AzkabanError, match="accepts the login and rejects the session"):
        azkaban.flows("nightly")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "kind", "sentence"),
    [
        (Reply({"error": "Permission denied. Need READ access.", "projectId": 3}),
         AzkabanError, "Permission denied. Need READ access."),
        (Reply({"error": "<font color=\"red\"> Error: a &lt;b&gt; </font>", "projectId": 3}, 403),
         AzkabanError, ": Error: a <b>."),
        (Reply(json.dumps({"projectId": 3, "flows": []}), kind="text/html"), None, ""),
        (Reply({"projectId": "3", "flows": [{"flowId": "a"}]}), None, ""),
        (Reply(JETTY.format(500), 500, "text/html"), UnreachableError, "HTTP 500: Error 500"),
        (Reply(JETTY.format(404), 404, "text/html"), UnreachableError, "no Azkaban at this"),
        (Reply("<html>proxy wants a login</html>", 401, "text/html"), AzkabanError, "HTTP 401"),
        (Reply("hello", 200, "text/plain"), UnreachableError, "is not Azkaban's (HTTP 200: hello)"),
        (Reply("[1, 2]"), UnreachableError, "is not Azkaban's"),
        (Reply({"flows": []}), UnreachableError, "has no number `projectId`"),
        (Reply("", 302, headers={"Location": "http://evil.example.org/manager"}),
         UnreachableError, "redirects requests to http://evil.example.org:80"),
        (Reply("", 302, headers={"Location": "https://127.0.0.1:1/manager"}),
         UnreachableError, "redirects requests to https://127.0.0.1:1"),
        (Reply("", 302, headers={"Location": "http://[x/manager"}),
         UnreachableError, "with an invalid redirect"),
        (Reply("", 302, headers={"Location": "/manager?ajax=fetchprojectflows"}), None, ""),
    ],
)  # fmt: skip
def test_odd_replies(
    server: servers.Azkaban,
    client: Client,
    reply: Reply,
    kind: type[Exception] | None,
    sentence: str,
) -> None:
    azkaban = client()
    azkaban.create("nightly", "words")
    server.fault("fetchprojectflows", reply)
    if reply.status == 302 and kind is None:
        # The way on has no session any more, as it is a page's; what comes is the usual.
        server.fault("fetchprojectflows", Reply({"projectId": 1, "flows": []}))
    if kind is None:
        assert azkaban.flows("nightly").project_id
        return
    with pytest.raises(kind) as refused:
        azkaban.flows("nightly")
    assert sentence in str(refused.value)
    assert "session.id" not in str(refused.value)


def test_a_page_for_people_is_no_session_that_is_over(
    server: servers.Azkaban, client: Client
) -> None:
    azkaban = client()
    azkaban.create("nightly", "words")
    # As an address with /index or a wrong path behind it has it: every call is sent to the page.
    server.fault("fetchprojectflows", Reply("", 302, headers={"Location": f"{server.url}/index"}))
    server.fault("", Reply(LOGIN_PAGE, kind="text/html"))
    with pytest.raises(UnreachableError, match=r"redirects calls to the web page /index"):
        azkaban.flows("nightly")
    assert server.requests.count("POST / login") == 1


def test_https_where_only_http_is_spoken(server: servers.Azkaban) -> None:
    settings = Settings(server.url.replace("http:", "https:"), "alice")
    with pytest.raises(UnreachableError, match=r"does not support https.* Use its https port"):
        Azkaban(Connection(settings, lambda: "")).flows("nightly")


@pytest.mark.slow
def test_what_an_upload_may_be_answered_with(server: servers.Azkaban, client: Client) -> None:
    azkaban = client()
    with pytest.raises(AzkabanError, match=r"Project 'nightly doesn't exist\."):  # HTTP 410
        azkaban.upload("nightly", packed(), "x.zip")
    azkaban.create("nightly", "words")
    loop = "nodes: [{name: a, type: noop, dependsOn: [a]}]"
    with pytest.raises(AzkabanError, match="Cycles found"):  # HTTP 500 with a version
        azkaban.upload("nightly", packed(loop), "x.zip")
    with pytest.raises(AzkabanError, match=r"File extension 'tar' unrecognized\."):  # HTTP 400
        azkaban.upload("nightly", packed(), "x.tar")
    server.projects["nightly"].locked = True
    with pytest.raises(AzkabanError, match=r"UPLOAD LOCK on\."):  # HTTP 403
        azkaban.upload("nightly", packed(), "x.zip")
    server.fault("upload", Reply({"projectId": "7", "version": "2", "warn": "a<br/>b"}))
    assert azkaban.upload("nightly", packed(), "x.zip").warning == "a b."


@pytest.mark.slow
def test_what_a_run_may_be_answered_with(server: servers.Azkaban, client: Client) -> None:
    azkaban = client()
    with pytest.raises(AzkabanError, match="Project 'nightly' doesn't exist"):
        azkaban.execute("nightly", "nightly")
    azkaban.create("nightly", "words")
    azkaban.upload("nightly", packed(), "x.zip")
    with pytest.raises(AzkabanError, match="Flow 'other' cannot be found"):
        azkaban.execute("nightly", "other")
    # Both an error and a number.
    server.fault("executeFlow", Reply({"error": "Error submitting flow x. no", "execid": 12}))
    with pytest.raises(AzkabanError, match=r"flow x\. no\. Its id would have been 12"):
        azkaban.execute("nightly", "nightly")
    azkaban.upload(
        "nightly",
        packed("nodes: [{name: one, type: command, config: {command: sleep 600}}]"),
        "x.zip",
    )
    first = azkaban.execute("nightly", "nightly").execid
    assert azkaban.running("nightly", "nightly") == [first]
    with pytest.raises(AzkabanError, match="already running"):
        azkaban.execute("nightly", "nightly")
    second = azkaban.execute("nightly", "nightly", concurrentOption="ignore")
    assert f"already running with exec id {first}" in second.message
    for execid in (first, second.execid):
        azkaban.cancel(execid)
        until(lambda execid=execid: azkaban.execution(execid).over)  # type: ignore[misc]
    assert azkaban.execution(first).status == "KILLED"
    with pytest.raises(AzkabanError, match=f"Execution {first} of flow nightly isn't running"):
        azkaban.cancel(first)
    with pytest.raises(AzkabanError, match="Cannot find execution '99'"):
        azkaban.execution(99)


@pytest.mark.slow
def test_what_a_schedule_may_be_answered_with(server: servers.Azkaban, client: Client) -> None:
    azkaban = client()
    with pytest.raises(AzkabanError, match="Project nightly does not exist"):
        azkaban.schedule("nightly", "nightly", "0 30 2 ? * *")
    azkaban.create("nightly", "words")
    with pytest.raises(AzkabanError, match="Flow nightly cannot be found"):
        azkaban.schedule("nightly", "nightly", "0 30 2 ? * *")
    azkaban.upload("nightly", packed(), "x.zip")
    with pytest.raises(AzkabanError, match="can not be parsed to quartz cron"):
        azkaban.schedule("nightly", "nightly", "30 2 * * *")
    with pytest.raises(AzkabanError, match="Schedule with ID 99 does not exist"):
        azkaban.unschedule(99)


@pytest.mark.slow
def test_what_only_asks_is_asked_again(server: servers.Azkaban, client: Client) -> None:
    azkaban = client()
    azkaban.create("nightly", "words")
    away = Reply("<html>away</html>", 503, "text/html")
    server.fault("fetchprojectflows", away, broken(), away)
    assert azkaban.flows("nightly").flows == ()
    server.fault("fetchprojectflows", *[away] * 4)
    with pytest.raises(UnreachableError, match="temporarily unavailable"):
        azkaban.flows("nightly")


def test_a_change_is_asked_for_once(server: servers.Azkaban, client: Client) -> None:
    azkaban = client()
    azkaban.create("nightly", "words")
    azkaban.upload("nightly", packed(), "x.zip")
    server.fault("upload", broken())
    with pytest.raises(UnconfirmedError, match="the request may have been executed"):
        azkaban.upload("nightly", packed(), "x.zip")
    server.fault("executeFlow", broken())
    with pytest.raises(UnconfirmedError, match="No execution of nightly is running"):
        start(azkaban, "nightly", "nightly")
    server.fault("executeFlow", Reply("<html>away</html>", 502, "text/html"))
    with pytest.raises(UnreachableError, match="HTTP 502"):
        start(azkaban, "nightly", "nightly")
    assert server.requests.count("POST /executor executeFlow") == 2
    assert server.requests.count("POST /manager upload") == 2


def test_a_run_whose_answer_was_lost_is_found(server: servers.Azkaban, client: Client) -> None:
    azkaban = client()
    azkaban.create("nightly", "words")
    sleep = "nodes: [{name: one, type: command, config: {command: sleep 600}}]"
    azkaban.upload("nightly", packed(sleep), "x.zip")

    def started_and_lost(state: servers.Azkaban) -> Reply:
        state.executeFlow({"project": "nightly", "flow": "nightly"}, "alice")
        return broken()

    server.fault("executeFlow", started_and_lost)
    with pytest.raises(UnconfirmedError) as unsure:
        start(azkaban, "nightly", "nightly")
    (execid,) = server.executions
    assert f"nightly is running as azkaban:{execid}." in str(unsure.value)
    azkaban.cancel(execid)


@pytest.mark.slow
def test_no_server_at_the_address() -> None:
    settings = Settings("http://127.0.0.1:9", "alice")
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:9 cannot be reached: .*refused"):
        Azkaban(Connection(settings, lambda: "x")).flows("nightly")


def test_an_untrusted_certificate(tmp_path: Path) -> None:
    import http.server
    import ssl
    import threading

    from submarine_jobs.access import create_secret

    made = create_secret("test")
    (tmp_path / "c.pem").write_text(made.key + made.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "c.pem")
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        settings = Settings(f"https://127.0.0.1:{server.server_port}", "alice")
        with pytest.raises(UnreachableError, match="is not trusted: "):
            Azkaban(Connection(settings, lambda: "x")).flows("nightly")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.slow
def test_password_and_session_are_in_no_log_address_or_error(
    server: servers.Azkaban, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    azkaban = client()
    azkaban.create("nightly", "words")
    azkaban.flows("nightly")
    (session,) = server.sessions
    assert "correct" not in caplog.text
    assert "fetchprojectflows" in caplog.text
    assert session not in caplog.text
    assert all("correct" not in address for address, _ in server.raw)
    server.sessions.clear()
    with pytest.raises(AzkabanError) as refused:
        client(password="wrong horse").flows("nightly")
    assert str(refused.value) == (
        "Azkaban refused the login of alice: Incorrect Login. Username/Password not found."
    )
    too_many = "Potential DDoS found, the number of sessions reached allowed limit (20)."
    server.fault("login", Reply({"error": too_many}))
    with pytest.raises(AzkabanError, match="Potential DDoS found"):
        client().flows("nightly")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/manager?ajax=fetchprojectflows&project=x&colour=red"),
        ("GET", "/manager?ajax=fetchProjects"),
        ("POST", "/manager?ajax=fetchprojectflows&project=x"),
        ("POST", "/executor?ajax=executeFlow&project=x"),
    ],
)
def test_the_server_of_these_tests_notes_what_no_document_says(
    tmp_path: Path, method: str, path: str
) -> None:
    with servers.running(tmp_path) as state:
        state.sessions["s"] = "alice"
        requests.request(method, f"{state.url}{path}&session.id=s", timeout=60).close()
        assert len(state.violations) == 1
        state.violations.clear()
