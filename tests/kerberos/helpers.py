"""Commands of users on the Kerberised minicluster, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import get_json
from tests.tracking_page import shown_at
from tests.waiting import until

#: Seconds for a command; a busy machine needs a minute for the first job.
LIMIT = 240


class User:
    """A user of the cluster with an own state directory, and a ticket cache or a keytab.

    Parameters
    ----------
    ticket
        Whether the user has a ticket cache.
    """

    def __init__(
        self, cluster: Minicluster, name: str, directory: Path, *, ticket: bool = True
    ) -> None:
        self.cluster, self.name, self.directory = cluster, name, directory
        directory.mkdir(exist_ok=True)
        environ = {**os.environ, **cluster.environ(name)}
        # Set for containers; the client passes the configuration to its JVM by itself.
        environ.pop("JAVA_TOOL_OPTIONS", None)
        if not ticket:
            environ["KRB5CCNAME"] = f"FILE:{directory / 'no-ticket'}"
        state = {"XDG_STATE_HOME": str(directory), "XDG_CONFIG_HOME": str(directory)}
        self.environ = {**environ, **state, "SUBMARINE_BACKEND": "yarn"}

    def start(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start ``submarine WORDS``."""
        return subprocess.Popen(
            [sys.executable, "-m", "submarine_jobs.cli", *words],
            env={**self.environ, **(env or {})},
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(
        self, *words: str, env: Mapping[str, str] | None = None, seconds: float = LIMIT
    ) -> subprocess.CompletedProcess[str]:
        """Run ``submarine WORDS``."""
        with self.start(*words, env=env) as process:
            try:
                output, errors = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return subprocess.CompletedProcess(words, process.returncode, output, errors)

    def json(self, *words: str, env: Mapping[str, str] | None = None) -> Any:
        """Return the JSON result of a successful command."""
        done = self.run(words[0], "--json", *words[1:], env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def file(self, name: str, content: str) -> str:
        """Write a program, and return its path."""
        path = self.directory / name
        path.write_text(content, encoding="utf-8")
        return str(path)


def application(cluster: Minicluster, job: Mapping[str, Any]) -> dict[str, Any]:
    """The ResourceManager's data on a job, of which ``show`` has told the application."""
    url = f"{cluster.url('resourcemanager')}/ws/v1/cluster/apps/{job['application_id']}"
    found: dict[str, Any] = get_json(url, cluster.access(job["user"]))["app"]
    return found


def allocated(cluster: Minicluster, job: Mapping[str, Any]) -> dict[str, int]:
    """The resources of a running job by their names."""
    used = application(cluster, job)["resourceInfo"]["resourceUsagesByPartition"][0]["used"]
    listed = used["resourceInformations"]["resourceInformation"]
    return {one["name"]: int(one["value"]) for one in listed}


def until_kept(cluster: Minicluster, job: Mapping[str, Any]) -> str:
    """Wait until the tracking URL shows its user the text of the job, and return the URL."""

    def finished() -> dict[str, Any] | None:
        app = application(cluster, job)
        return app if app["state"] == "FINISHED" else None

    app = until(finished, "the end of the application")
    assert app["finalStatus"] == "SUCCEEDED"
    url = str(app["trackingUrl"])  # YARN's proxy, which leads to the history server.

    def kept() -> bool:
        shown = page(cluster, url, job["user"])
        return f"job_id: {job['job_id']}" in shown and "state: SUCCEEDED" in shown

    until(kept, "the text of the job in the logs of its master", 180)
    return url


def page(cluster: Minicluster, url: str, user: str) -> str:
    """What a user sees at a URL; empty without an answer."""
    return shown_at(url, cluster.access(user))
