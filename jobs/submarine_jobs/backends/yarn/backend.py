"""The yarn backend: ``Backend`` over skein's driver and the ResourceManager's REST interface.

A restart loses no state: the driver is found through its file, applications through their tags.
``application.submission`` submits applications.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from submarine_jobs.backends.base import (
    Backend,
    FreshTokens,
    Handle,
    Handles,
    Observation,
    Plan,
    Stage,
    Submission,
)
from submarine_jobs.backends.overview import Overview
from submarine_jobs.backends.yarn.application import (
    ApplicationMaker,
    containers_needed,
    describe_localized_files,
    submit_application,
)
from submarine_jobs.backends.yarn.cluster import (
    APPS,
    NODES,
    RENEWAL,
    SCHEDULER,
    HadoopConf,
    Identity,
    ResourceManager,
    Survey,
    TokenSource,
    Waits,
    active_jobs,
    application,
    default_file_system,
    find_application,
    free_disk,
    jobs_of,
    localizing_on,
    needed_containers,
    observe,
    other_file_system,
    overview_of,
)
from submarine_jobs.backends.yarn.driver import Driver, SubprocessDriver, modify_acl_error
from submarine_jobs.backends.yarn.planning import (
    ClusterView,
    make_gang_plan,
    make_plan,
    make_spark_plan,
    steps_of,
)
from submarine_jobs.backends.yarn.spark import (
    SparkSubmitter,
    find_spark,
    kerberos_refusal,
    staging_directory,
)
from submarine_jobs.concurrency import call_timeout, uses_subprocesses
from submarine_jobs.errors import (
    AclsDisabledError,
    ClusterError,
    ConfigError,
    StorageError,
    SubmarineError,
    UsageError,
    no_cluster,
)
from submarine_jobs.inputs import FreeDisk
from submarine_jobs.model import (
    JobSpec,
    Profile,
    Sharing,
    check_user_name,
    format_duration,
    parse_python_env,
    resolve_roles,
    use_container_cache,
)
from submarine_jobs.storage import Storage, traversal
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.layout import RUNTIME_CACHE
from submarine_runtime.translation import _
from submarine_runtime.yarn import (
    FRESH_LARGE,
    GPU,
    GPU_RESOURCES,
    NVIDIA_GPU,
    Node,
    offered_gpu_resource,
    queues_of,
    smallest_memory,
)

_ACLS = "yarn.acl.enable"
_PROXY_PRIVILEGES = "yarn.resourcemanager.proxy-user-privileges.enabled"
_RUNTIME = "YARN_CONTAINER_RUNTIME_TYPE"
#: The link of ``cluster.applications``; the driver's agent does not know it.
_SPARK_PAGE = "Spark page"
#: Seconds to remove the files of a killed application on HDFS.
_CLEAN_SECONDS = 5.0


class YarnBackend(Backend):
    """Jobs on one YARN cluster.

    Parameters
    ----------
    profile
        Names the cluster's configuration directory, user, timeout and settings. Settings read here:
        ``am_cds`` (auto, on, off), ``am_heartbeat_ms``, ``am_java_options``, ``agent_python``,
        ``coordinator_python``, ``docker_mounts``, ``docker_network``, ``yarn_command``,
        ``driver_idle_minutes``, ``driver_java_options``.
    """

    name = "yarn"
    shares = True

    @cached_property
    def conf(self) -> HadoopConf:
        """The client configuration of the cluster."""
        directory = self.profile.hadoop_conf_dir or os.environ.get("HADOOP_CONF_DIR")
        if not directory:
            raise no_cluster()
        conf = HadoopConf(Path(directory), _gateway(self.profile))
        if conf.kerberos:
            use_container_cache()
        return conf

    @cached_property
    def identity(self) -> Identity:
        """The user of the profile on this cluster, and its access."""
        return Identity(self.profile, self.conf)

    @property
    def user(self) -> str:
        """See ``Backend.user``: with Kerberos, the short name of the principal."""
        return self.identity.user

    @cached_property
    def rm(self) -> ResourceManager:
        """The ResourceManager's REST interface."""
        urls, access = self.conf.resourcemanagers, self.identity.access
        return ResourceManager(
            urls, timeout=self.profile.timeout, access=access, problem=self.identity.problem
        )

    @cached_property
    def _tokens(self) -> TokenSource:
        return TokenSource(self.conf, self.identity, self.profile.timeout)

    def fresh_tokens(self) -> FreshTokens | None:
        """See ``Backend.fresh_tokens``: delegation tokens, the same for all jobs."""
        return FreshTokens(self._tokens.text()) if self.identity.kerberos else None

    def keep_credentials(self) -> None:
        """See ``Backend.keep_credentials``: the ticket of the user's own cache."""
        if self.identity.uses_cache:
            RENEWAL.start()

    @property
    def token_interval(self) -> float:
        """See ``Backend.token_interval``: a quarter of the tokens' renewal interval."""
        return self.conf.token_interval if self.identity.kerberos else 0.0

    @cached_property
    def waits(self) -> Waits:
        """Explains why jobs wait on this cluster."""
        return Waits(self.rm, self.user)

    @cached_property
    def surveys(self) -> Survey:
        """The periodic polls of all jobs."""
        return Survey(self.rm, self.waits, self.user)

    @cached_property
    def driver(self) -> Driver:
        """The driver of this profile."""
        kind = SubprocessDriver if uses_subprocesses() else Driver
        return kind(self._gpu_profile, self.conf)

    @cached_property
    def gpu_resource(self) -> str:
        """The name of GPUs as a resource: the setting, the only known one, or that of the nodes.

        Raises
        ------
        ConfigError
            If the setting names another resource.
        """
        known = self.conf.gpu_resources
        only = next(iter(known), GPU) if len(known) < 2 else ""
        return self._chosen_gpu_resource or only or offered_gpu_resource(self.nodes()) or GPU

    @property
    def _chosen_gpu_resource(self) -> str:
        """The setting; empty if there is none."""
        chosen = self.profile.settings.get("gpu_resource")
        if chosen and chosen not in GPU_RESOURCES:
            raise ConfigError(
                _("gpu_resource = {value!r} is not a resource of GPUs.").format(value=chosen[:80]),
                _("Use {names}.").format(names=" or ".join(GPU_RESOURCES)),
            )
        return chosen or ""

    @cached_property
    def _gpu_profile(self) -> Profile:
        settings = {**self.profile.settings, "gpu_resource": self.gpu_resource}
        return replace(self.profile, settings=settings)

    @cached_property
    def storage(self) -> Storage:
        """The cluster's file system."""
        return default_file_system(self.profile, self.conf, self.identity)

    @cached_property
    def applications(self) -> ApplicationMaker:
        """Builds the specifications of applications."""
        root = f"{self.job_root()[1]}/{RUNTIME_CACHE}"
        return ApplicationMaker(self._gpu_profile, self.conf, self.driver, self.storage, root)

    def job_root(self) -> tuple[Storage, str]:
        """See ``Backend.job_root``: the profile's, else ``/user/<user>/submarine``."""
        root = self.profile.job_root or f"/user/{self.user}/submarine"
        path = self.storage.path_of(root)
        if path is None or path == "/":
            raise ConfigError(
                _("job_root = {root!r} is not a directory of this cluster's {default_fs}.").format(
                    root=root[:120], default_fs=self.conf.default_fs
                ),
                _("Give an absolute path there, for example /user/me/submarine."),
            )
        return self.storage, path

    def other_file_system(self, uri: str) -> tuple[Storage, str] | None:
        """See ``Backend.other_file_system``: other nameservices, WebHDFS, and mount tables."""
        return other_file_system(uri, self.storage, self.conf, self.identity)

    def free_disk(self) -> FreeDisk | None:
        """See ``Backend.free_disk``: the DataNodes' disks, one request to the NameNode."""
        return free_disk(self.conf, self.identity, self.profile.timeout)

    def job_root_of(self, user: str) -> tuple[Storage, str]:
        """See ``Backend.job_root_of``: this user's, with the other name in place of the user's."""
        storage, root = self.job_root()
        check_user_name(user)
        parts = [user if part == self.user else part for part in root.split("/")]
        return storage, "/".join(parts)

    def jobs_of(self, user: str) -> Collection[str]:
        """See ``Backend.jobs_of``: one request to the ResourceManager."""
        return jobs_of(self.rm, check_user_name(user))

    def plan(self, spec: JobSpec) -> Plan:
        """See ``Backend.plan``: at most two requests, and more with ``--share``."""
        self.identity.check_submission()
        self.keep_credentials()
        scheduler = self.waits.cache.refresh(SCHEDULER)
        fair = any(queue.fair for queue in queues_of(scheduler))
        steps = steps_of(self.conf, smallest_memory(scheduler), fair=fair)
        checked = self.conf.get(_ACLS) == "true"
        user = self.user if checked else None
        nodes = self.nodes()
        # That of the nodes, also if the configuration knows only another one: an error states it.
        gpu_resource = self._chosen_gpu_resource or offered_gpu_resource(nodes) or GPU
        knows_gpus = gpu_resource in self.conf.gpu_resources
        view = ClusterView(scheduler, nodes, steps, knows_gpus, user)
        spec = resolve_roles(spec)
        make = make_gang_plan if spec.distributed else make_plan
        if spec.spark is not None:
            make = make_spark_plan
        plan = make(spec, view, self.profile.queue or "default")
        if spec.spark is not None:
            plan = replace(plan, errors=[*self._spark_errors(spec), *plan.errors])
        warnings = [*self._token_warnings(spec), *self._sharing_warnings(spec)]
        if spec.gpu_topology and gpu_resource != NVIDIA_GPU:
            warnings.append(
                _("--gpu-topology has no effect: it needs GPUs that nodes offer as {name}.").format(
                    name=NVIDIA_GPU
                )
            )
        return replace(
            plan,
            warnings=[*plan.warnings, *warnings],
            errors=[*plan.errors, *self._runtime_errors(spec)],
        )

    def _runtime_errors(self, spec: JobSpec) -> list[str]:
        """Return why the container runtime that is requested cannot run the job."""
        if spec.env.get(_RUNTIME) == "runc":
            return [
                _(
                    "--env {variable}=runc: runC images are not supported. Name a Docker image "
                    "with --docker_image."
                ).format(variable=_RUNTIME)
            ]
        network = self.profile.settings.get("docker_network")
        if network == "none" and any(spec.image_of(role) for role in spec.roles):
            return [
                _(
                    "docker_network = none: the tasks of a job need a network to reach its "
                    "coordinator and HDFS. Set it to host, or to a network of the nodes' Docker."
                )
            ]
        return []

    def _spark_errors(self, spec: JobSpec) -> list[str]:
        """Return why this machine cannot submit a Spark job."""
        try:
            find_spark(self.profile)
        except UsageError as error:
            return [str(error)]
        refused = kerberos_refusal(self.profile, self.identity, spec)
        return [refused] if refused else []

    def renews_expired_tokens(self) -> bool:
        """Return whether the ResourceManager replaces the expired tokens of an application.

        The ResourceManager alone has the setting; a copy in the client's configuration counts if it
        does not show its own.
        """
        value = self.rm.setting(_PROXY_PRIVILEGES) or self.conf.get(_PROXY_PRIVILEGES)
        return value.lower() == "true"

    def _token_warnings(self, spec: JobSpec) -> list[str]:
        """Warn of a job that may outlive its delegation tokens."""
        lifetime = self.conf.token_lifetime
        if not self.identity.kerberos or spec.timeout is None or spec.timeout <= lifetime:
            return []
        limit, found = format_duration(lifetime), []
        if not spec.distribute_keytab:
            found.append(
                _(
                    "--timeout is longer than the {lifetime} of the job's delegation tokens: after "
                    "that time it needs a kernel, server or command with your ticket, or "
                    "--distribute_keytab."
                ).format(lifetime=limit)
            )
        if not self.renews_expired_tokens():
            found.append(
                _(
                    "Later than {lifetime} after the submission, containers fail on nodes that "
                    "have not run the job before, and YARN's log aggregation too, unless the "
                    "ResourceManager obtains new tokens "
                    "(yarn.resourcemanager.proxy-user-privileges.enabled)."
                ).format(lifetime=limit)
            )
        return found

    def _sharing_warnings(self, spec: JobSpec) -> list[str]:
        """Return what ``--share`` opens above the job directory, and what is not protected."""
        if not spec.share:
            return []
        warnings = []
        enabled = self.rm.setting(_ACLS) or self.conf.get(_ACLS, "false")
        if enabled.lower() != "true":
            warnings.append(
                _(
                    "YARN checks no ACLs on this cluster ({setting} is {value}): each user can "
                    "view this job's application and end it."
                ).format(setting=_ACLS, value=enabled)
            )
        storage, root = self.job_root()
        try:
            month = time.strftime("%Y%m", time.gmtime())
            found = traversal(storage, f"{root}/{month}/job", Sharing.of(spec.share), self.user)
            warnings += found.sentences(self.user)
        except AclsDisabledError as error:
            warnings.append(
                _("{error}: --share does not let others read the job directory.").format(
                    error=error.message
                )
            )
        return warnings

    def nodes(self) -> Sequence[Node]:
        """Return the nodes of the cluster; a long list is up to a minute old."""
        found: Sequence[Node] = self.waits.cache.get(NODES, FRESH_LARGE)
        return found

    def active_jobs(self) -> Collection[str] | None:
        """See ``Backend.active_jobs``: one request to the ResourceManager."""
        return active_jobs(self.rm)

    def overview(self) -> Overview:
        """See ``Backend.overview``: while jobs are polled, at most one request, for the nodes.

        Polls request the applications of all users from time to time. Without polls they are
        requested here.
        """
        cache = self.waits.cache
        cache.mark_viewed()
        scheduler, nodes = cache.get(SCHEDULER), cache.get(NODES)
        polled = not cache.is_old(APPS, times=3)
        return overview_of(scheduler, nodes, cache.latest(APPS) if polled else cache.get(APPS))

    def prepare(self, spec: JobSpec | None = None) -> None:
        """See ``Backend.prepare``: start the driver in the background; errors show at submit."""
        if spec is not None and spec.spark is not None:
            return
        if spec is not None and (spec.distributed or parse_python_env(spec.python_env).packed):
            self.applications.prepare_python()

        def work() -> None:
            try:
                self.driver.channel()
            except SubmarineError:
                return

        threading.Thread(target=work, daemon=True, name="submarine-driver-start").start()

    def submit(self, submission: Submission) -> Handle:
        """See ``Backend.submit``.

        Before a repeated attempt, and after a lost reply, the job is looked for by its tag. Two
        applications of one intent are still possible; the claim lets only one run the program.
        """
        existing = self.find(submission.agent.record.job_id)
        if existing is not None:
            return existing
        words = {
            role.name: describe_localized_files(submission, role.name)
            for role in submission.spec.roles
        }
        if submission.coordinator is not None:
            submission.coordinator.localizes.update(words)
        submitted = time.time()
        if submission.spec.spark is not None:
            return self._submit_spark(submission, submitted, words)
        application_id = submit_application(
            submission,
            self.applications,
            self.driver,
            self.rm,
            user=self.user,
            timeout=self.profile.timeout,
        )
        self.applications.build_archive_later()
        handle = self._handle(application_id, submitted, containers_needed(submission))
        return self._accepted(handle, submission.spec, words)

    def _submit_spark(
        self, submission: Submission, submitted: float, words: Mapping[str, str]
    ) -> Handle:
        """Submit a Spark job; see ``submit``."""
        cache = submission.runtime_zip.rpartition("/")[0]
        submitter = SparkSubmitter(
            self._gpu_profile,
            self.conf,
            submission.storage,
            cache,
            self.rm,
            self.user,
            find_spark(self.profile),
        )
        agent, python = self.applications.spark_agent(submission)
        application_id = submitter.submit(submission, agent, python)
        handle = self._handle(application_id, submitted, 1, spark=submission.agent.record.job_id)
        page = {_SPARK_PAGE: f"{self.rm.url}/proxy/{application_id}/"}
        return self._accepted({**handle, "links": page}, submission.spec, words)

    def _accepted(self, handle: Handle, spec: JobSpec, words: Mapping[str, str]) -> Handle:
        """Return the handle with what is localized, and set the priority.

        Parameters
        ----------
        words
            Role -> the files that its containers localize.
        """
        localizing = "; ".join(dict.fromkeys(filter(None, words.values())))
        handle = {**handle, "localizing": localizing} if localizing else handle
        warning = self._set_priority(str(handle["application_id"]), spec.priority)
        return {**handle, "warnings": [warning]} if warning else handle

    def find(self, job_id: str) -> Handle | None:
        """See ``Backend.find``."""
        app = find_application(self.rm, job_id, self.user)
        if app is None:
            return None
        spark = job_id if app.type == "SPARK" else ""
        return self._handle(app.id, app.started, needed_containers(app), spark=spark)

    def observe(self, handles: Handles) -> dict[str, Observation]:
        """See ``Backend.observe``."""
        return self._cleaned(observe(self.rm, handles, self.waits))

    def survey(self, handles: Handles, explain: Collection[str] = ()) -> dict[str, Observation]:
        """See ``Backend.survey``: two requests, see ``cluster.application_poll``."""
        return self._cleaned(self.surveys.poll(handles, explain))

    def _cleaned(self, found: dict[str, Observation]) -> dict[str, Observation]:
        """Delete the files that the killed drivers of Spark left behind; each job's once."""
        for observed in found.values():
            staging = (observed.handle or {}).get("staging")
            if observed.stage is Stage.ENDED and staging and staging not in self._deleted:
                self._deleted.add(str(staging))
                self._delete(str(staging))
        return found

    @cached_property
    def _deleted(self) -> set[str]:
        return set()

    def _delete(self, path: str) -> None:
        with suppress(StorageError), call_timeout(_CLEAN_SECONDS):
            self.storage.delete(path, recursive=True)

    def localizing(self, handle: Handle) -> tuple[str, float | None]:
        """See ``Backend.localizing``: one request to the ResourceManager."""
        return localizing_on(self.rm, handle)

    def stop(self, handle: Handle) -> None:
        """See ``Backend.stop``: over REST, or through the driver if REST is not allowed to kill."""
        application_id = str(handle["application_id"])
        app = application(self.rm, application_id)
        if app is None or app.ended:
            return
        if not self.rm.kill(application_id, f"cancelled by {self.user} with Submarine"):
            if self.identity.kerberos and app.user not in ("", self.user):
                raise modify_acl_error(self.user, application_id)
            user, timeout = self.profile.proxy_user or "", self.profile.timeout
            self.driver.call(lambda channel: channel.kill(application_id, user, timeout))
        elif handle.get("staging"):
            self._delete(str(handle["staging"]))
        elif app.state != "RUNNING" or int(handle.get("containers") or 1) > 1:
            # A master that never ran, or expects another attempt, leaves this directory.
            self._delete(f"/user/{self.user}/.skein/{application_id}")

    def _set_priority(self, application_id: str, priority: int | None) -> str | None:
        """Set the priority of the spec; return one sentence if that was not possible."""
        if priority is None:
            return None
        try:
            error = self.rm.set_priority(application_id, priority)
        except ClusterError as exc:
            error = exc.message
        return (
            _("The priority {priority} is not in force: {error}").format(
                priority=priority, error=error
            )
            if error
            else None
        )

    def _handle(
        self, application_id: str, submitted: float, containers: int, spark: str = ""
    ) -> Handle:
        """Return the handle of an application; ``spark`` is the id of a Spark job."""
        more = {}
        if spark:
            directory = layout.job_directory(self.job_root()[1], spark)
            more = {"spark": True, "staging": staging_directory(directory)}
        return {
            **more,
            "kind": "yarn",
            "application_id": application_id,
            "submitted": submitted,
            "beside": containers > 1,
            "containers": containers,
            "user": self.user,
            "page": f"{self.rm.url}/cluster/app/{application_id}",
        }


def _gateway(profile: Profile) -> str:
    """Return the base URL of the profile's HttpFS gateway; empty: there is none.

    Raises
    ------
    ConfigError
        If the setting is not the address of a server.
    """
    url = profile.settings.get("httpfs", "").rstrip("/")
    scheme, _colon, place = url.partition("://")
    if url and (scheme not in ("http", "https") or not place or "/" in place):
        raise ConfigError(
            _("The setting httpfs is {url!r}, which is not the address of a server.").format(
                url=url[:200]
            ),
            _("Write for example https://gateway.example.com:14000."),
        )
    return url
