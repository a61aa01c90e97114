"""Small parts of the core: ids, credentials, tail, placeholders, spec."""

from __future__ import annotations

import re
import ssl

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.access import JobSecret, LogChunk, create_secret, tls_context
from submarine_jobs.errors import UsageError
from submarine_jobs.logs import Tail
from submarine_jobs.model import JobSpec, Localization, Resources, Role, fill_spec
from submarine_jobs.model.placeholders import fill
from submarine_jobs.submit.job_directory import new_job_id, slug
from submarine_runtime.protocol import layout


@given(st.text())
def test_any_name_gives_a_safe_id(name: str) -> None:
    job_id = new_job_id(name)
    assert layout.is_job_id(job_id)
    assert re.fullmatch(r"[a-z0-9-]{1,64}", job_id)


def test_id_is_readable() -> None:
    assert new_job_id("My Digits!", 1_795_000_000).startswith("my-digits-2026")
    assert slug("---") == "job"


@pytest.mark.parametrize("text", ["", "../x-20261120-7f3a", "x-20261120-7f3a/..", "a" * 200, "x"])
def test_what_is_no_job_id_gives_no_path(text: str) -> None:
    with pytest.raises(ValueError, match="job id"):
        layout.job_directory("/jobs", text)


def test_secret_round_trip_and_certificate_is_usable() -> None:
    secret = create_secret("digits-20261120-7f3a")
    assert JobSecret.from_bytes(secret.to_bytes()) == secret
    assert secret.token not in repr(secret)
    assert isinstance(tls_context(secret), ssl.SSLContext)
    assert create_secret("x").token != secret.token


@given(st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.binary(max_size=60))))
def test_tail_is_bounded_and_never_raises(pieces: list[tuple[str, bytes]]) -> None:
    tail = Tail(limit=100)
    for stream, data in pieces:
        tail.add(LogChunk(stream, 0, data))
    assert len(tail.text().encode("utf-8", "replace")) <= 300


def test_tail_keeps_lines_of_two_streams_apart() -> None:
    tail = Tail()
    tail.add(LogChunk("stdout", 0, b"Epoch 1"))
    tail.add(LogChunk("stderr", 0, b"warning\n"))
    tail.add(LogChunk("stdout", 7, b"/5\n"))
    assert tail.text() == "warning\nEpoch 1/5\n"


def test_placeholders() -> None:
    values = {"input_path": "hdfs://in", "checkpoint_path": None}
    assert fill("x %input_path% 50% %date%", values) == "x hdfs://in 50% %date%"
    with pytest.raises(UsageError, match="--checkpoint_path"):
        fill("%checkpoint_path%", values)


SPECS = st.builds(
    JobSpec,
    name=st.text(max_size=20),
    backend=st.sampled_from(["yarn", "local"]),
    roles=st.tuples(
        st.builds(
            Role,
            resources=st.builds(Resources, memory=st.integers(1), gpus=st.integers(0, 8)),
            command=st.none() | st.text(),
            env=st.dictionaries(st.text(), st.text()),
        )
    ),
    args=st.lists(st.text()).map(tuple),
    localization=st.lists(st.builds(Localization, source=st.text(), target=st.text())).map(tuple),
    timeout=st.none() | st.floats(0, 1e9),
)


@pytest.mark.slow
@given(SPECS)
def test_spec_round_trip(spec: JobSpec) -> None:
    assert JobSpec.from_bytes(spec.to_bytes()) == spec
    assert JobSpec.from_bytes(spec.to_bytes()).to_bytes() == spec.to_bytes()


def test_spec_is_filled_everywhere() -> None:
    role = Role(command="train %input_path%", env={"OUT": "%saved_model_path%"})
    spec = JobSpec(
        "n",
        "local",
        roles=(role,),
        args=("%checkpoint_path%",),
        input_path="i",
        checkpoint_path="c",
        saved_model_path="s",
    )
    filled = fill_spec(spec)
    assert filled.worker.command == "train i"
    assert filled.worker.env == {"OUT": "s"}
    assert filled.args == ("c",)


def test_a_newer_spec_is_refused() -> None:
    with pytest.raises(ValueError, match="version"):
        JobSpec.from_bytes(b'{"version": 99}')
