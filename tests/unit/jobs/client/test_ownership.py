"""Jobs of other users in a shared job root: show the owner, never run them without ``--yes``.

The other user is real: the directory has another uid, which only root can give it.
"""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from submarine_jobs.client import Session, foreign_owner, run_attempts as attempts
from submarine_jobs.commands import execute
from submarine_jobs.errors import JobNotFoundError, RefusedError, UsageError
from submarine_jobs.model import JobSpec, Profile, Role, hadoop_user
from submarine_jobs.tracking import IndexEntry, JobQuery, Owner, with_owner
from submarine_runtime.protocol import JobRecord, State
from tests.frontends import RecordingFrontend

OTHER = pwd.getpwnam("nobody")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's file")
THEIRS, MINE = "digits-20261122-0002", "digits-20261122-0001"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    return Session(Profile(backend="local", state_dir=tmp_path / "state"))


def put(session: Session, job_id: str, user: str, *, uid: int | None = None) -> Path:
    """The directory of a job that has ended; known only to the job root."""
    _, root = session.backend().job_root()
    folder = Path(root) / "202611" / job_id
    folder.mkdir(parents=True, mode=0o755)
    record = JobRecord(job_id, "digits", State.SUCCEEDED, user=user, backend="local", created=5.0)
    spec = JobSpec("digits", roles=(Role("worker", command="true"),), backend="local")
    (folder / "record.json").write_text(json.dumps(record.to_json()))
    (folder / "spec.json").write_bytes(spec.to_bytes())
    if uid is not None:
        os.chown(folder, uid, -1)
    return folder


@pytest.fixture
def me() -> str:
    return hadoop_user()


@needs_root
def test_a_job_with_a_forged_user_is_shown_with_its_owner(session: Session, me: str) -> None:
    put(session, THEIRS, me, uid=OTHER.pw_uid)
    record = session.job(THEIRS).record()
    assert record.user == "nobody"
    assert record.warnings == [
        f"The record names {me} as the job's user, but its directory belongs to nobody."
    ]
    (listed,) = session.jobs()
    assert listed.user == "nobody"
    person = RecordingFrontend("cli", session=session)
    shown = execute(["show", THEIRS], person)
    assert person.said == [f"{THEIRS} is a job of nobody."]
    assert "its directory belongs to nobody" in shown.text
    assert session.store.page(JobQuery(user=me)).total == 0


@needs_root
@pytest.mark.parametrize("user", ["", "nobody", None])
def test_another_users_job_is_not_run_without_a_question(
    session: Session, me: str, user: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted: list[str] = []
    monkeypatch.setattr(
        "submarine_jobs.client.repetition.submit",
        lambda own, spec, *_: submitted.append(spec.rerun_of) or own.job(THEIRS),
    )
    put(session, THEIRS, me if user is None else user, uid=OTHER.pw_uid)
    why = f"{THEIRS} is a job of nobody, and running it again runs their code as you."
    with pytest.raises(UsageError) as refused:
        execute(["rerun", THEIRS], RecordingFrontend("cli", session=session))
    assert (refused.value.message, "--yes" in refused.value.fix) == (why, True)
    no = RecordingFrontend("cli", session=session, answer=False)
    assert execute(["rerun", THEIRS], no).text == "Nothing was submitted."
    assert no.questions == [f"{why} Run it?"]
    with pytest.raises(RefusedError, match=r"is a job of nobody.*yes=True"):
        session.job(THEIRS).rerun(resume=True)
    assert submitted == []
    execute(["rerun", THEIRS, "--yes"], RecordingFrontend("cli", session=session))
    execute(["rerun", THEIRS], RecordingFrontend("cli", session=session, answer=True))
    session.job(THEIRS).rerun(yes=True)
    assert submitted == [THEIRS] * 3


def test_a_record_of_another_user_in_ones_own_directory_asks_too(session: Session) -> None:
    put(session, THEIRS, "bob")
    with pytest.raises(UsageError, match="is a job of bob, and running it again"):
        execute(["rerun", THEIRS], RecordingFrontend("cli", session=session))


@needs_root
def test_a_checkpoint_of_another_user_is_not_used_without_a_question(
    session: Session, me: str, tmp_path: Path
) -> None:
    put(session, THEIRS, me, uid=OTHER.pw_uid)
    (tmp_path / "fit.py").write_text("print(1)\n")
    words = ["run", str(tmp_path / "fit.py"), "--resume", THEIRS, "--backend", "local"]
    with pytest.raises(UsageError, match=r"is a job of nobody, .*may run their code") as refused:
        execute(words, RecordingFrontend("cli", session=session))
    assert "--force" in refused.value.fix
    no = RecordingFrontend("cli", session=session, answer=False)
    assert execute(words, no).text == "Nothing was submitted."
    assert len(no.questions) == 1


@needs_root
def test_names_of_other_users_jobs_do_not_shadow_ones_own(session: Session, me: str) -> None:
    put(session, MINE, me)
    put(session, THEIRS, me, uid=OTHER.pw_uid)  # the newer one
    session.jobs()
    assert session.job("digits").id == MINE
    assert session.job("digits-2026").id == MINE
    assert session.job("last").id == MINE
    assert session.job("digits-20261122-0002").id == THEIRS


@needs_root
def test_ones_own_job_of_a_name_is_looked_for_before_another_users_is_taken(
    session: Session, me: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("submarine_jobs.client.listing.newest_months", lambda: ["202611"])
    put(session, THEIRS, me, uid=OTHER.pw_uid)
    assert session.job("digits").id == THEIRS  # there is no other
    with pytest.raises(JobNotFoundError):
        session.job("last")
    put(session, MINE, me)  # this machine has not seen it yet
    assert session.job("digits").id == MINE


@needs_root
def test_an_attempt_of_a_run_does_not_join_another_users_job(session: Session, me: str) -> None:
    put(session, THEIRS, me, uid=OTHER.pw_uid)
    storage, root = session.backend().job_root()
    where = attempts.RunStart(storage, root, "nightly", "0" * 32)
    with pytest.raises(RefusedError, match="is a job of nobody: its results are not used"):
        attempts._joinable_job(session, where, THEIRS, print)


@pytest.mark.parametrize("user", ["", "me"])
def test_ones_own_job_is_run_without_a_question(session: Session, me: str, user: str) -> None:
    put(session, MINE, user and me)
    assert foreign_owner(session.job(MINE)) == ""


def test_the_owner_of_hdfs_is_a_name(me: str) -> None:
    record = JobRecord(MINE, "digits", State.RUNNING, user=me)
    assert Owner(me, me).foreign_to(me) == ""
    assert Owner("bob", me).foreign_to(me) == "bob"
    assert Owner(me, "bob").foreign_to(me) == "bob"
    assert with_owner(record, Owner("bob", me)).user == "bob"
    assert with_owner(record, Owner(me, me)) is record
    assert with_owner(record, None) is record


def test_a_user_in_the_index_is_a_value_of_sql(session: Session, me: str) -> None:
    row = IndexEntry(MINE, "digits", "local", "default", "file:///x", 1.0, State.RUNNING)
    session.store.put(row)
    session.store.put_owner(MINE, Owner("' OR '1'='1", me))
    assert session.store.named("digits", me) is None
    assert session.store.named("digits", "' OR '1'='1") is None  # recorded names another user
    assert session.store.named("' OR '1'='1", me) is None
    assert session.store.named("digits") is not None
    find: Callable[[str], list[IndexEntry]] = session.store.beginning_with
    assert find("' OR 1=1 --") == []
