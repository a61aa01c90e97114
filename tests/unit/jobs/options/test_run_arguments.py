"""Whatever is typed after ``run`` is understood or refused; options and words say the same."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType

from hypothesis import given, settings, strategies as st

from submarine_jobs.commands.run import parse_run
from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import Localization, NamedInput, Profile
from submarine_jobs.options import RoleOptions, RunOptions, merge_roles, spec_from_options
from submarine_jobs.options.command_line import to_argv

PROFILE = Profile(backend="yarn", queue="ml", python="/opt/py/bin/python")


class Program:
    program = "main.py"
    digest = "d" * 64
    files: Mapping[str, bytes] = MappingProxyType({"main.py": b""})


_WORD = st.text(string.ascii_letters + string.digits + " _-./=%'\"", min_size=1, max_size=20)


_NAME = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,10}", fullmatch=True)


_TARGET = st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8})?", fullmatch=True)


_LOCAL = st.builds(Localization, _NAME.map("hdfs://nn:1/".__add__), _TARGET)


_SOME = st.none() | st.integers(1, 99)


_ENV = st.dictionaries(_NAME.filter(lambda n: not n.startswith("SUBMARINE_")), _WORD, max_size=3)


_PLACES = st.lists(_NAME, max_size=2, unique=True).map(tuple)


_SECONDS = st.none() | st.integers(1, 10_000_000).map(float)


_ENVIRONMENT = st.sampled_from(
    [None, "host", "auto", "path:/opt/env", "archive:hdfs:///e.zip", "docker:a/b:1"]
)


_ROLE = st.builds(
    RoleOptions,
    name=st.sampled_from(["worker", "ps", "chief", "evaluator", "reader", "tensorboard", "a_b1"]),
    instances=st.none() | st.integers(0, 9),
    memory=_SOME,
    vcores=_SOME,
    gpus=st.none() | st.integers(0, 9),
    env=_ENV,
    kind=st.sampled_from([None, "tracked", "untracked", "sidecar"]),
    least=_SOME,
    after=_PLACES,
    label=st.none() | _NAME,
    nodes=_PLACES,
    racks=_PLACES.map(lambda names: tuple(f"/{name}" for name in names)),
    avoid=_PLACES,
    relax=st.booleans(),
    spread=st.booleans(),
    processes=_SOME,
    python_env=_ENVIRONMENT,
    image=st.none() | _NAME,
    command=st.none() | st.text(min_size=1, max_size=20).filter(lambda t: t.strip().strip("\0")),
).filter(lambda role: role.command is None or "\0" not in role.command)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8).filter(lambda text: "\0" not in text),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=4,
)


_OPTIONS = st.builds(
    RunOptions,
    name=st.none() | _NAME,
    program=st.none() | _NAME.map(lambda stem: f"{stem}.py"),
    args=st.lists(_WORD, max_size=4).map(tuple),
    framework=st.sampled_from(["auto", "any", "tensorflow"]),
    roles=st.lists(_ROLE, max_size=3, unique_by=lambda role: role.name).map(merge_roles),
    memory=st.none() | st.integers(1, 1 << 24),
    vcores=_SOME,
    gpus=st.none() | st.integers(0, 99),
    processes=_SOME,
    min_workers=_SOME,
    gang_timeout=_SECONDS | st.just(0.0),
    gang_retries=st.none() | st.integers(0, 9),
    max_restarts=st.none() | st.integers(0, 9),
    policy=st.sampled_from([None, "chief", "all", "any", "fraction"]),
    allow_failures=st.none() | st.floats(0, 1),
    heartbeat=_SECONDS,
    lost_after=_SECONDS,
    require_collective=st.booleans(),
    timeout=_SECONDS,
    input_path=st.none() | _WORD,
    checkpoint_path=st.none() | _WORD,
    saved_model_path=st.none() | _WORD,
    inputs=st.lists(
        st.builds(NamedInput, _NAME, _TARGET.map("hdfs:///".__add__), st.booleans()),
        max_size=2,
        unique=True,
    ).map(tuple),
    params=st.dictionaries(_NAME, _JSON, max_size=3),
    localization=st.lists(
        st.builds(
            Localization, _NAME.map("hdfs://nn:1/".__add__), _TARGET, st.sampled_from(["ro", "rw"])
        ),
        max_size=2,
        unique=True,
    ).map(tuple),
    files=st.lists(_LOCAL, max_size=2, unique=True).map(tuple),
    archives=st.lists(
        _LOCAL.map(lambda item: replace(item, source=item.source + ".tar.gz")),
        max_size=2,
        unique=True,
    ).map(tuple),
    restore=st.none() | st.sampled_from(["auto", "chief", "own", "strict"]),
    resume=st.none() | _NAME,
    with_names=st.lists(st.sampled_from(["x", "y", "data"]), unique=True).map(tuple),
    return_names=st.lists(st.sampled_from(["acc", "loss"]), unique=True).map(tuple),
    return_all_ranks=st.booleans(),
    keep=st.lists(st.sampled_from(["*.keras", "runs/*", "-x"]), unique=True).map(tuple),
    python_env=_ENVIRONMENT,
    docker_image=st.none() | _NAME,
    env=_ENV,
    queue=st.none() | _NAME,
    priority=st.none() | st.integers(0, 9),
    node_label=st.none() | _NAME,
    nodes=_PLACES,
    racks=_PLACES,
    spread=st.booleans(),
    avoid_nodes=_PLACES,
    network_interface=st.sampled_from([None, "eth0", "ib0"]),
    profile=st.none() | _NAME,
    backend=st.sampled_from([None, "yarn", "local"]),
    settings=st.dictionaries(_NAME, _NAME, max_size=2),
    quicklinks=st.dictionaries(_NAME, _NAME.map("http://host:80/".__add__), max_size=2),
    wait=st.booleans(),
    verbose=st.booleans(),
    dry_run=st.booleans(),
    force=st.booleans(),
    on_interrupt=st.sampled_from(["detach", "cancel"]),
)


def test_the_strategy_leaves_no_option_out() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    missing = [
        f.name
        for kind in (RunOptions, RoleOptions)
        for f in fields(kind)
        if f"    {f.name}=" not in source
    ]
    assert missing == []


@settings(max_examples=150, deadline=None)
@given(_OPTIONS)
def test_format_then_parse_gives_the_same_options(options: RunOptions) -> None:
    assert parse_run(to_argv(options)) == options


_ANYTHING = st.lists(
    st.sampled_from(
        [
            *("--name", "--worker", "--memory", "--gpu", "--env", "--ps", "--wait", "--with", "--"),
            *("--localization", "--timeout", "--backend", "-h", "--json", "--args", "-x", "-", ""),
            *("--conf=a=b", "local", "8G", "a:b", "%input_path%", "train.py", "K=V", "2"),
        ]
    )
    | st.text(max_size=12),
    max_size=8,
)


@settings(max_examples=300, deadline=None)
@given(_ANYTHING)
def test_any_words_are_understood_or_refused(words: list[str]) -> None:
    from submarine_jobs.commands.grammar.verb import HelpRequested

    try:
        options = parse_run(words)
        spec_from_options(replace(options, name=options.name or "n"), PROFILE, Program())
    except HelpRequested:
        assert "-h" in words
    except SubmarineError as error:
        if error.exit_code != 2 or not error.message.strip():
            raise
