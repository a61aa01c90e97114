"""A real JupyterLab (and Notebook 7 beside it) as a process of this machine, for browser tests.

Everything that it reads or writes lies below one scratch directory: nothing of this machine's
user, and nothing is left when it is closed, even after ``kill -9``. Knows no browser.
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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from submarine_kernel.kernelspecs import install_kernel
from submarine_minicluster.machine import find_marked, free_port, terminate
from tests.browser.calls import API, Answer, call
from tests.notebooks import write_notebook

ROOT = Path(__file__).resolve().parents[2]
#: The front end to show; another build of it by this variable, while writing tests.
DIST = Path(os.environ.get("SUBMARINE_TEST_FRONT_END") or ROOT / "labextension" / "dist")
MARK = "SUBMARINE_TEST_LAB"
#: As below JupyterHub: everything must work behind a prefix.
BASE = "/user/ada/"
#: Seconds until a busy machine has a server up.
PATIENCE = 180.0


class Lab:
    """One server on a port of its own, which it keeps over restarts.

    Parameters
    ----------
    scratch
        An empty directory.
    environment
        Which cluster its jobs go to, as variables.
    arguments
        More words for its command line.
    terminals
        Whether it has terminals.
    """

    def __init__(
        self,
        scratch: Path,
        environment: Mapping[str, str],
        arguments: tuple[str, ...] = (),
        *,
        terminals: bool = False,
    ) -> None:
        self.scratch = scratch
        self.notebooks = scratch / "work"
        self.token = secrets.token_hex(16)
        self.port = free_port()
        self.origin = f"http://127.0.0.1:{self.port}"
        self.url = self.origin + BASE
        self.log = scratch / "server.log"
        self._arguments = (f"--ServerApp.terminals_enabled={terminals}", *arguments)
        self._process: subprocess.Popen[bytes] | None = None
        self._prepare()
        self._environment = {**clean_environment(scratch), **environment}
        # With Node.js, which most users do not have, the server runs Yarn for each page: half a
        # second of CPU time.
        node = scratch / "bin" / "node"
        node.parent.mkdir()
        node.write_text("#!/bin/sh\nexit 1\n")
        node.chmod(0o755)
        path = self._environment.get("PATH", os.defpath)
        self._environment["PATH"] = f"{node.parent}{os.pathsep}{path}"

    def _prepare(self) -> None:
        if not (DIST / "package.json").is_file():
            raise FileNotFoundError(
                "The front end is not built (labextension/dist): run scripts/setup.sh node."
            )
        for name in ("work", "tmp", "home", "config", "data", "runtime", "settings", "workspaces"):
            (self.scratch / name).mkdir()
        install_kernel(prefix=str(self.scratch / "prefix"))
        extensions = self.scratch / "prefix" / "share" / "jupyter" / "labextensions"
        extensions.mkdir(parents=True)
        # A copy: what is built meanwhile does not change a page between two of its requests.
        shutil.copytree(DIST, extensions / "jupyter-submarine")
        shutil.copytree(
            ROOT / "server_ext" / "jupyter-config", self.scratch / "config/jupyter_server_config.d"
        )
        news = {"fetchNews": "false", "checkForUpdates": False}
        self.setting("@jupyterlab/apputils-extension", "notification", **news)
        self.setting("@jupyterlab/docmanager-extension", "plugin", autosave=False)

    def setting(self, extension: str, plugin: str, **values: Any) -> None:
        """Write a user's settings of one plugin."""
        folder = self.scratch / "settings" / extension
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{plugin}.jupyterlab-settings").write_text(json.dumps(values))

    def start(self) -> None:
        """Start the server and wait until it answers."""
        words = [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--expose-app-in-browser"),
            "--JupyterNotebookApp.expose_app_in_browser=True",
            *("--ip=127.0.0.1", f"--port={self.port}", "--ServerApp.port_retries=0"),
            *(f"--ServerApp.base_url={BASE}", f"--ServerApp.root_dir={self.notebooks}"),
            *("--allow-root", *self._arguments),
        ]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                words,
                cwd=self.notebooks,
                env={**self._environment, "JUPYTER_TOKEN": self.token},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE
        while True:
            code = self._process.poll()
            if code is not None or time.monotonic() > deadline:
                raise RuntimeError(f"JupyterLab did not start ({code}):\n{self.said()}")
            if self.ask("api/status", timeout=5).status == 200:
                return
            time.sleep(0.1)

    def said(self) -> str:
        """The end of the server's log."""
        return self.log.read_text(errors="replace")[-6000:]

    def ask(self, path: str, method: str = "GET", *, token: bool = True, **options: Any) -> Answer:
        """A request below the base URL, or to a path from ``/`` on; with the token by default."""
        own = {"Authorization": f"token {self.token}"} if token else {}
        return call(
            self.url, path, method, headers={**own, **options.pop("headers", {})}, **options
        )

    def api(self, path: str) -> Any:
        """What our REST API answers, which must be 200."""
        answer = self.ask(API + path)
        assert answer.status == 200, (path, answer.status, answer.body[:500])
        return answer.json

    def kill(self) -> None:
        """End the server without a shutdown, like ``kill -9`` or the kernel's OOM killer."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def close(self) -> None:
        """Stop the server, its kernels and whatever they left."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        terminate(find_marked(MARK, str(self.scratch)), grace=5)

    def write(self, name: str, *cells: str | NotebookNode, kernel: str = "submarine") -> Path:
        """A notebook of code cells, or of cells with outputs, below the server's root."""
        return write_notebook(self.notebooks / name, *cells, kernel=kernel)


def clean_environment(scratch: Path) -> dict[str, str]:
    """This process's environment with nothing of this machine's user or of another cluster."""
    dropped = ("SUBMARINE_", "HADOOP_", "JPY_", "JUPYTER", "IPYTHON", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    mark = {name: value for name, value in os.environ.items() if name == "SUBMARINE_TEST_RUN"}
    return {
        **kept,
        **mark,
        MARK: str(scratch),
        "HOME": str(scratch / "home"),
        "TMPDIR": str(scratch / "tmp"),
        "JUPYTER_CONFIG_DIR": str(scratch / "config"),
        "JUPYTER_DATA_DIR": str(scratch / "data"),
        "JUPYTER_RUNTIME_DIR": str(scratch / "runtime"),
        "JUPYTER_PATH": str(scratch / "prefix" / "share" / "jupyter"),
        "JUPYTERLAB_SETTINGS_DIR": str(scratch / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(scratch / "workspaces"),
        "IPYTHONDIR": str(scratch / "ipython"),
        "XDG_CONFIG_HOME": str(scratch / "config"),
        "SUBMARINE_STATE_DIR": str(scratch / "state"),
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
