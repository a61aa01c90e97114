"""Submit the jobs of REST requests: options and a bundle, with the checks of ``run``.

A request with a request id is submitted once; see ``submarine_jobs.client.submit_once``.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from submarine_jobs.client import Job, Session, SubmitRequest, changed, submit_once
from submarine_jobs.commands.grammar import execute
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.options import RUN_OPTIONS
from submarine_jobs.program import read_uploaded_zip
from submarine_jobs.python_api import known_options, to_arguments
from submarine_jobs.text import one_line
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.config import Config
    from submarine_server.service.job_service import JobService

#: Seconds for a submission, which uploads the job's files.
SUBMIT_TIMEOUT = 120.0
#: Options of `run` that a request cannot have: it has no variables, terminal or notebook.
_UNFIT = ("wait", "wait_job_finish", "on_interrupt", "dry_run", "verbose", "with")
#: Keywords whose values are not the text of one option.
_STRUCTURED = ("args", "params", "roles", "inputs", "returns")
_REQUEST_ID = re.compile(r"[!-~]{1,200}\Z")
#: Messages of one submission, and characters of each.
_MAX_MESSAGES, _MAX_MESSAGE = 50, 400


@dataclass(frozen=True)
class Submission:
    """What a request submits.

    Parameters
    ----------
    options
        Options of ``run``, as keywords of ``submarine_jobs.run``.
    files
        Files of the program by name; empty: the tasks run commands.
    request_id
        Empty: the request is not repeated.
    """

    options: Mapping[str, Any]
    files: Mapping[str, bytes]
    request_id: str = ""

    @property
    def request(self) -> SubmitRequest:
        """The request id with the digest of options and files; times in the zip do not count."""
        digest = hashlib.sha256(json.dumps(self.options, sort_keys=True).encode())
        for name, content in sorted(self.files.items()):
            digest.update(f"\nfile {len(name)} {name} {len(content)}\n".encode())
            digest.update(content)
        return SubmitRequest(self.request_id, digest.hexdigest())


@dataclass(frozen=True)
class Submitted:
    """A submitted job; ``repeated``: by an earlier request with the same id."""

    job_id: str
    repeated: bool
    messages: tuple[str, ...] = ()


class RequestFrontend(Frontend):
    """The front end of a request: it has no terminal, and keeps the messages.

    Parameters
    ----------
    session
        The session of the server.
    """

    def __init__(
        self,
        session: Session,
        files: Mapping[str, bytes],
        claim: Callable[[str], bool] | None,
    ) -> None:
        super().__init__()
        self._session = session
        self.files = files
        self.claim = claim
        self.messages: list[str] = []

    def session(self, config: Config) -> Session:
        """Return the server's session if the profile is the same."""
        if config.profile == self._session.profile:
            return self._session
        return super().session(config)

    def say(self, text: str) -> None:
        """Keep a message for the response."""
        if len(self.messages) < _MAX_MESSAGES:
            self.messages.append(one_line(text, _MAX_MESSAGE))


def parse_submission(options: str, bundle: bytes | None, request_id: str) -> Submission:
    """Return the checked parts of a request; unpacks the bundle.

    Raises
    ------
    UsageError
        If a part is invalid.
    """
    if request_id and not _REQUEST_ID.match(request_id):
        raise UsageError(
            _("The request id is not 1 to 200 printable ASCII characters without spaces."),
            _("Use for example a UUID."),
        )
    try:
        given = json.loads(options or "{}", parse_constant=_refuse_constant)
        json.dumps(given, ensure_ascii=False).encode()  # UnicodeEncodeError is a ValueError
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise UsageError(_("The part options of the request is not a JSON object."))
    _check_options(given)
    files = read_uploaded_zip(bundle) if bundle is not None else {}
    if bundle is not None and not files:
        raise UsageError(_("The bundle has no file."), _("Zip the files of the program."))
    if not files and given.get("program") is not None:
        raise UsageError(
            _("The option program names a file, and the request has no bundle."),
            _("Send the program's files as the part bundle, a zip."),
        )
    return Submission(given, files, request_id)


def _refuse_constant(text: str) -> Any:
    raise ValueError(text)


def _check_options(given: Mapping[str, Any]) -> None:
    known = known_options()
    for key, value in given.items():
        shown = one_line(key, 40)
        option = known.get(key)
        if key not in _STRUCTURED and (option is None or option.name not in RUN_OPTIONS):
            raise UsageError(
                _("{name} is not an option of run.").format(name=shown),
                _("The options are those of `submarine run --help`, with _ for -."),
            )
        if key in _UNFIT:
            raise UsageError(
                _("The option {name} is not available in a request.").format(name=shown),
                _("Leave it out; other requests wait for the job and show it."),
            )
        if option is not None and option.is_flag and not isinstance(value, bool | None):
            raise UsageError(_("{name} must be true or false.").format(name=shown))
        if _has_nul(value):
            raise UsageError(_("{name} has a NUL character.").format(name=shown), _("Remove it."))
        if key not in ("params", "roles") and not _is_plain(value):
            raise UsageError(
                _(
                    "{name} must be a text, a number, true or false, or a list or object of these."
                ).format(name=shown)
            )


def _has_nul(value: Any) -> bool:
    return "\\u0000" in json.dumps(value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        value = list(value.values())
    parts = value if isinstance(value, list) else [value]
    return not any(isinstance(part, list | Mapping) for part in parts)


class Submissions:
    """Submits jobs in threads; equal requests at the same time share one submission."""

    def __init__(self, service: JobService) -> None:
        self._service = service
        self._pending: dict[str, tuple[str, asyncio.Future[Submitted]]] = {}

    async def submit(self, submission: Submission) -> Submitted:
        """Submit a job, or return that of an earlier request with the same id.

        Raises
        ------
        RequestChangedError
            If the earlier request had another content.
        SubmarineError
            If the job cannot be submitted.
        """
        if not submission.request_id:
            return await self._start(submission)
        request = submission.request
        pending = self._pending.get(request.request_id)
        if pending is not None:
            digest, running = pending
            if digest != request.digest:
                raise changed(request)
            first = await asyncio.shield(running)
            return Submitted(first.job_id, True, first.messages)
        task = asyncio.ensure_future(self._start(submission))
        self._pending[request.request_id] = request.digest, task
        task.add_done_callback(lambda _task: self._pending.pop(request.request_id, None))
        return await asyncio.shield(task)

    async def _start(self, submission: Submission) -> Submitted:
        return await self._service.call(self._run, submission, timeout=SUBMIT_TIMEOUT)

    def _run(self, submission: Submission) -> Submitted:
        options = dict(submission.options)
        profile = options.pop("profile", None)
        session = self._service.open_session(str(profile) if profile is not None else "")
        messages: list[str] = []

        def start(claim: Callable[[str], bool] | None) -> Job:
            frontend = RequestFrontend(session, submission.files, claim)
            words = ["run", *to_arguments(options, {})]
            if session.profile.name not in ("default", ""):
                words[1:1] = [f"--profile={session.profile.name}"]
            outcome = execute(words, frontend)
            messages[:] = frontend.messages
            if outcome.job is None:
                raise UsageError(outcome.text or _("The options ask for no job."))
            return outcome.job

        if not submission.request_id:
            return Submitted(start(None).id, False, tuple(messages))
        backend = options.get("backend")
        job, repeated = submit_once(
            session, str(backend) if backend is not None else None, submission.request, start
        )
        return Submitted(job.id, repeated, tuple(messages))
