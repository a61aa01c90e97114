"""Run spark-submit for a job: upload the jars once, read the application's id, name refusals."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
import zipfile
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from submarine_jobs.backends.base import Submission
from submarine_jobs.backends.yarn.cluster import (
    HadoopConf,
    Identity,
    ResourceManager,
    find_application,
)
from submarine_jobs.backends.yarn.driver import NeverFitsError, driver_tickets, translate
from submarine_jobs.backends.yarn.spark import driver_program as program
from submarine_jobs.backends.yarn.spark.arguments import (
    DISCOVERY_SCRIPT,
    driver_program,
    spark_arguments,
)
from submarine_jobs.backends.yarn.spark.installation import SparkInstallation
from submarine_jobs.config import make_private
from submarine_jobs.errors import ClusterError, NotSubmittedError, SubmarineError
from submarine_jobs.model import JobSpec, Profile
from submarine_jobs.storage import Storage
from submarine_runtime.protocol import AgentConfig
from submarine_runtime.translation import _
from submarine_runtime.yarn import GPU

#: Seconds for spark-submit: a JVM, an upload of 4 MB, and the answer of YARN.
SUBMIT_SECONDS = 600.0
#: Spark 4 and 3.
_ASSIGNED = re.compile(
    r"(?:Application ID is assigned:|Submitting application) (application_\d+_\d+)"
)
_TOO_LARGE = re.compile(
    r"Required (AM|executor) memory \(([\d+]+) ?MB\)"
    r"(?:[^(]{0,40}\((\d+)\) MB, overhead \((\d+) MB\))?"
    r".{0,200}?"
    r"above the max threshold \((\d+) MB\)",
    re.DOTALL,
)
_CAUSE = re.compile(r'^(?:Exception in thread "[^"]*" |Error: |Caused by: )')
_TAIL = 60
#: Variables of the submitter's own Python and Spark session; Spark would pass some of them on.
_SESSION = re.compile(r"PYSPARK_.*|SPARK_ENV_LOADED|SPARK_CONNECT_.*|PYTHONPATH|PYTHONHOME")


@dataclass(frozen=True)
class SparkSubmitter:
    """Submits Spark jobs of one profile.

    Parameters
    ----------
    cache
        Directory in ``storage`` for the files that jobs share.
    """

    profile: Profile
    conf: HadoopConf
    storage: Storage
    cache: str
    rm: ResourceManager
    user: str
    spark: SparkInstallation

    def submit(self, submission: Submission, agent: AgentConfig, agent_python: str) -> str:
        """Submit a job; return the application's id.

        Raises
        ------
        RefusedError
            If Spark or YARN refuse the job.
        NotSubmittedError
            If nothing was submitted, because the file system failed.
        ClusterError
            If it is unknown whether YARN has accepted the job.
        """
        try:
            archive = self._jars(submission.on_step)
        except (ClusterError, OSError) as error:
            raise NotSubmittedError(
                _("The jars of Spark could not be uploaded: {error}.").format(error=error),
                _("Nothing was submitted."),
            ) from error
        submission.on_step(_("Submitting the application to YARN"))
        with tempfile.TemporaryDirectory(prefix="submarine-spark-") as name:
            directory = Path(name)
            template = Path(program.__file__).read_text(encoding="utf-8")
            source = driver_program(template, submission, agent)
            (directory / "submarine_driver.py").write_text(source, encoding="utf-8")
            (directory / "submarine_gpus.sh").write_text(DISCOVERY_SCRIPT, encoding="utf-8")
            arguments = self._kerberos_arguments() + spark_arguments(
                submission,
                agent,
                directory=directory,
                archive=self.storage.url(archive),
                agent_python=agent_python,
                queue=self.profile.queue or "default",
                proxy_user=self.profile.proxy_user or "",
                loopback=self.conf.on_loopback,
                gpu_resource=self.profile.settings.get("gpu_resource", GPU),
            )
            return self._run(arguments, submission.agent.record.job_id)

    def _run(self, arguments: list[str], job_id: str) -> str:
        command = [str(self.spark.home / "bin" / "spark-submit"), *arguments]
        try:
            child = subprocess.Popen(
                command,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise NotSubmittedError(
                _("spark-submit cannot be run: {error}.").format(error=error),
                _("Correct SPARK_HOME."),
            ) from error
        timer = threading.Timer(SUBMIT_SECONDS, child.kill)
        timer.start()
        application, tail = "", deque[str](maxlen=_TAIL)
        try:
            assert child.stderr is not None
            with child.stderr:
                for line in child.stderr:
                    tail.append(line)
                    found = _ASSIGNED.search(line)
                    application = found[1] if found else application
            status = child.wait()
        finally:
            timer.cancel()
            if child.poll() is None:
                child.kill()
                child.wait()
        if status == 0 and application:
            return application
        # An interrupted submission may have been accepted.
        known = find_application(self.rm, job_id, self.user)
        if known is not None and known.active:
            return known.id
        if status < 0:
            raise ClusterError(
                _("spark-submit did not end within {seconds:.0f} s.").format(
                    seconds=SUBMIT_SECONDS
                ),
                _("Check that ResourceManager and NameNode are up: `submarine doctor`."),
            )
        raise refusal_of("".join(tail))

    def _environment(self) -> dict[str, str]:
        """Return the environment of spark-submit: this process's, Spark's, Java's, Hadoop's."""
        inherited = {key: value for key, value in os.environ.items() if not _SESSION.fullmatch(key)}
        directory = str(self.conf.directory)
        found = {
            **inherited,
            **self._user_environment(),
            "SPARK_HOME": str(self.spark.home),
            "JAVA_HOME": str(self.spark.java),
            "HADOOP_CONF_DIR": directory,
            "YARN_CONF_DIR": directory,
        }
        if self.conf.on_loopback:
            found["SPARK_LOCAL_IP"] = "127.0.0.1"
        return found

    def _kerberos_arguments(self) -> list[str]:
        """Return the arguments for a keytab, which Spark sends to its driver."""
        keytab, principal = self.profile.keytab, self.profile.principal or ""
        if not self.conf.kerberos or keytab is None:
            return []
        return ["--principal", principal, "--keytab", str(keytab)]

    def _user_environment(self) -> dict[str, str]:
        """Return the variables by which spark-submit gets its user or ticket."""
        if not self.conf.kerberos:
            return {"HADOOP_USER_NAME": self.profile.user} if self.profile.user else {}
        directory = self.profile.state_dir / "spark"
        make_private(directory)
        tickets = driver_tickets(self.profile, self.conf, directory)
        tickets.refresh()
        options = [os.environ.get("SPARK_SUBMIT_OPTS", ""), *tickets.jvm_options]
        return {**tickets.env, "SPARK_SUBMIT_OPTS": " ".join(filter(None, options))}

    def _jars(self, on_step: Callable[[str], None]) -> str:
        """Return the path of the archive of Spark's jars; upload it if it is missing."""
        path = f"{self.cache}/{self.spark.archive_name}"
        if self.storage.stat(path) is not None:
            return path
        on_step(_("Uploading the jars of Spark {version}").format(version=self.spark.version))
        with tempfile.NamedTemporaryFile(prefix="submarine-spark-", suffix=".zip") as file:
            # Jars are compressed already.
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for jar in self.spark.jars:
                    archive.write(jar, jar.name)
            file.flush()
            self.storage.make_directory(self.cache)
            self.storage.upload(Path(file.name), path)
        return path


def kerberos_refusal(profile: Profile, identity: Identity, spec: JobSpec) -> str:
    """Return why Spark cannot use the user's credentials; empty if it can."""
    if not identity.kerberos:
        return ""
    if identity.tokens is not None:
        return _(
            "A Spark job needs a Kerberos ticket, and this process has only the delegation tokens "
            "of its container."
        )
    if profile.keytab is not None and not spec.distribute_keytab:
        return _(
            "Spark sends the keytab of the profile to its driver: add --distribute_keytab, or "
            "use a ticket (kinit) in place of the keytab."
        )
    if profile.keytab is not None and profile.proxy_user:
        return _("Spark does not support a keytab together with proxy_user.")
    return ""


def refusal_of(stderr: str) -> SubmarineError:
    """Return the error for the end of the stderr of a spark-submit that failed."""
    found = _TOO_LARGE.search(stderr)
    if found:
        master = found[1] == "AM"
        parts = (int(part) for part in [*found[2].split("+"), found[3], found[4]] if part)
        return NeverFitsError(
            _("The {role} needs {memory} MiB, and a container may have {most} here.").format(
                role=_("driver") if master else _("executor"), memory=sum(parts), most=found[5]
            ),
            _("Ask for less with {option}.").format(
                option="--memory" if master else "--executor_resources"
            ),
        )
    lines = stderr.splitlines()
    first = next((number for number, line in enumerate(lines) if _CAUSE.match(line)), 0)
    return translate("\n".join(_CAUSE.sub("", line) for line in lines[first:]))
