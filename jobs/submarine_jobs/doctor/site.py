"""Check of the site file: its owner, mode and content, and the queue of this profile."""

from __future__ import annotations

from submarine_jobs.config import SITE_FILE, SITE_VARIABLE, read_site_file
from submarine_jobs.doctor.context import DoctorContext
from submarine_jobs.doctor.result import Finding, error, ok, warning
from submarine_runtime.translation import _


def site(context: DoctorContext) -> Finding:
    """Check the site file; one that is refused is reported by its ConfigError."""
    file = read_site_file(context.environ)
    if file is None or file.locks is None:
        return ok(_("There is no {site}, so nothing is locked.").format(site=SITE_FILE))
    listed = "; ".join(f"{name}: {text}" for name, text in file.locks.describe().items())
    sentence = (
        _("{path} is valid and locks {locks}.").format(path=file.path, locks=listed)
        if listed
        else _("{path} is valid and locks nothing.").format(path=file.path)
    )
    queue = context.profile.queue
    if queue is not None and not file.locks.allows_queue(queue):
        refused = _("The configured queue {queue} is not allowed.").format(queue=queue)
        return error(f"{sentence} {refused}", _("Set queue to one of the allowed queues."))
    if file.path != SITE_FILE:
        unset = _("{variable} names it, and each user can unset that variable.").format(
            variable=SITE_VARIABLE
        )
        return warning(
            f"{sentence} {unset}",
            _("Use the variable for tests only: install the file as {site}, owned by root.").format(
                site=SITE_FILE
            ),
        )
    if context.environ.get(SITE_VARIABLE):
        ignored = _("{variable} has no effect, because this file exists.").format(
            variable=SITE_VARIABLE
        )
        return warning(f"{sentence} {ignored}", _("Unset it."))
    return ok(sentence)
