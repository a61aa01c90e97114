"""A real JupyterHub with Unix users, its proxy, and the servers of its users on this machine.

Everything that they read or write lies below one scratch directory, and all processes are gone when
the hub is closed, even after ``kill -9``.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil

from submarine_kernel.kernelspecs import install_kernel
from submarine_minicluster.machine import find_marked, free_port, terminate
from tests.browser.calls import API, Answer, call
from tests.browser.lab import MARK, PATIENCE, ROOT
from tests.hub.namespace import Account, Namespace
from tests.waiting import until

PROXY = Path(sys.prefix) / "share/configurable-http-proxy/node_modules/configurable-http-proxy"
FIRST_UID = 64101
#: All users have this password: the tests are about what follows the login.
PASSWORD = secrets.token_hex(8)


class Hub:
    """One hub.

    Parameters
    ----------
    scratch
        An empty directory, below directories that all users may enter.
    environment
        Variables of the servers of all users (``Spawner.environment``).
    configuration
        More lines of ``jupyterhub_config.py``.
    needed
        More paths that the hub or its users read.
    """

    def __init__(
        self,
        scratch: Path,
        users: tuple[str, ...],
        environment: Mapping[str, str],
        configuration: str = "",
        needed: Iterable[Path] = (),
    ) -> None:
        self.scratch = scratch
        scratch.chmod(0o755)
        self.accounts = {
            name: Account(name, FIRST_UID + number, scratch / "home" / name)
            for number, name in enumerate(users)
        }
        self.port = free_port()
        self.origin = f"http://127.0.0.1:{self.port}"
        self.log = scratch / "hub.log"
        self._admin = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None
        needed = (Path(sys.base_prefix), Path(sys.prefix), ROOT, scratch, *needed)
        self.namespace = Namespace(scratch, self.accounts.values(), needed)
        self._directory = scratch / "hub"
        self._directory.mkdir(mode=0o700)
        for account in self.accounts.values():
            account.home.mkdir(parents=True)
            os.chown(account.home, account.uid, account.uid)
            # As on many machines: the directories of the product themselves must be private.
            account.home.chmod(0o755)
        self.temporary = scratch / "tmp"
        self.temporary.mkdir()
        self.temporary.chmod(0o1777)
        install_kernel(prefix=str(scratch / "prefix"))
        self._write_configuration(environment, configuration)

    def _write_configuration(self, environment: Mapping[str, str], more: str) -> None:
        node = shutil.which("node", path=f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}")
        proxy = [node, str(PROXY / "bin/configurable-http-proxy")]
        marks = {name: value for name, value in os.environ.items() if name == "SUBMARINE_TEST_RUN"}
        server = [f"{sys.prefix}/bin/jupyterhub-singleuser"]
        values: dict[str, Any] = {
            "JupyterHub.bind_url": self.origin,
            "JupyterHub.hub_bind_url": f"http://127.0.0.1:{free_port()}",
            "JupyterHub.db_url": f"sqlite:///{self._directory}/jupyterhub.sqlite",
            "JupyterHub.cookie_secret_file": str(self._directory / "cookie_secret"),
            "JupyterHub.authenticator_class": "shared-password",
            "SharedPasswordAuthenticator.user_password": PASSWORD,
            "Authenticator.allowed_users": set(self.accounts),
            "JupyterHub.spawner_class": "localprocess",
            "JupyterHub.services": [{"name": "test", "api_token": self._admin}],
            "JupyterHub.load_roles": [
                {
                    "name": "test",
                    "services": ["test"],
                    "scopes": ["admin:users", "admin:servers", "tokens"],
                }
            ],
            "ConfigurableHTTPProxy.command": proxy,
            "ConfigurableHTTPProxy.api_url": f"http://127.0.0.1:{free_port()}",
            "ConfigurableHTTPProxy.pid_file": str(self._directory / "proxy.pid"),
            "Spawner.cmd": server,
            # The tests give commands to JupyterLab.
            "Spawner.args": ["--LabApp.expose_app_in_browser=True"],
            "Spawner.default_url": "/lab",
            "Spawner.start_timeout": int(PATIENCE),
            "Spawner.http_timeout": int(PATIENCE),
            "Spawner.environment": {
                **marks,
                MARK: str(self.scratch),
                "TMPDIR": str(self.temporary),
                "JUPYTER_PATH": str(self.scratch / "prefix/share/jupyter"),
                **environment,
            },
        }
        lines = [f"c.{name} = {value!r}" for name, value in values.items()]
        text = "\n".join(["c = get_config()", *lines, more, ""])
        (self._directory / "jupyterhub_config.py").write_text(text)

    def start(self) -> None:
        """Start the hub and wait until it answers through its proxy."""
        dropped = (
            "SUBMARINE_",
            "HADOOP_",
            "JPY_",
            "JUPYTER",
            "IPYTHON",
            "XDG_",
            "KRB5",
            "JAVA_TOOL",
        )
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        run = {k: v for k, v in os.environ.items() if k == "SUBMARINE_TEST_RUN"}
        environment = {**kept, **run, MARK: str(self.scratch), "HOME": str(self._directory)}
        environment["PATH"] = f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}"
        # The users cannot write below the repository.
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        words = self.namespace.command(
            sys.executable, "-m", "jupyterhub", "-f", str(self._directory / "jupyterhub_config.py")
        )
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                words,
                cwd=self._directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE
        while self.ask("/hub/health").status != 200:
            code = self._process.poll()
            if code is not None or time.monotonic() > deadline:
                raise RuntimeError(f"JupyterHub did not start ({code}):\n{self.said()}")
            time.sleep(0.1)

    def said(self) -> str:
        """Return the end of the log of the hub and the servers."""
        return self.log.read_text(errors="replace")[-8000:]

    def ask(self, path: str, method: str = "GET", **options: Any) -> Answer:
        """Send a request through the proxy, without credentials of its own."""
        return call(self.origin, path, method, **options)

    def admin(self, path: str, method: str = "GET", **options: Any) -> Any:
        """Return the answer of the hub's REST API to its administrator."""
        headers = {"Authorization": f"token {self._admin}"}
        answer = self.ask(f"/hub/api/{path}", method, headers=headers, **options)
        assert answer.status in (200, 201, 202, 204), (path, answer, self.said())
        return json.loads(answer.body or b"null")

    def start_server(self, user: str) -> None:
        """Start a user's server, without a browser, and wait until it is ready."""
        self.admin(f"users/{user}/server", "POST")
        until(lambda: self.admin(f"users/{user}")["servers"].get("", {}).get("ready"), self.said)

    def token(self, user: str) -> str:
        """Return a new token of a user, with all rights of the user."""
        made = self.admin(f"users/{user}/tokens", "POST", body={"note": "test"})
        return str(made["token"])

    def server(self, user: str) -> psutil.Process:
        """Return the process of a user's server."""
        pid = self.admin(f"users/{user}?include_stopped_servers")["servers"][""]["state"]["pid"]
        return psutil.Process(pid)

    def server_url(self, user: str) -> str:
        """Return the address of a user's server itself, without the proxy."""
        connections = self.server(user).net_connections()
        (port,) = {it.laddr.port for it in connections if it.status == "LISTEN"}
        return f"http://127.0.0.1:{port}"

    def run_as(self, user: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command as in a terminal of a user's server."""
        account = self.accounts[user]
        number = str(account.uid)
        change = ("setpriv", "--reuid", number, "--regid", number, "--clear-groups")
        return subprocess.run(
            self.namespace.command(*change, *words),
            env=self.server(user).environ(),
            cwd=account.home,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def close(self) -> None:
        """Stop the hub, the proxy, the servers, and what these started."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        terminate(find_marked(MARK, str(self.scratch)), grace=5)


def api(user: str, path: str = "") -> str:
    """Return the path of our REST interface in a user's server."""
    return f"/user/{user}/{API}{path}"
