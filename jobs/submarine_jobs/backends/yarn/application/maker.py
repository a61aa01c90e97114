"""Make the specification of an application, and upload the cached files that it needs."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from submarine_data.remote import hdfs_clients
from submarine_jobs.backends.base import Submission
from submarine_jobs.backends.yarn.application import (
    coordinator_python as coordinatorpython,
    distributed as gangapplication,
    single as application,
)
from submarine_jobs.backends.yarn.application.cached_files import CachedFiles
from submarine_jobs.backends.yarn.application.localized_files import files_to_localize
from submarine_jobs.backends.yarn.application.specification import Application
from submarine_jobs.backends.yarn.cluster import HadoopConf
from submarine_jobs.backends.yarn.driver import Driver, MasterArchive
from submarine_jobs.backends.yarn.planning import (
    AGENT_MEMORY,
    SLACK_BESIDE,
    SLACK_TOGETHER,
    driver_overhead,
)
from submarine_jobs.model import Profile, Role, parse_python_env
from submarine_jobs.storage import Storage
from submarine_runtime.protocol import AgentConfig, JobStore
from submarine_runtime.protocol.layout import RUNTIME_CACHE
from submarine_runtime.yarn import GPU

#: Milliseconds between a master's heartbeats while it waits for another container.
HEARTBEAT_SHARED = 1000
HEARTBEAT_LOOPBACK = 200
#: ``agent_python = brought``: agents run on the coordinator's Python, which is brought along.
BROUGHT = "brought"


class ApplicationMaker:
    """Makes specifications for one profile.

    Parameters
    ----------
    cache
        Directory in ``storage`` for the files that jobs share.
    """

    def __init__(
        self, profile: Profile, conf: HadoopConf, driver: Driver, storage: Storage, cache: str
    ) -> None:
        self._profile = profile
        self._conf = conf
        self._driver = driver
        self._storage = storage
        self._directory = cache
        self._shipped: dict[str, CachedFiles] = {}

    def spec(self, submission: Submission) -> Application:
        """Return the application of a submission; upload missing files to the cache."""
        gang = submission.coordinator is not None
        hdfs = hdfs_clients(self._conf.properties)
        agent = replace(submission.agent, node_scheme=self._conf.node_scheme, hdfs=hdfs)
        submission = replace(submission, agent=agent)
        made = self._gang(submission) if gang else self._single(submission)
        return replace(
            made,
            user=self._profile.proxy_user or "",
            owner=submission.agent.record.user,
            private=self._conf.kerberos,
            file_systems=self._conf.token_file_systems,
            share=submission.spec.share,
        )

    def spark_agent(self, submission: Submission) -> tuple[AgentConfig, str]:
        """Return the configuration of the agent of a Spark job, and the agent's interpreter."""
        agent = replace(
            submission.agent,
            node_scheme=self._conf.node_scheme,
            hdfs=hdfs_clients(self._conf.properties),
            memory_slack=driver_overhead(submission.spec) - AGENT_MEMORY,
            resourcemanagers=list(self._conf.resourcemanagers),
            store=self._store(submission, submission.agent.store),
        )
        python = self._profile.settings.get("agent_python")
        if not python or python == BROUGHT:
            python = agent.interpreter
        return agent, python

    def _single(self, submission: Submission) -> Application:
        """Return the application of a job of one task."""
        cache, beside = self._cache(submission), len(submission.plan.containers) > 1
        archive, jvm_options = self._archive_and_options()
        agent = replace(submission.agent, memory_slack=SLACK_BESIDE if beside else SLACK_TOGETHER)
        keytab = submission.spec.distribute_keytab
        if submission.environments or files_to_localize(submission) or keytab:
            agent.resourcemanagers = list(self._conf.resourcemanagers)
        agent = replace(agent, store=self._store(submission, agent.store))
        python = self._agent_python(submission, None)
        if not beside:
            agent = replace(agent, log_server=self._conf.log_server)
        return application.build(
            replace(submission, agent=agent),
            skein_jar=cache.skein_jar(self._gpu_resource),
            heartbeat_jar=cache.heartbeat_jar(self._conf, self._heartbeat) if beside else None,
            jvm_options=jvm_options,
            archive=archive,
            agent_python=python,
            brought_python=self.python.path() if python == coordinatorpython.INTERPRETER else None,
            fallback_queue=self._profile.queue or "default",
        )

    def _gang(self, submission: Submission) -> Application:
        """Return the application of a distributed job."""
        cache, settings = self._cache(submission), self._profile.settings
        archive, jvm_options = self._archive_and_options()
        agent = replace(submission.agent, memory_slack=SLACK_BESIDE)
        orders = submission.coordinator
        if orders is not None:
            store = self._store(submission, orders.store)
            urls = self._conf.resourcemanagers
            orders = replace(
                orders, resourcemanagers=urls, store=store, log_server=self._conf.log_server
            )
        python = {role.name: self._agent_python(submission, role) for role in submission.spec.roles}
        own = settings.get("coordinator_python")
        bring = own is None or coordinatorpython.INTERPRETER in python.values()
        parts = gangapplication.Parts(
            skein_jar=cache.skein_jar(self._gpu_resource),
            heartbeat_jar=cache.heartbeat_jar(self._conf, self._heartbeat),
            jvm_options=jvm_options,
            coordinator_python=own or coordinatorpython.INTERPRETER,
            agent_python=python,
            archive=archive,
            coordinator_archive=self.python.path() if bring else None,
            fallback_queue=self._profile.queue or "default",
            docker=self._docker,
        )
        return gangapplication.build_gang(
            replace(submission, agent=agent, coordinator=orders), parts
        )

    def _store(self, submission: Submission, store: JobStore) -> JobStore:
        """Return the job directory for the container that receives the keytab."""
        sent = submission.spec.distribute_keytab
        return replace(store, principal=self._profile.principal or "") if sent else store

    def _agent_python(self, submission: Submission, role: Role | None) -> str:
        """Return the interpreter of a role's agents, which unpack the role's environment.

        A single-task job (no ``role``) without a packed environment starts its agent with the
        Python of the job.
        """
        spec = submission.spec
        if self._brings:
            return coordinatorpython.INTERPRETER
        named = self._profile.settings.get("agent_python")
        if named or (role is None and not submission.environments):
            return named or submission.agent.interpreter
        if gangapplication.docker_image(spec, role or spec.worker):
            return "python3"
        if role is not None and parse_python_env(spec.python_env).kind in ("host", "path"):
            return spec.python or self._profile.python
        return coordinatorpython.INTERPRETER

    def prepare_python(self) -> None:
        """Upload the coordinator's Python in the background, before a submission needs it."""
        if self._profile.settings.get("coordinator_python") is None or self._brings:
            self.python.make_later()

    @cached_property
    def python(self) -> coordinatorpython.CoordinatorPython:
        """The packed Python of coordinators."""
        return coordinatorpython.CoordinatorPython(
            self._storage, self._directory, self._profile.state_dir
        )

    @property
    def _docker(self) -> dict[str, str]:
        """Return the Docker settings of the profile, as variables of YARN's runtime."""
        settings = self._profile.settings
        said = {
            gangapplication.MOUNTS: settings.get("docker_mounts"),
            gangapplication.NETWORK: settings.get("docker_network"),
        }
        return {name: value for name, value in said.items() if value}

    @property
    def _brings(self) -> bool:
        return self._profile.settings.get("agent_python") == BROUGHT

    def _archive_and_options(self) -> tuple[str | None, tuple[str, ...]]:
        """Return the path of the class archive, if there is one, and the options of the JVM."""
        options = tuple(self._profile.settings.get("am_java_options", "").split())
        options = options or application.MASTER_JVM
        archive = self.archive
        path = archive.path() if archive is not None and archive.option else None
        if archive is None or path is None:
            return None, options
        return path, (archive.option, *options)

    @cached_property
    def archive(self) -> MasterArchive | None:
        """Return the class archive of this client's masters, if it is enabled."""
        wanted = self._profile.settings.get("am_cds", "auto")
        if wanted == "off" or (wanted != "on" and not self._conf.on_loopback):
            return None
        java, entries = self._driver.java_and_classpath()
        return MasterArchive(self._storage, self._directory, java, entries, self._gpu_resource)

    def build_archive_later(self) -> None:
        """Build the class archive in the background, if it is enabled and missing."""
        if self.archive is not None:
            self.archive.build_later(self._driver.directory)

    def forget(self, submission: Submission) -> None:
        """Check the cache again at the next call."""
        self._cache(submission).forget()
        if self.archive is not None:
            self.archive.forget()
        self.python.forget()

    @property
    def _heartbeat(self) -> int:
        chosen = self._profile.settings.get("am_heartbeat_ms")
        usual = HEARTBEAT_LOOPBACK if self._conf.on_loopback else HEARTBEAT_SHARED
        return int(chosen) if chosen else usual

    @property
    def _gpu_resource(self) -> str:
        return self._profile.settings.get("gpu_resource", GPU)

    def _cache(self, submission: Submission) -> CachedFiles:
        directory = submission.runtime_zip.rpartition("/")[0]
        if not directory.endswith(f"/{RUNTIME_CACHE}"):
            directory = self._directory
        key = submission.storage.url(directory)
        return self._shipped.setdefault(key, CachedFiles(submission.storage, directory))
