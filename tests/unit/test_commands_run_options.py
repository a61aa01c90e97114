from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submarine_jobs.commands.run import parse_run
from submarine_jobs.errors import NoClusterError, SubmarineError, UsageError
from submarine_jobs.options.later import LATER
from submarine_jobs.options.run_options import RunOptions, to_argv
from submarine_jobs.options.spec_of import spec_from_options
from submarine_jobs.profile import Profile
from submarine_jobs.spec import Localization, Resources

PROFILE = Profile(backend="yarn", queue="ml", python="/opt/py/bin/python")


class Program:
    program = "main.py"
    digest = "d" * 64
    files: Mapping[str, bytes] = MappingProxyType({"main.py": b""})


def spec_of(*words: str) -> object:
    return spec_from_options(parse_run(["job", *words]), PROFILE, Program())


@pytest.mark.parametrize(
    ("alias", "original"),
    [
        (["--num_workers", "1"], ["--worker", "1"]),
        (["--num-workers", "1"], ["--worker", "1"]),
        (
            ["--worker_resources", "memory=8G,vcores=2,gpu=2"],
            ["--memory", "8G", "--vcores", "2", "--gpu", "2"],
        ),
        (["--worker-resources", "memory=8G"], ["--memory", "8192"]),
        (["--wait_job_finish"], ["--wait"]),
        (["--wait-job-finish"], ["--wait"]),
        (["--input-path", "x"], ["--input_path", "x"]),
        (["--saved-model-path=x"], ["--saved_model_path", "x"]),
        (["--worker-launch-cmd", "c"], ["--worker_launch_cmd", "c"]),
        (["--python_env", "host"], ["--python-env", "host"]),
        (["--on_interrupt", "cancel"], ["--on-interrupt", "cancel"]),
        (["--file", "model.py"], ["--program", "model.py"]),
        (["--args", "--epochs 3 'a b'"], ["--", "--epochs", "3", "a b"]),
        (["--framework", "TensorFlow"], ["--framework", "tensorflow"]),
        (["--insecure"], []),
    ],
)
def test_aliases_equal_their_originals(alias: list[str], original: list[str]) -> None:
    assert parse_run(["job", *alias]) == parse_run(["job", *original])


def test_the_submarine_command_line_of_one_role() -> None:
    options = parse_run(
        [
            *("--name", "tf-job-001", "--num_workers", "1"),
            *("--worker_resources", "memory=8G,vcores=2,gpu=2"),
            *("--worker_launch_cmd", "python fit.py %input_path% --out %saved_model_path%"),
            *("--input_path", "hdfs://nn/in", "--saved_model_path", "hdfs://nn/out"),
            *("--env", "A=%input_path%", "--env", "B=2", "--queue", "ml"),
            *("--localization", "hdfs://nn:8020/a/b:c:rw", "--wait_job_finish", "--verbose"),
            *("--quicklink", "Notes=http://host:8080"),
        ]
    )
    spec = spec_from_options(options, PROFILE, None)
    assert spec.name == "tf-job-001"
    assert spec.program is None
    assert spec.worker.command == "python fit.py hdfs://nn/in --out hdfs://nn/out"
    assert spec.worker.resources == Resources(8192, 2, 2)
    assert dict(spec.env) == {"A": "hdfs://nn/in", "B": "2"}
    assert spec.localization == (Localization("hdfs://nn:8020/a/b", "c", "rw"),)
    assert options.wait
    assert options.verbose


@pytest.mark.parametrize("name", [name for later in LATER for name in later.names])
@pytest.mark.parametrize("form", ["{} 2", "{}=2", "{}"])
def test_options_of_later_releases_are_refused_by_name(name: str, form: str) -> None:
    for spelling in (name, name.replace("_", "-")):
        with pytest.raises(UsageError, match="not in this release") as caught:
            parse_run(["job", *form.format(spelling).split()])
        assert spelling in str(caught.value)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--gpus", "2"], "No such option --gpus of run; did you mean --gpu?"),
        (["--memery", "2G"], "No such option --memery of run; did you mean --memory?"),
        (["--zzzzzz"], "No such option --zzzzzz of run; `submarine run --help` lists them."),
        (["--memory"], "--memory needs a value."),
        (["--worker", "2"], "--worker 2: distributed jobs are not in this release."),
        (["--memory", "8G", "--worker_resources", "memory=4G"], "different amounts"),
        (["--name", "other"], "Two names are given: job and other."),
        (["--args", "a", "--", "b"], "Arguments are given twice"),
        (["--worker_launch_cmd", "c", "--", "b"], "--worker_launch_cmd replaces it"),
        (["--env", "A=1", "--env", "A=2"], "--env gives A twice"),
        (["--with", "not a name"], "not the name of a variable"),
        (["--python-env", "docker:image"], "is not known"),
        (["--python-env", "path:relative"], "is not an absolute path"),
        (["--localization", "a:x", "--localization", "b:x/y"], "into x|two things at x"),
        (["--", "%input_path%"], "--input_path"),
    ],
)
def test_one_sentence_for_each_refusal(words: list[str], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        spec_of(*words)
    assert any(part in str(caught.value) for part in sentence.split("|"))
    assert "\n" not in str(caught.value)


def test_a_word_that_ends_like_a_file_is_the_program() -> None:
    assert parse_run(["train.py"]).program == "train.py"
    assert parse_run(["digits.ipynb", "--name", "d"]).name == "d"
    assert parse_run(["digits"]).name == "digits"


def test_no_cluster_names_the_two_ways_on() -> None:
    with pytest.raises(NoClusterError, match="minicluster start") as caught:
        spec_from_options(parse_run(["job"]), Profile(), Program())
    assert "--backend local" in str(caught.value)


def test_placeholders_need_their_option() -> None:
    with pytest.raises(UsageError, match="checkpoint_path"):
        spec_of("--env", "A=%checkpoint_path%")
    assert spec_of("--env", "A=%other%").env == {"A": "%other%"}  # type: ignore[attr-defined]


_WORD = st.text(string.ascii_letters + string.digits + " _-./=%'\"", min_size=1, max_size=20)
_NAME = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,10}", fullmatch=True)
_TARGET = st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8})?", fullmatch=True)
_OPTIONS = st.builds(
    RunOptions,
    name=st.none() | _NAME,
    program=st.none() | _NAME.map(lambda stem: f"{stem}.py"),
    args=st.lists(_WORD, max_size=4).map(tuple),
    memory=st.none() | st.integers(1, 1 << 24),
    vcores=st.none() | st.integers(1, 99),
    gpus=st.none() | st.integers(0, 99),
    command=st.none() | _WORD,
    queue=st.none() | _NAME,
    env=st.dictionaries(_NAME.filter(lambda n: not n.startswith("SUBMARINE_")), _WORD, max_size=3),
    input_path=st.none() | _WORD,
    checkpoint_path=st.none() | _WORD,
    saved_model_path=st.none() | _WORD,
    localization=st.lists(
        st.builds(
            Localization, _NAME.map("hdfs://nn:1/".__add__), _TARGET, st.sampled_from(["ro", "rw"])
        ),
        max_size=2,
    ).map(tuple),
    quicklinks=st.dictionaries(_NAME, _NAME.map("http://host:80/".__add__), max_size=2),
    framework=st.sampled_from(["auto", "any", "tensorflow"]),
    python_env=st.sampled_from([None, "host", "path:/opt/env"]),
    timeout=st.none() | st.integers(1, 10_000_000).map(float),
    with_names=st.lists(st.sampled_from(["x", "y", "data"]), unique=True).map(tuple),
    return_names=st.lists(st.sampled_from(["acc", "loss"]), unique=True).map(tuple),
    backend=st.sampled_from([None, "yarn", "local"]),
    profile=st.none() | _NAME,
    settings=st.dictionaries(_NAME, _NAME, max_size=2),
    wait=st.booleans(),
    verbose=st.booleans(),
    dry_run=st.booleans(),
    force=st.booleans(),
    on_interrupt=st.sampled_from(["detach", "cancel"]),
)


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
    from submarine_jobs.commands.verb import HelpRequested

    try:
        options = parse_run(words)
        spec_from_options(replace(options, name=options.name or "n"), PROFILE, Program())
    except HelpRequested:
        assert "-h" in words
    except SubmarineError as error:
        if error.exit_code != 2 or not error.message.strip():
            raise


def test_path_environment_is_resolved() -> None:
    options = parse_run(["job"])
    profile = Profile(backend="yarn", python_env="path:/opt/env", state_dir=Path("/tmp"))
    assert spec_from_options(options, profile, Program()).python == "/opt/env/bin/python3"
