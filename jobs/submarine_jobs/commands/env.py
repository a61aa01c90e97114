"""``env build|list|show|check|publish|rm``: packed Python environments in the job root."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from submarine_jobs.client import PackedEnvironments
from submarine_jobs.commands.grammar import (
    Verb,
    backend_option,
    option,
    profile_option,
    verb_group,
)
from submarine_jobs.commands.run import click_type
from submarine_jobs.display import columns
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome, SubmitProgress
from submarine_jobs.model import PackedEnvironment, PythonEnv, parse_python_env
from submarine_jobs.options import PYTHON_ENV
from submarine_jobs.text import duration, one_line, size
from submarine_runtime.translation import _, gettext_noop

if TYPE_CHECKING:
    from submarine_jobs.environments import CachedEnvironment, EnvironmentCache

_COLUMNS = (
    gettext_noop("DIGEST"),
    gettext_noop("SOURCE"),
    gettext_noop("SIZE"),
    gettext_noop("BASE"),
    gettext_noop("LAST USE"),
    gettext_noop("JOBS"),
)
#: Characters of a digest in a table; `env show` shows the whole one.
_SHORT = 12


@verb_group(
    {
        gettext_noop("Environments of jobs"): {
            "build": gettext_noop("Build or pack an environment for later jobs."),
            "list": gettext_noop("List the packed environments with size and last use."),
            "show": gettext_noop("Show the archives of an environment."),
            "check": gettext_noop("Check an environment without packing it."),
            "publish": gettext_noop("Publish an environment for all users."),
            "rm": gettext_noop("Remove an environment that no job uses."),
        }
    }
)
def env() -> None:
    """Python environments that `run --python-env` has packed into the job root.

    An environment is packed once for each content. `gc` removes those that no job uses.
    """


def _environment(frontend: Frontend, text: str | None, profile_env: str) -> PythonEnv:
    """Return the environment that a command names, by default the configured one."""
    found = parse_python_env(text or profile_env)
    if not found.packed:
        raise UsageError(
            _("--python-env {env} is not packed, so there is nothing to build.").format(
                env=one_line(found.text, 80)
            ),
            _("Name auto, conda:NAME, requirements:FILE, uv:LOCK or pyproject."),
        )
    return found


@env.command(
    cls=Verb, example=("env build auto", "env build requirements:train.txt", "env build uv:uv.lock")
)
@click.argument("environment", metavar="[ENV]", required=False, type=click_type(PYTHON_ENV))
@profile_option
@backend_option
@click.pass_obj
def build(
    frontend: Frontend,
    /,
    environment: str | None,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Build or pack an environment and upload it, so that the next job needs not.

    ENV is a value of `run --python-env`, by default the configured one.
    """
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    chosen = _environment(frontend, environment, session.profile.python_env)
    with SubmitProgress(frontend) as line:
        provided = PackedEnvironments(session, backend).build(chosen, line.show)
    assert provided is not None
    head = (
        _("{env} is on the cluster: {uploaded} were uploaded.").format(
            env=one_line(chosen.text, 200), uploaded=size(provided.uploaded)
        )
        if provided.uploaded
        else _("The cluster has {env} already.").format(env=one_line(chosen.text, 200))
    )
    value = {"digest": provided.digest, "uploaded": provided.uploaded, **_urls(provided.files)}
    return Outcome("\n".join([head, *map(one_line, provided.files.archives)]), value=value)


@env.command("list", cls=Verb, example=("env list", "env list --json"))
@profile_option
@backend_option
@click.pass_obj
def list_(frontend: Frontend, /, profile: str | None, backend: str | None) -> Outcome:
    """List the packed environments in the job root with size and last use."""
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    environments = PackedEnvironments(session, backend)
    cache = environments.cache
    found = cache.list()
    if not found:
        text = _("There are no packed environments.\n  {command} env build auto").format(
            command=frontend.command
        )
        return Outcome(text, value=[])
    in_use = environments.in_use()
    facts = [facts_of(cache, one, in_use) for one in found]
    note = _("{size} in total. {command} gc removes those that no job uses.").format(
        size=size(sum(one.size for one in found)), command=frontend.command
    )
    rows = [row_of(fact) for fact in facts]
    return Outcome(columns.text(_COLUMNS, rows, note), columns.html(_COLUMNS, rows, note), facts)


@env.command(cls=Verb, example=("env show 5d41402abc4b", "env show 5d41402abc4b --json"))
@click.argument("digest", metavar="DIGEST")
@profile_option
@backend_option
@click.pass_obj
def show(frontend: Frontend, /, digest: str, profile: str | None, backend: str | None) -> Outcome:
    """Show the archives of an environment; DIGEST may be the beginning of its digest."""
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    environments = PackedEnvironments(session, backend)
    cache = environments.cache
    one = cache.find_cached(digest)
    facts = facts_of(cache, one, environments.in_use())
    described = cache.description(one.key)
    archives = described.archives if described else ()
    lines = [
        (_("Digest"), one.digest),
        (_("Source"), str(facts["source"]) or "-"),
        (_("Last use"), _age(one.used)),
        (_("Jobs"), str(facts["in_use"])),
        *((_("Archive"), f"{cache.url}/{it.name} ({size(it.size)})") for it in archives),
        *((_("SHA-256"), it.sha256) for it in archives),
    ]
    width = max(len(label) for label, _fact in lines)
    text = "\n".join(f"{label:<{width}}  {one_line(fact, 500)}" for label, fact in lines)
    return Outcome(text, value={**facts, "archives": [it._asdict() for it in archives]})


@env.command(cls=Verb, example=("env check auto", "env check requirements:train.txt"))
@click.argument("environment", metavar="[ENV]", required=False, type=click_type(PYTHON_ENV))
@profile_option
@backend_option
@click.pass_obj
def check(
    frontend: Frontend,
    /,
    environment: str | None,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Check that an environment can be built or packed, and whether the cluster has it.

    Nothing is built or uploaded. ENV is a value of `run --python-env`.
    """
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    chosen = _environment(frontend, environment, session.profile.python_env)
    with SubmitProgress(frontend) as line:
        found = PackedEnvironments(session, backend).find(chosen, line.show)
    head = (
        _("The cluster has {env}; a job with it uploads nothing.")
        if found is not None
        else _("{env} can be packed; the next job with it uploads it.")
    ).format(env=one_line(chosen.text, 200))
    value = {"on_cluster": found is not None, **(_urls(found.files) if found else {})}
    return Outcome(head, value=value)


@env.command(
    cls=Verb,
    example=(
        "env publish uv:uv.lock hdfs:///envs/torch-2.15.tar.gz",
        "env publish auto hdfs:///envs/ml-7.tar.gz",
    ),
)
@click.argument("environment", metavar="ENV", type=click_type(PYTHON_ENV))
@click.argument("uri", metavar="URI")
@profile_option
@backend_option
@click.pass_obj
def publish(
    frontend: Frontend,
    /,
    environment: str,
    uri: str,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Build or pack an environment and put it at URI, for `run --python-env shared:URI`.

    YARN unpacks it once on each node for all users. All users may read it; it is never replaced.
    """
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    chosen = _environment(frontend, environment, session.profile.python_env)
    if chosen.kind in ("archive", "shared"):
        raise UsageError(
            _("{env} is an archive already.").format(env=one_line(chosen.text, 200)),
            _("Copy it: `hdfs dfs -cp`, with mode 644."),
        )
    with SubmitProgress(frontend) as line:
        written = PackedEnvironments(session, backend).publish(chosen, uri, line.show)
    text = _("{env} is published: {size}.\n  --python-env shared:{uri}").format(
        env=one_line(chosen.text, 200), size=size(written), uri=one_line(uri, 500)
    )
    return Outcome(text, value={"uri": uri, "size": written})


@env.command(cls=Verb, example=("env rm 5d41402abc4b", "env rm 5d41402abc4b --force"))
@click.argument("digest", metavar="DIGEST")
@option("--force", is_flag=True, help="Remove an environment that jobs may still use.")
@profile_option
@backend_option
@click.pass_obj
def rm(
    frontend: Frontend,
    /,
    digest: str,
    force: bool,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Remove an environment; the next job with it packs it again.

    While a job uses it, or another environment is a delta of it, this is refused.
    """
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    environments = PackedEnvironments(session, backend)
    cache = environments.cache
    one = cache.find_cached(digest)
    if not force:
        in_use = environments.in_use()
        if in_use is None or one.key in in_use:
            raise UsageError(
                _("{digest} is used by jobs that have not ended.").format(digest=one.digest)
                if in_use is not None
                else _("It is not known whether jobs use {digest}.").format(digest=one.digest),
                _("Wait for their end, or add --force."),
            )
        others = [
            other.digest[:_SHORT]
            for other in cache.list()
            if other.key != one.key and one.key in cache.bases(other.key)
        ]
        if others:
            raise UsageError(
                _("{digest} is the base of {others}.").format(
                    digest=one.digest, others=", ".join(others[:5])
                ),
                _("Remove these first, or add --force."),
            )
    if not cache.remove(one):
        raise UsageError(
            _("{digest} was used while it was removed, so it is kept.").format(digest=one.digest),
            _("Try it again."),
        )
    text = _("{digest} is removed; {size} are free.").format(digest=one.digest, size=size(one.size))
    return Outcome(text, value={"digest": one.digest, "freed": one.size})


def facts_of(
    cache: EnvironmentCache, one: CachedEnvironment, in_use: set[str] | None
) -> dict[str, Any]:
    """Return what is known about an environment, as JSON."""
    described = cache.description(one.key)
    return {
        "digest": one.digest,
        "source": described.source if described else "",
        "size": one.size,
        "base": next((cache_digest(key) for key in cache.bases(one.key)), ""),
        "used": one.used,
        "in_use": _("unknown") if in_use is None else (_("in use") if one.key in in_use else "-"),
    }


def cache_digest(key: str) -> str:
    """Return the digest of a key."""
    return key.rpartition("-")[2]


def row_of(facts: dict[str, Any]) -> tuple[str, ...]:
    """Return the row of an environment in a table."""
    return (
        str(facts["digest"])[:_SHORT],
        one_line(facts["source"], 40) or "-",
        size(facts["size"]),
        str(facts["base"])[:_SHORT] or "-",
        _age(facts["used"]),
        str(facts["in_use"]),
    )


def _age(used: float | None) -> str:
    return "-" if used is None else duration(max(0.0, time.time() - used))


def _urls(files: PackedEnvironment) -> dict[str, Any]:
    return {"archives": list(files.archives)}
