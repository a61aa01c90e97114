from __future__ import annotations

import contextlib
import string

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.errors import UsageError
from submarine_jobs.model import (
    Localization,
    Resources,
    format_duration,
    format_memory,
    parse_count,
    parse_duration,
    parse_memory,
    parse_resources,
)
from submarine_jobs.model.quantities import MAX_MEMORY, format_resources
from submarine_jobs.options.option_values import (
    format_localization,
    format_pair,
    parse_archive,
    parse_conf,
    parse_env,
    parse_localization,
    parse_quicklink,
)


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("8G", 8192),
        ("8GB", 8192),
        ("8g", 8192),
        ("8gib", 8192),
        ("8192M", 8192),
        ("8192", 8192),
        ("0.5G", 512),
        ("1.3G", 1332),
        ("2048k", 2),
        ("1T", 1 << 20),
        (" 4G ", 4096),
    ],
)
def test_memory_as_people_write_it(text: str, mib: int) -> None:
    assert parse_memory(text) == mib


@pytest.mark.parametrize("text", ["", "8X", "G", "-1G", "0", "1e3", "8 8", "9" * 40, "8B", "٣G"])
def test_memory_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="Write"):
        parse_memory(text)


@given(st.integers(1, MAX_MEMORY))
def test_memory_round_trips(mib: int) -> None:
    assert parse_memory(format_memory(mib)) == mib


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("15m", 900),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1d", 86400),
        ("0.5h", 1800),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "2x", "h", "-1s", "0", "1h 2m x", "1m1", "9999d"])
def test_durations_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_duration(text)


@given(st.integers(1, 366 * 86400 * 1000))
def test_durations_round_trip(milliseconds: int) -> None:
    parsed = parse_duration(format_duration(milliseconds / 1000))
    assert round(parsed * 1000) == milliseconds


@given(st.integers(1, MAX_MEMORY), st.integers(1, 1000), st.integers(0, 1000))
def test_resources_round_trip(memory: int, vcores: int, gpus: int) -> None:
    text = format_resources(Resources(memory, vcores, gpus))
    assert parse_resources(text) == {"memory": memory, "vcores": vcores, "gpus": gpus}


def test_resources_in_parts() -> None:
    assert parse_resources("gpu=2, memory=8G") == {"gpus": 2, "memory": 8192}
    assert parse_resources("yarn.io/gpu=1") == {"gpus": 1}


@pytest.mark.parametrize(
    "text", ["memory", "memory=8G,memory=9G", "fpga=1", "", "vcores=0", "gpu=-1"]
)
def test_resources_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_resources(text)


@pytest.mark.parametrize("text", ["1.5", "", "x", "-1", "²"])
def test_counts_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="whole number"):
        parse_count(text, "The number of GPUs")


@pytest.mark.parametrize(
    ("text", "source", "target", "mode"),
    [
        ("hdfs://nn:8020/data/w.txt:w.txt", "hdfs://nn:8020/data/w.txt", "w.txt", "ro"),
        ("hdfs://nn:8020/data/w.txt:w.txt:rw", "hdfs://nn:8020/data/w.txt", "w.txt", "rw"),
        ("hdfs:///data/words:.", "hdfs:///data/words", "words", "ro"),
        ("/local/a:b:ro", "/local/a", "b", "ro"),
        ("https://host:1/x:data/x", "https://host:1/x", "data/x", "ro"),
        ("a:rw", "a", "rw", "ro"),
    ],
)
def test_localization(text: str, source: str, target: str, mode: str) -> None:
    assert parse_localization(text) == Localization(source, target, mode)


@pytest.mark.parametrize(
    "text",
    [
        "hdfs://nn:8020/data",
        "hdfs://nn/data",
        "/only/path",
        "a:",
        ":b",
        "a:../b",
        "a:/abs",
        "a:b/../../c",
        "a:b\n",
        "",
    ],
)
def test_localization_that_is_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_localization(text)


_PART = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=12).filter(
    lambda word: word not in (".", "..")
)


@given(
    st.sampled_from(["", "hdfs://nn:8020", "hdfs://", "s3a://bucket"]),
    st.lists(_PART, min_size=1, max_size=4),
    st.lists(_PART, min_size=1, max_size=3),
    st.sampled_from(["ro", "rw"]),
)
def test_localization_round_trips(
    scheme: str, path: list[str], target: list[str], mode: str
) -> None:
    item = Localization(f"{scheme}/{'/'.join(path)}", "/".join(target), mode)
    assert parse_localization(format_localization(item)) == item


@given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True), st.text(max_size=50))
def test_env_round_trips(name: str, value: str) -> None:
    if name.startswith("SUBMARINE_") or "\0" in value:
        with pytest.raises(UsageError):
            parse_env(f"{name}={value}")
    else:
        assert parse_env(format_pair(name, value)) == (name, value)


def test_quicklinks_are_web_addresses_only() -> None:
    link = "Zeppelin_Notebook=http://master-0:8080"
    assert parse_quicklink(link) == ("Zeppelin_Notebook", "http://master-0:8080")
    for bad in ("x=javascript:alert(1)", "x=file:///etc/passwd", "=http://a", "x=http://", "x"):
        with pytest.raises(UsageError):
            parse_quicklink(bad)


@given(st.text(max_size=60))
def test_parsers_refuse_or_understand_any_text(text: str) -> None:
    for parse in (
        parse_memory,
        parse_duration,
        parse_resources,
        parse_env,
        parse_conf,
        parse_quicklink,
        parse_localization,
    ):
        with contextlib.suppress(UsageError):
            parse(text)


def test_the_directory_of_an_archive_may_be_named_as_a_mode() -> None:
    for target in ("rw", "ro"):
        item = parse_archive(f"hdfs://nn:1/data.tar.gz:{target}")
        assert (item.source, item.target, item.mode) == ("hdfs://nn:1/data.tar.gz", target, "ro")
