"""A real Zeppelin server as a process, in a directory of its own; see ``rest`` and ``page``."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from submarine_minicluster.machine import Identity, find_java, find_marked, free_port, terminate
from tests.waiting import until
from tests.zeppelin.server_jars import ensure_jars

GROUPS = ("submarine", "echo")
#: A JVM on a busy machine; it takes 4 to 18 s.
TO_START = 180.0
_MARK = "SUBMARINE_TEST_ZEPPELIN"
_MAIN = "org.apache.zeppelin.server.ZeppelinServer"
_LOG4J = """
log4j.rootLogger=INFO, file
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.file={path}
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=%5p [%d] (%t %F[%M]:%L) - %m%n
"""

_SHIRO = """
[users]
{users}
[roles]
admin = *
[main]
sessionManager = org.apache.shiro.web.session.mgt.DefaultWebSessionManager
securityManager.sessionManager = $sessionManager
shiro.loginUrl = /api/login
[urls]
/api/version = anon
/** = authc
"""


class Zeppelin:
    """One server; everything that it reads or writes lies below ``home``.

    Parameters
    ----------
    environment
        For the server, and so for its interpreters.
    properties
        Of Zeppelin's own configuration.
    """

    def __init__(
        self, home: Path, environment: dict[str, str] | None = None, **properties: str
    ) -> None:
        self.home = home
        for name in ("conf", "interpreter", "notebook", "war", "angular", "temp", "logs", "run"):
            (home / name).mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.properties = {
            "zeppelin.home": str(home),
            "zeppelin.conf.dir": str(home / "conf"),
            "zeppelin.interpreter.dir": str(home / "interpreter"),
            "zeppelin.notebook.dir": str(home / "notebook"),
            "zeppelin.war": str(home / "war"),
            "zeppelin.angular.war": str(home / "angular"),
            "zeppelin.war.tempdir": str(home / "temp"),
            "zeppelin.search.enable": "false",
            "zeppelin.server.addr": "127.0.0.1",
            "zeppelin.server.port": str(self.port),
            "zeppelin.run.mode": "local",
            "zeppelin.interpreter.include": ",".join(GROUPS),
            "zeppelin.interpreter.group.default": "submarine",
            "zeppelin.notebook.cron.enable": "true",
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
        own = ("SUBMARINE_", "HADOOP_", "ZEPPELIN_", "JUPYTER_")
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(own)},
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "SUBMARINE_STATE_DIR": str(home / "state"),
            "LC_ALL": "C.UTF-8",
            "ZEPPELIN_LOCAL_IP": "127.0.0.1",
            # Without it the server reads its input, and ends with it.
            "ZEPPELIN_IDENT_STRING": "test",
            "ZEPPELIN_LOG_DIR": str(home / "logs"),
            _MARK: str(home),
            **(environment or {}),
        }
        self.process: subprocess.Popen[bytes] | None = None
        self._browser = urllib.request.build_opener()

    # Its life

    def install(self, **settings: str) -> None:
        """Install the group ``submarine`` by its own command."""
        words = [f"--set={name}={value}" for name, value in settings.items()]
        command = [str(Path(sys.executable).with_name("submarine")), "zeppelin", "install"]
        done = subprocess.run(
            [*command, str(self.home), *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def install_echo(self, **properties: str) -> None:
        """Install the group of ``echo_group``; property names have __ for a full stop."""
        folder = self.home / "interpreter" / "echo"
        folder.mkdir(exist_ok=True)
        program = Path(__file__).with_name("echo_group.py")
        entry = {
            "group": "echo",
            "name": "echo",
            "className": "echo",
            "defaultInterpreter": True,
            "properties": {
                name.replace("__", "."): {
                    "propertyName": name.replace("__", "."),
                    "defaultValue": value,
                    "type": "string",
                }
                for name, value in properties.items()
            },
            "runner": {"linux": f"{sys.executable} {program}"},
        }
        (folder / "interpreter-setting.json").write_text(json.dumps([entry]))

    def admit(self, **passwords: str) -> None:
        """Let in these users only, all of them administrators."""
        users = "\n".join(f"{name} = {word}, admin" for name, word in passwords.items())
        (self.home / "conf" / "shiro.ini").write_text(_SHIRO.format(users=users))

    def start(self) -> None:
        jars = ensure_jars()
        (self.home / "conf" / "log4j.properties").write_text(
            _LOG4J.format(path=self.home / "logs" / "server.log")
        )
        command = [
            str(find_java().binary),
            "-Xmx512m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
        ]
        command += [f"-D{name}={value}" for name, value in self.properties.items()]
        command += [f"-Dlog4j.configuration=file:{self.home}/conf/log4j.properties"]
        command += ["-cp", f"{self.home}/conf:{jars}/*", _MAIN]
        with (self.home / "logs" / "out").open("ab") as out:
            self.process = subprocess.Popen(
                command, env=self.environment, cwd=self.home, stdout=out, stderr=out
            )
        deadline = time.monotonic() + TO_START
        while not self._is_ready():
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        try:
            return bool(self.call("GET", "version")["status"] == "OK")
        except (OSError, http.client.HTTPException, ValueError):
            return False

    def stop(self) -> None:
        """As its own stop does: by SIGTERM."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def kill(self) -> None:
        """As a machine's lack of memory does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        """End all, whatever the tests did."""
        try:
            self.stop()
        finally:
            terminate(self.processes(), grace=5)

    def processes(self) -> list[Identity]:
        """All living processes that come from this server, itself included."""
        return [one for one in find_marked(_MARK, str(self.home)) if one.alive]

    def interpreters(self, group: str = "") -> list[Identity]:
        """Processes of interpreter groups, by the beginning of their group's id."""
        found = []
        for one in self.processes():
            words = one.command_line
            if "-i" in words and words[words.index("-i") + 1].startswith(group):
                found.append(one)
        return found

    def await_(self, condition: Callable[[], Any], timeout: float = 90) -> None:
        """Wait until something has become true."""
        until(condition, self.log, timeout)

    def log(self) -> str:
        """The ends of all its logs."""
        paths = sorted((self.home / "logs").iterdir())
        return "\n".join(
            f"== {path.name}\n{path.read_text(errors='replace')[-6000:]}" for path in paths
        )

    # Its REST interface

    def call(self, method: str, path: str, body: Any = None, timeout: float = 120) -> Any:
        """One call; the answer's JSON, also of a refusal."""
        data = None if body is None else json.dumps(body).encode()
        return self._send(method, path, data, "application/json", timeout)

    def login(self, user: str, password: str) -> None:
        """Make all calls from now on as this user; of a server with a ``shiro.ini``."""
        self._browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        form = urllib.parse.urlencode({"userName": user, "password": password}).encode()
        answer = self._send("POST", "login", form, "application/x-www-form-urlencoded", 120)
        assert answer["body"]["principal"] == user, answer

    def _send(self, method: str, path: str, data: bytes | None, kind: str, timeout: float) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/{path}",
            method=method,
            data=data,
            headers={"Content-Type": kind},
        )
        try:
            with self._browser.open(request, timeout=timeout) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return json.loads(error.read() or b"{}")

    def note(self, name: str, *paragraphs: tuple[str, str]) -> Note:
        """A new note with paragraphs of titles and texts; saved."""
        made = self.call("POST", "notebook", {"name": name, "notePath": name})["body"]
        note = Note(self, made)
        for title, text in paragraphs:
            note.add(text, title)
        return note

    def setting(self, group: str) -> dict[str, Any]:
        """The settings of a group, as the server has them."""
        found = self.call("GET", "interpreter/setting")["body"]
        return next(one for one in found if one["group"] == group)

    def configure(self, group: str, **changes: Any) -> None:
        """Change ``option`` or values of ``properties`` of a group; restarts it."""
        setting = self.setting(group)
        setting["option"].update(changes.get("option", {}))
        for name, value in changes.get("properties", {}).items():
            setting["properties"][name] = {"name": name, "value": value, "type": "string"}
        body = {key: setting[key] for key in ("option", "properties", "dependencies")}
        answer = self.call("PUT", f"interpreter/setting/{setting['id']}", body)
        assert answer["status"] == "OK", answer

    def restart(self, group: str, note: Note | None = None) -> None:
        """As the button of the page Interpreters does, or that of a note."""
        body = {"noteId": note.id} if note is not None else None
        answer = self.call("PUT", f"interpreter/setting/restart/{self.setting(group)['id']}", body)
        assert answer["status"] == "OK", answer


class Note:
    """A note of the server."""

    def __init__(self, server: Zeppelin, note_id: str) -> None:
        self.server = server
        self.id = note_id
        self.paragraphs: list[str] = []

    def add(self, text: str, title: str = "") -> str:
        """A paragraph at the end; its id."""
        body = {"title": title, "text": text}
        answer = self.server.call("POST", f"notebook/{self.id}/paragraph", body)
        assert answer.get("status") == "OK", f"{answer}\n{self.server.log()}"
        self.paragraphs.append(str(answer["body"]))
        return self.paragraphs[-1]

    def change(self, paragraph: str, text: str, title: str = "") -> None:
        """Another text for a paragraph."""
        body = {"title": title, "text": text}
        self.server.call("PUT", f"notebook/{self.id}/paragraph/{paragraph}", body)

    def begin(self, paragraph: str) -> None:
        """Run a paragraph and do not wait."""
        answer = self.server.call("POST", f"notebook/job/{self.id}/{paragraph}")
        assert answer["status"] == "OK", answer

    def run(self, paragraph: str, timeout: float = 180) -> dict[str, Any]:
        """Run a paragraph to its end; what ``get`` gives then."""
        self.begin(paragraph)
        return self.ended(paragraph, timeout)

    def ended(self, paragraph: str, timeout: float = 180) -> dict[str, Any]:
        """The paragraph as soon as it runs no more."""
        return self.awaited(
            paragraph, lambda now: now["status"] in ("FINISHED", "ERROR", "ABORT"), timeout
        )

    def awaited(self, paragraph: str, condition: Any, timeout: float = 180) -> dict[str, Any]:
        """The paragraph as soon as a condition holds for it."""
        return until(
            lambda: now if condition(now := self.get(paragraph)) else None,
            lambda: f"{self.get(paragraph)}\n{self.server.log()}",
            timeout,
        )

    def cancel(self, paragraph: str) -> None:
        self.server.call("DELETE", f"notebook/job/{self.id}/{paragraph}")

    def get(self, paragraph: str) -> dict[str, Any]:
        """A paragraph as the server has it."""
        answer = self.server.call("GET", f"notebook/{self.id}/paragraph/{paragraph}")
        return dict(answer["body"])

    def saved_status(self, paragraph: str) -> str:
        """The status of a paragraph in the note's file, from which a server starts again."""
        try:
            (file,) = (self.server.home / "notebook").glob(f"*{self.id}.zpln")
            found = json.loads(file.read_text())["paragraphs"]
        except (OSError, ValueError):  # not saved yet, or just now
            return ""
        return next((str(one["status"]) for one in found if one["id"] == paragraph), "")

    def delete(self, paragraph: str) -> None:
        self.server.call("DELETE", f"notebook/{self.id}/paragraph/{paragraph}")


def output_of(paragraph: dict[str, Any]) -> str:
    """All pieces of a paragraph's output, one after the other."""
    results = paragraph.get("results") or {}
    return "\n".join(str(piece.get("data") or "") for piece in results.get("msg") or [])
