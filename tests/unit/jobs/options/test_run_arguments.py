"""Whatever is typed after ``run`` is understood or refused; options and words say the same."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from submarine_jobs.commands.run import parse_run, run
from submarine_jobs.commands.run.notebook_options import notebook_parameters
from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import Localization, NamedInput, NamedOutput, Profile
from submarine_jobs.options import (
    RUN_OPTIONS,
    Flag,
    ListOption,
    Option,
    RoleOptions,
    RunOptions,
    merge_roles,
    spec_from_options,
)
from submarine_jobs.options.command_line import to_argv
from submarine_jobs.options.declaration import PairsOption, declared
from submarine_runtime.protocol import IdleLimit
from tests.random_examples import examples

PROFILE = Profile(backend="yarn", queue="ml", python="/opt/py/bin/python")


class Program:
    program = "main.py"
    digest = "d" * 64
    files: Mapping[str, bytes] = MappingProxyType({"main.py": b""})


_WORD = st.text(string.ascii_letters + string.digits + " _-./=%'\"", min_size=1, max_size=20)


_NAME = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,10}", fullmatch=True)
_TARGET = st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8})?", fullmatch=True)
_LOCAL = st.builds(Localization, _NAME.map("hdfs://nn:1/".__add__), _TARGET)
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
_SECONDS = st.integers(1, 10_000_000).map(float)
#: Values by the name of their type. A new option needs a line here only for a new type.
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": _NAME | _WORD,
    "name": _NAME,
    "number": st.integers(1, 99),
    "size": st.integers(1, 1 << 24),
    "resources": st.fixed_dictionaries(
        {},
        optional={
            "memory": st.integers(1, 1 << 20),
            "vcores": st.integers(1, 9),
            "gpus": st.integers(0, 9),
        },
    ).filter(bool),
    "time": _SECONDS,
    "timeout": _SECONDS | st.just(0.0),
    "fraction": st.floats(0, 1),
    "limit": st.builds(IdleLimit, st.integers(10, 86400).map(float), st.just("warn")),
    "pattern": st.sampled_from(["*.keras", "runs/*", "-x"]),
    "interface": st.sampled_from(["eth0", "ib0"]),
    "command": st.text(min_size=1, max_size=20).filter(
        lambda text: text.strip() and "\0" not in text
    ),
    "arguments": st.lists(_WORD, max_size=4).map(tuple),
    "env": st.sampled_from(
        ["host", "auto", "path:/opt/env", "archive:hdfs:///e.zip", "docker:a/b:1"]
    ),
    "variable": st.tuples(_NAME.filter(lambda name: not name.startswith("SUBMARINE_")), _WORD),
    "secret": st.tuples(
        st.sampled_from(["HF_TOKEN", "WANDB_API_KEY", "A"]),
        st.just("") | st.sampled_from(["~/.hf", "a=b", "/x y", "-z"]),
    ),
    "users and groups": st.builds(
        "{}:{}{}".format, st.sampled_from(["view", "modify"]), st.sampled_from(["", "@"]), _NAME
    ),
    "link": st.tuples(_NAME, _NAME.map("http://host:80/".__add__)),
    "setting": st.tuples(_NAME, _NAME),
    "parameter": st.tuples(_NAME, _JSON),
    "localization": st.builds(
        Localization, _NAME.map("hdfs://nn:1/".__add__), _TARGET, st.sampled_from(["ro", "rw"])
    ),
    "file": _LOCAL,
    "archive": _LOCAL.map(lambda item: replace(item, source=item.source + ".tar.gz")),
    "input": st.builds(NamedInput, _NAME, _TARGET.map("hdfs:///".__add__), st.booleans()),
    "output": st.builds(
        lambda name, target, how: NamedOutput(name, f"hdfs:///{target}", *how),
        _NAME.filter(lambda name: name != "DIR"),
        _TARGET,
        st.sampled_from(
            [
                *(("", False), ("", True), ("overwrite", False), ("append-run", True)),
                *(("", False, True), ("overwrite", False, True), ("append-run", False, True)),
            ]
        ),
    ),
    "names": st.sampled_from(["x", "y", "data"]),
}
#: Options with fewer values than their type.
_NARROWER: dict[str, st.SearchStrategy[Any]] = {
    "--program": _NAME.map(lambda stem: f"{stem}.py"),
    "--name": _NAME,
    "--backend": st.sampled_from(["yarn", "local"]),
    "--gpu": st.integers(0, 9),
    "image": _NAME,
    "node": _NAME,
}


def strategy(option: Option) -> st.SearchStrategy[Any]:
    """Values of the field that declares ``option``."""
    if isinstance(option, Flag):
        return st.booleans()
    if option.type.choices:
        one: st.SearchStrategy[Any] = st.sampled_from(option.type.choices)
    else:
        one = _NARROWER[option.name] if option.name in _NARROWER else _VALUES[option.type.name]
    if isinstance(option, PairsOption):
        return st.lists(one, max_size=3, unique_by=lambda pair: pair[0]).map(dict)
    if isinstance(option, ListOption):
        return st.lists(one, max_size=2, unique=True).map(tuple)
    return st.just(option.default) | one


def strategies(owner: type) -> dict[str, st.SearchStrategy[Any]]:
    return {name: strategy(option) for name, option in declared(owner).items()}


_ROLE = st.builds(
    RoleOptions,
    name=st.sampled_from(["worker", "ps", "chief", "evaluator", "reader", "tensorboard", "a_b1"]),
    instances=st.none() | st.integers(0, 9),
    **strategies(RoleOptions),
)
_OPTIONS = st.builds(
    RunOptions,
    roles=st.lists(_ROLE, max_size=3, unique_by=lambda role: role.name).map(merge_roles),
    **strategies(RunOptions),
)


@pytest.mark.parametrize("owner", [RunOptions, RoleOptions])
def test_each_field_declares_an_option(owner: type) -> None:
    others = {"roles", "name", "instances"} if owner is RoleOptions else {"roles"}
    assert {item.name for item in fields(owner)} - others == set(declared(owner)) - others
    words = [word for one in declared(owner).values() for word in (one.name, *one.aliases)]
    assert len(words) == len(set(words))


def test_each_parameter_of_a_job_is_declared() -> None:
    others = {"target", "as_json", *notebook_parameters(run)}
    assert {param.name for param in run.params} - others == set(RUN_OPTIONS)
    helps = {param.name: getattr(param, "help", "") for param in run.params}
    assert [name for name in RUN_OPTIONS if not helps[name]] == []


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
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


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(_ANYTHING)
def test_any_words_are_understood_or_refused(words: list[str]) -> None:
    from submarine_jobs.commands.grammar import HelpRequested

    try:
        options = parse_run(words)
        spec_from_options(replace(options, name=options.name or "n"), PROFILE, Program())
    except HelpRequested:
        assert "-h" in words
    except SubmarineError as error:
        if error.exit_code != 2 or not error.message.strip():
            raise
