"""Make skein's specification of a job, with the cached files that it needs on the cluster.

What a specification says is in ``application``; this module knows where jars and archive lie.
Does not submit.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from submarine_jobs.backends.base import Submission
from submarine_jobs.backends.yarn import application
from submarine_jobs.backends.yarn.cds import MasterArchive
from submarine_jobs.backends.yarn.driver import Driver
from submarine_jobs.backends.yarn.hadoopconf import HadoopConf
from submarine_jobs.backends.yarn.plan import SLACK_BESIDE, SLACK_TOGETHER
from submarine_jobs.backends.yarn.shipped import Shipped
from submarine_jobs.profile import Profile
from submarine_jobs.storage.base import Storage
from submarine_runtime.protocol.layout import RUNTIME_CACHE

#: Milliseconds between a master's heartbeats while it waits for another container.
HEARTBEAT_SHARED = 1000
HEARTBEAT_LOOPBACK = 200


class ApplicationMaker:
    """Makes specifications for one profile.

    Parameters
    ----------
    cache
        Directory in ``storage`` for what all jobs share.
    """

    def __init__(
        self, profile: Profile, conf: HadoopConf, driver: Driver, storage: Storage, cache: str
    ) -> None:
        self._profile = profile
        self._conf = conf
        self._driver = driver
        self._storage = storage
        self._directory = cache
        self._shipped: dict[str, Shipped] = {}

    def spec(self, submission: Submission) -> object:
        """The skein ``ApplicationSpec`` of a submission; uploads what the cache lacks."""
        cache, beside = self._cache(submission), len(submission.plan.containers) > 1
        agent = replace(submission.agent, memory_slack=SLACK_BESIDE if beside else SLACK_TOGETHER)
        settings = self._profile.settings
        options = tuple(settings.get("am_java_options", "").split())
        return application.build(
            replace(submission, agent=agent),
            skein_jar=cache.skein_jar(),
            heartbeat_jar=cache.heartbeat_jar(self._conf, self._heartbeat) if beside else None,
            jvm_options=options or application.MASTER_JVM,
            archive=self.archive.path() if self.archive else None,
            agent_python=settings.get("agent_python") or submission.agent.python,
            fallback_queue=self._profile.queue or "default",
        )

    @cached_property
    def archive(self) -> MasterArchive | None:
        """The class archive of this client's masters, where it is wanted."""
        wanted = self._profile.settings.get("am_cds", "auto")
        if wanted == "off" or (wanted != "on" and not self._conf.on_loopback):
            return None
        java, entries = self._driver.java_and_classpath()
        return MasterArchive(self._storage, self._directory, java, entries)

    def build_archive_later(self) -> None:
        """Build the class archive in the background, where it is wanted and not there."""
        if self.archive is not None:
            self.archive.build_later(self._driver.directory)

    def forget(self, submission: Submission) -> None:
        """What lies in the cache is not known any more: look again."""
        self._cache(submission).forget()
        if self.archive is not None:
            self.archive.forget()

    @property
    def _heartbeat(self) -> int:
        chosen = self._profile.settings.get("am_heartbeat_ms")
        usual = HEARTBEAT_LOOPBACK if self._conf.on_loopback else HEARTBEAT_SHARED
        return int(chosen) if chosen else usual

    def _cache(self, submission: Submission) -> Shipped:
        directory = submission.runtime_zip.rpartition("/")[0]
        if not directory.endswith(f"/{RUNTIME_CACHE}"):
            directory = self._directory
        key = submission.storage.url(directory)
        return self._shipped.setdefault(key, Shipped(submission.storage, directory))
