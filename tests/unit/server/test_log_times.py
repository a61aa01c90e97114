"""When the lines of a log were written: from an index, or from the times of segments."""

from __future__ import annotations

import json
import os
import random
import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from submarine_jobs.access import AgentClient, JobDirectory, create_secret
from submarine_jobs.client import Job
from submarine_jobs.logs import LogReader, Mark, parse_columns, parse_index, part_of
from submarine_jobs.storage import LocalStorage
from submarine_runtime.protocol import LogKey


def test_an_index_is_untrusted_text() -> None:
    good = [Mark(10, 1.5), Mark(20, 2.5)]
    assert parse_index(b"20 2.5\n10 1.5\n") == good
    nonsense = (
        b"\n7\nx 1\n1 x\n-5 1.0\n0 1.0\n5 nan\n6 inf\n" + b"9" * 5000 + b" 1\n"
        b"99999999999999999999 1.0\n8 \xff\n10 1.5\n20 2.5 more"
    )
    assert parse_index(nonsense) == good
    assert parse_index(b"") == []
    for data in (b"20 2.5\n10 1.5\n", nonsense, b"", b"10 1.5\n20 2.5\n", b"10 1.5\n20 2.5"):
        offsets, times = parse_columns(data)
        assert list(map(Mark, offsets, times)) == parse_index(data)


def test_the_columns_of_an_index_are_its_marks() -> None:
    chance = random.Random(7)
    pieces = [b"10 1.5\n", b"20 2.5\n", b"x", b"-1 2\n", b"7 nan\n", b"\n", b"3 4 5\n", b"30 3\n"]
    for _ in range(300):
        data = b"".join(chance.choices(pieces, k=chance.randint(0, 6)))
        offsets, times = parse_columns(data)
        assert list(map(Mark, offsets, times)) == parse_index(data), data


def test_the_part_of_an_index_says_the_same_of_its_bytes() -> None:
    chance = random.Random(4)
    for _ in range(300):
        ends = sorted(chance.sample(range(1, 400), chance.randint(0, 40)))
        marks = [Mark(end, 1000.0 + end) for end in ends]
        begin = chance.randint(0, 400)
        end = begin + chance.randint(1, 100)
        part = part_of(marks, begin, end, 1000)
        for byte in range(begin, end):
            assert time_of(part, byte) == time_of(marks, byte)
        most = chance.randint(1, 8)
        thin = part_of(marks, begin, end, most)
        assert len(thin) <= most
        assert set(thin) <= set(part)
        assert thin[-1:] == part[-1:]
        # Thinned, a byte may seem younger than it is, but its time never gets lost.
        for byte in range(begin, end):
            exact, known = time_of(marks, byte), time_of(thin, byte)
            assert (exact is None) == (known is None)
            assert exact is None or (known is not None and known >= exact)


def time_of(marks: list[Mark], byte: int) -> float | None:
    return next((mark.time for mark in marks if mark.offset > byte), None)


def test_without_an_index_the_times_of_segments_count(tmp_path: Path) -> None:
    place = tmp_path / "logs/worker-0/e1-a1"
    place.mkdir(parents=True)
    for offset, size, moment in ((0, 10, 1000.0), (10, 5, 1010.0)):
        path = place / f"stdout.{offset:012d}"
        path.write_bytes(b"x" * size)
        os.utime(path, (moment, moment))
    directory = JobDirectory(LocalStorage(), str(tmp_path))
    job = cast(
        Job, SimpleNamespace(directory=directory, index_entry=lambda: None, agent=lambda: None)
    )
    key = LogKey("worker:0", "e1-a1", "stdout")
    reader = LogReader(job)
    assert reader.times(key) == ([Mark(10, 1000.0), Mark(15, 1010.0)], False)
    assert reader.times(key._replace(task="worker:1")) == ([], False)
    # Once there is one it counts, and for good.
    (place / "stdout.index").write_text("15 1009.0\n")
    assert LogReader(job).times(key) == ([Mark(15, 1009.0)], True)


def test_a_record_that_names_an_address_inside_learns_and_gets_nothing(tmp_path: Path) -> None:
    """The listener does not have the job's certificate: no request and no token is sent."""
    secret = create_secret("evil-20261122-0a1b")
    (tmp_path / "secret.json").write_bytes(secret.to_bytes())
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        live = {"host": "127.0.0.1", "port": listener.getsockname()[1]}
        (tmp_path / "live.json").write_text(json.dumps(live))

        def listen() -> None:
            connection, _ = listener.accept()
            with connection:
                heard.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nthe keys of the cloud")

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        directory = JobDirectory(LocalStorage(), str(tmp_path))
        address = directory.address()
        assert address is not None
        known = {"index_entry": lambda: None, "agent": lambda: AgentClient(address)}
        job = cast(Job, SimpleNamespace(directory=directory, **known))
        told = LogReader(job).live(LogKey("worker:0", "e1-a1", "stdout"), 0, 100)
        thread.join(60)
    assert told is None
    assert heard
    assert b"GET" not in heard[0]
    assert secret.token.encode() not in heard[0]
