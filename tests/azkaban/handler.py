"""HTTP as Azkaban speaks it: sessions, forms, and which call takes which fields.

What a client did that no document says is noted; what a call does is ``server``'s.
"""

from __future__ import annotations

import email.parser
import email.policy
import re
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from tests.azkaban.replies import JETTY, LOGIN_PAGE, Reply, made

if TYPE_CHECKING:
    from tests.azkaban.server import Azkaban

#: method, path and name of each call -> fields it must have, fields it may have.
CALLS = {
    ("POST", "/", "login"): ({"username", "password"}, set()),
    ("POST", "/manager", "create"): ({"name", "description"}, set()),
    ("POST", "/manager", "upload"): ({"project", "file"}, set()),
    ("GET", "/manager", "fetchprojectflows"): ({"project"}, set()),
    ("GET", "/manager", "fetchFlowExecutions"): ({"project", "flow", "start", "length"}, set()),
    ("POST", "/executor", "executeFlow"): (
        {"project", "flow"},
        {
            *("disabled", "failureAction", "failureActionOverride"),
            *("concurrentOption", "pipelineLevel"),
        },
    ),
    ("GET", "/executor", "getRunning"): ({"project", "flow"}, set()),
    ("GET", "/executor", "fetchexecflow"): ({"execid"}, set()),
    ("GET", "/executor", "fetchExecJobLogs"): (
        {"execid", "jobId", "offset", "length"},
        {"attempt"},
    ),
    ("GET", "/executor", "cancelFlow"): ({"execid"}, set()),
    ("POST", "/schedule", "scheduleCronFlow"): (
        {"projectName", "flow", "cronExpression"},
        {"failureAction", "failureActionOverride", "concurrentOption", "pipelineLevel"},
    ),
    ("GET", "/schedule", "fetchSchedule"): ({"projectId", "flowId"}, set()),
    ("POST", "/schedule", "removeSched"): ({"scheduleId"}, set()),
}
OVERRIDE = re.compile(r"flowOverride\[[^\[\]]+\]")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    azkaban: Azkaban

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self._serve("GET", b"")

    def do_POST(self) -> None:
        self._serve("POST", self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _serve(self, method: str, body: bytes) -> None:
        reply = self._reply(method, body)
        if reply is None:  # the connection breaks
            self.close_connection = True
            self.connection.close()
            return
        data = reply.encoded()
        self.send_response(reply.status)
        if reply.kind:
            self.send_header("Content-Type", reply.kind)
        self.send_header("Content-Length", str(len(data)))
        for key, value in reply.headers.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)

    def _reply(self, method: str, body: bytes) -> Reply | None:
        azkaban, address = self.azkaban, urlsplit(self.path)
        query = dict(parse_qsl(address.query, keep_blank_values=True))
        form = self._form(body)
        given = {**query, **form}
        name = str(given.pop("ajax", given.pop("action", "")))
        azkaban.requests.append(f"{method} {address.path} {name}")
        azkaban.raw.append((self.path, body))
        if "password=" in address.query:
            words = "Login error. Must pass username and password in request body"
            return Reply(words, kind="")
        if self.headers.get("Cookie"):
            azkaban.violations.append(f"{name}: a cookie, which wants a CSRF token")
        faults = azkaban.take_fault(name)
        if faults is not None:
            return None if faults.status == 0 else faults
        session = str(given.pop("session.id", ""))
        if name != "login" and session not in azkaban.sessions:
            return self._no_session(method)
        call = CALLS.get((method, address.path, name))
        if call is None:
            azkaban.violations.append(f"{method} {self.path} {name}: no such call")
            return Reply(JETTY.format(404), 404, "text/html")
        needed, allowed = call
        for key in given:
            if key not in needed | allowed and not (
                name in ("executeFlow", "scheduleCronFlow") and OVERRIDE.fullmatch(key)
            ):
                azkaban.violations.append(f"{name}: unknown field {key}")
        if missing := needed - set(given):
            azkaban.violations.append(f"{name}: without {sorted(missing)}")
            return Reply(JETTY.format(500), 500, "text/html")
        with azkaban.lock:
            return getattr(azkaban, name)(given, azkaban.sessions.get(session, ""))

    def _no_session(self, method: str) -> Reply:
        kind = self.headers.get("Content-Type", "")
        if kind.startswith("multipart/"):
            return Reply("Login error. Need username and password", kind="")
        if method == "GET":
            return Reply({"error": "session"})
        if self.headers.get("X-Requested-With") == "XMLHttpRequest":
            words = "Invalid Session. Need to re-login"
            return made({"status": "error", "message": words, "action": "login"})
        return Reply(LOGIN_PAGE, kind="text/html")

    def _form(self, body: bytes) -> dict[str, Any]:
        kind = self.headers.get("Content-Type", "")
        if kind.startswith("application/x-www-form-urlencoded"):
            return dict(parse_qsl(body.decode(), keep_blank_values=True))
        if not kind.startswith("multipart/form-data"):
            return {}
        parser = email.parser.BytesParser(policy=email.policy.HTTP)
        message = parser.parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
        found: dict[str, Any] = {}
        for part in message.iter_parts():
            name = part.get_param("name", header="content-disposition")
            content = part.get_payload(decode=True)
            assert isinstance(name, str)
            assert isinstance(content, bytes)
            filename = part.get_filename()
            if filename is None:
                found[name] = content.decode()
            else:
                found[name] = (filename, part.get_content_type(), content)
        return found
