"""Renewal of tickets, and ticket caches of other types than FILE."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.cluster import cached_ticket
from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import make_ticket_cache
from submarine_runtime.kerberos import Credential, GssError, copy_to_cache
from tests.kerberos.helpers import User
from tests.kerberos.mit_kdc import mit_kdc

pytestmark = [pytest.mark.cluster, pytest.mark.full]

PRINCIPAL = "alice@MINICLUSTER.TEST"
#: Seconds of a ticket's life.
LIFE = 90
SLEEPS = "import sys, time; time.sleep(float(sys.argv[1]))"


@pytest.fixture
def alice(kerberos_minicluster: Minicluster, tmp_path: Path) -> User:
    return User(kerberos_minicluster, "alice", tmp_path / "alice")


@pytest.mark.timeout(600)
def test_a_renewable_ticket_is_renewed(
    alice: User,
    kerberos_minicluster: Minicluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A command that waits for two lifetimes of the ticket; kinit fails, as where there is none."""
    cache = alice.directory / "short"
    kinit = alice.directory / "kinit"
    kinit.write_text(f"#!/bin/sh\ntouch {cache}.kinit\nexit 1\n")
    kinit.chmod(0o755)
    path = f"{alice.directory}:{alice.environ['PATH']}"
    env = {"KRB5CCNAME": f"FILE:{cache}", "PATH": path}
    with mit_kdc(kerberos_minicluster, tmp_path / "kdc"):
        make_ticket_cache(
            PRINCIPAL,
            kerberos_minicluster.keytab("alice"),
            cache,
            krb5_conf=kerberos_minicluster.layout.krb5_conf,
            lifetime=LIFE,
            renewable=10 * LIFE,
        )
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
        first = cached_ticket()
        words = ("--memory", "256M")
        done = alice.run(
            *("run", alice.file("sleeps.py", SLEEPS), *words, "--wait", "--", str(2 * LIFE + 10)),
            env=env,
            seconds=400,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        last = cached_ticket()
        assert first is not None
        assert last is not None
        assert last.end >= first.end + LIFE
        assert cache.stat().st_mode & 0o777 == 0o600
        assert not list(alice.directory.glob(".submarine-ticket-*"))
        # An application that was submitted after the first ticket has ended.
        later = alice.run("run", alice.file("x.py", "1"), *words, "--wait", env=env)
        assert later.returncode == 0, later.stderr
        assert "renewed until" in alice.run("doctor", env=env).stdout


def test_a_ticket_that_is_not_renewable(
    alice: User, kerberos_minicluster: Minicluster, tmp_path: Path
) -> None:
    """It is left alone; the doctor says when it ends, and the refusal when it has ended."""
    cache = alice.directory / "short"
    env = {"KRB5CCNAME": f"FILE:{cache}"}
    make_ticket_cache(
        PRINCIPAL,
        kerberos_minicluster.keytab("alice"),
        cache,
        krb5_conf=kerberos_minicluster.layout.krb5_conf,
        lifetime=45,
        renewable=0,
    )
    first = cache.read_bytes()
    checks = alice.run("doctor", env=env).stdout
    assert re.search(
        rf"warning +kerberos ticket +The ticket of {PRINCIPAL} expires in [^\n]* and cannot be "
        r"renewed\.\n +-> Get a new one with `submarine login`",
        checks,
    ), checks
    program = alice.file("sleeps.py", SLEEPS)
    alice.run("run", program, "--memory", "256M", "--wait", "--", "50", env=env)
    refused = alice.run("run", program, "--memory", "256M", env=env)
    assert refused.returncode == 3
    assert re.search(
        rf"requires a Kerberos ticket: the one of {PRINCIPAL} expired at [-\d]+ [:\d]+ UTC\. "
        r"Get one with `submarine login`",
        refused.stderr,
    ), refused.stderr
    assert first in cache.read_bytes()  # The library appends tickets for services.


@pytest.mark.parametrize("named_by", ["KRB5CCNAME", "krb5.conf"])
@pytest.mark.parametrize("kind", ["DIR", "KEYRING"])
def test_caches_that_java_cannot_read(
    alice: User, kerberos_minicluster: Minicluster, kind: str, named_by: str
) -> None:
    cache = f"DIR:{alice.directory / 'tickets'}"
    if kind == "KEYRING":
        cache = f"KEYRING:session:submarine-{os.getpid()}-{named_by}"
    env = {"KRB5CCNAME": cache}
    if named_by == "krb5.conf":
        krb5 = alice.directory / "krb5.conf"
        text = kerberos_minicluster.layout.krb5_conf.read_text()
        krb5.write_text(
            text.replace("[libdefaults]", f"[libdefaults]\n  default_ccache_name = {cache}")
        )
        env = {"KRB5CCNAME": "", "KRB5_CONFIG": str(krb5)}
        del alice.environ["KRB5CCNAME"]
    alice.environ |= {name: value for name, value in env.items() if value}
    with ticket_in(cache, kerberos_minicluster):
        done = alice.run("run", alice.file("x.py", "print(1)"), "--memory", "256M", "--wait")
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"{PRINCIPAL} is alice on the cluster" in alice.run("doctor").stdout
        (copy,) = alice.directory.rglob("krb5cc*")
        assert copy.stat().st_mode & 0o777 == 0o600
        assert copy.parent.stat().st_mode & 0o777 == 0o700
        # A copy that has become old is replaced by the next submission.
        copy.write_bytes(b"old")
        again = alice.run("run", alice.file("x.py", "print(1)"), "--memory", "256M")
        assert again.returncode == 0, again.stderr
        assert copy.stat().st_size > 100
        assert alice.run("doctor", "--stop-driver").returncode == 0
        assert not list(alice.directory.rglob("krb5cc*"))


@contextmanager
def ticket_in(cache: str, cluster: Minicluster) -> Iterator[None]:
    """A cache with a ticket of alice; skip the test where the kernel has no keyrings."""
    source = cluster.environ("alice")["KRB5CCNAME"]
    try:
        copy_to_cache(Credential(cache=source), cache)
    except GssError as exc:
        if cache.startswith("KEYRING"):
            pytest.skip(f"no keyrings here: {exc}")
        raise
    try:
        yield
    finally:
        if cache.startswith("KEYRING"):
            destroy(cache)


def destroy(cache: str) -> None:
    """Remove a cache, as ``kdestroy`` does."""
    library = ctypes.CDLL("libkrb5.so.3")
    context, found = ctypes.c_void_p(), ctypes.c_void_p()
    assert library.krb5_init_context(ctypes.byref(context)) == 0
    assert library.krb5_cc_resolve(context, cache.encode(), ctypes.byref(found)) == 0
    assert library.krb5_cc_destroy(context, found) == 0
    library.krb5_free_context(context)
