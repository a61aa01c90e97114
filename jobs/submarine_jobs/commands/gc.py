"""``gc``: remove packed environments that no job uses."""

from __future__ import annotations

import click

from submarine_jobs.client import PackedEnvironments
from submarine_jobs.commands.env import facts_of, row_of
from submarine_jobs.commands.grammar import (
    Verb,
    backend_option,
    duration_option,
    option,
    profile_option,
)
from submarine_jobs.display import columns
from submarine_jobs.environments import unused
from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.frontends import JOB_FAILED, Frontend, Outcome
from submarine_jobs.text import duration, size
from submarine_runtime.translation import _, gettext_noop, ngettext

#: A submission may take this long from the first use of its environment to its intent.
LEAST = 3600.0
_COLUMNS = (
    gettext_noop("DIGEST"),
    gettext_noop("SOURCE"),
    gettext_noop("SIZE"),
    gettext_noop("BASE"),
    gettext_noop("LAST USE"),
)


@click.command("gc", cls=Verb, example=("gc", "gc --older-than 7d", "gc --older-than 1h --yes"))
@duration_option(
    "--older-than",
    default="30d",
    help="Only environments whose last use is longer ago, at least 1h [30d].",
)
@option("--yes", "-y", is_flag=True, help="Do not ask.")
@profile_option
@backend_option
@click.pass_obj
def gc(
    frontend: Frontend,
    /,
    older_than: float,
    yes: bool,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """List packed environments and archives that no job uses, and remove them after a question.

    A removed environment is packed again by the next job that needs it. Where no question can be
    asked, they are only listed; --yes removes them.
    """
    if older_than < LEAST:
        raise UsageError(
            _("--older-than {time} is too short.").format(time=duration(older_than)),
            _("Give at least 1h: a job that is being submitted may use a newer environment."),
        )
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    packed = PackedEnvironments(session, backend)
    cache = packed.cache
    environments = cache.list()
    in_use = packed.in_use()
    if in_use is None:
        raise ClusterError(
            _("It is not known which environments the unfinished jobs use."),
            _("Try it again when the cluster answers."),
        )
    old = [one for one in unused(environments, cache.now(), older_than) if one.key not in in_use]
    # A delta that is kept needs its base.
    kept = [one for one in environments if one not in old]
    needed = {base for one in kept for base in cache.bases(one.key)}
    found = [one for one in old if one.key not in needed]
    if not found:
        return Outcome(
            _("No packed environment is unused for {time}.").format(time=duration(older_than)),
            value={"removed": [], "unused": [], "freed": 0},
        )
    total = sum(one.size for one in found)
    note = ngettext("{count} environment, {size}.", "{count} environments, {size}.", len(found))
    facts = [facts_of(cache, one, in_use) for one in found]
    table = columns.text(
        _COLUMNS,
        [row_of(fact)[:-1] for fact in facts],
        note.format(count=len(found), size=size(total)),
    )
    value = {"unused": facts, "removed": [], "freed": 0}
    asked = frontend.interactive and not yes
    if asked:
        frontend.say(table)
    shown = "" if asked else f"{table}\n"
    if not yes and not frontend.confirm(_("Remove them?")):
        text = _("Nothing was removed; --yes asks no question.")
        return Outcome(shown + text, value=value, exit_code=JOB_FAILED)
    removed = [one for one in found if cache.remove(one)]
    freed = sum(one.size for one in removed)
    text = ngettext(
        "{count} environment is removed; {size} are free.",
        "{count} environments are removed; {size} are free.",
        len(removed),
    ).format(count=len(removed), size=size(freed))
    used = len(found) - len(removed)
    if used:
        text += " " + ngettext(
            "{count} was used meanwhile and is kept.",
            "{count} were used meanwhile and are kept.",
            used,
        ).format(count=used)
    value = {"unused": facts, "removed": [one.digest for one in removed], "freed": freed}
    return Outcome(shown + text, value=value)
