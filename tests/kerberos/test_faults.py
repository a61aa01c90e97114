"""Faults of Kerberos: the job continues, or one sentence says what to do."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import make_ticket_cache
from tests.kerberos.helpers import User
from tests.kerberos.mit_kdc import shifted_clock
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

#: Prints a number every two seconds.
COUNTS = """\
import sys, time
for number in range(int(sys.argv[1])):
    print("number", number, flush=True)
    time.sleep(2)
"""


@pytest.fixture
def alice(kerberos_minicluster: Minicluster, tmp_path: Path) -> User:
    return User(kerberos_minicluster, "alice", tmp_path / "alice")


def numbers(user: User, job: str) -> list[str]:
    return [line for line in user.run("logs", job).stdout.splitlines() if "number" in line]


@pytest.mark.timeout(400)
def test_jobs_continue_while_the_kdc_is_down(
    alice: User, kerberos_minicluster: Minicluster
) -> None:
    waiting = alice.start(
        "run", alice.file("counts.py", COUNTS), "--memory", "256M", "--wait", "--name", "kdc", "--",
        "45",
    )  # fmt: skip
    until(lambda: "RUNNING" in alice.run("show", "kdc").stdout, "a running job", 120)
    kerberos_minicluster.kill("kdc")
    down = time.monotonic()
    try:
        shown = alice.json("show", "kdc")
        assert shown["state"] == "RUNNING"
        time.sleep(max(0.0, 60 - (time.monotonic() - down)))
    finally:
        kerberos_minicluster.start()
    output, errors = waiting.communicate(timeout=240)
    assert waiting.returncode == 0, output + errors
    assert len(numbers(alice, "kdc")) == 45


def test_a_command_without_the_kdc_is_one_sentence(
    alice: User, kerberos_minicluster: Minicluster, tmp_path: Path
) -> None:
    keytab = str(kerberos_minicluster.keytab("alice"))
    kerberos_minicluster.kill("kdc")
    try:
        done = alice.run(
            *("run", alice.file("x.py", "1"), "--memory", "256M"),
            *("--keytab", keytab, "--principal", "alice@MINICLUSTER.TEST"),
        )
    finally:
        kerberos_minicluster.start()
    assert done.returncode == 3
    assert "The cluster requires a Kerberos ticket: Cannot contact any KDC" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.timeout(400)
def test_a_ticket_that_expires_during_a_wait(
    alice: User, kerberos_minicluster: Minicluster
) -> None:
    """The job ends as usual; the command reports its end, or asks for a new ticket."""
    cache = alice.directory / "short"
    make_ticket_cache(
        "alice@MINICLUSTER.TEST",
        kerberos_minicluster.keytab("alice"),
        cache,
        krb5_conf=kerberos_minicluster.layout.krb5_conf,
        lifetime=60,
        renewable=60,
    )
    short = {"KRB5CCNAME": f"FILE:{cache}"}
    done = alice.run(
        *("run", alice.file("counts.py", COUNTS), "--memory", "256M", "--wait"),
        *("--name", "short", "--", "45"),
        env=short,
        seconds=300,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or "`submarine login`" in done.stderr, done.stderr
    refused = alice.run("run", alice.file("x.py", "1"), "--memory", "256M", env=short)
    assert refused.returncode == 3
    assert "expired" in refused.stderr
    assert "`submarine login`" in refused.stderr
    shown = alice.json("wait", "short")
    assert shown["state"] == "SUCCEEDED"
    assert len(numbers(alice, "short")) == 45


def test_a_replaced_keytab(alice: User, kerberos_minicluster: Minicluster) -> None:
    """A keytab whose keys are not those of the principal."""
    keytab = alice.directory / "alice.keytab"
    words = ("run", alice.file("x.py", "1"), "--dry-run", "--memory", "256M")
    identity = ("--keytab", str(keytab), "--principal", "alice@MINICLUSTER.TEST")
    keytab.write_bytes(kerberos_minicluster.keytab("alice").read_bytes())
    assert alice.run(*words, *identity).returncode == 0
    for content in (kerberos_minicluster.keytab("bob").read_bytes(), b"\5\2broken"):
        keytab.write_bytes(content)
        done = alice.run(*words, *identity)
        assert done.returncode == 3, done.stderr
        assert str(keytab) in done.stderr
        assert "The cluster requires a Kerberos ticket" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_wrong_authority(alice: User) -> None:
    # Any certificate that has not signed those of the cluster.
    import certifi

    one = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----")
    other = alice.directory / "other.pem"
    other.write_text(one[0][one[0].index("-----BEGIN") :] + one[1] + "\n")
    began = time.monotonic()
    done = alice.run(
        *("run", alice.file("x.py", "1"), "--memory", "256M", "--conf", f"ca_file={other}")
    )
    assert done.returncode == 3
    assert "CERTIFICATE_VERIFY_FAILED" in done.stderr or "certificate" in done.stderr
    assert "Set ca_file to the certificates (PEM)" in done.stderr
    assert time.monotonic() - began < 60
    checks = alice.run("doctor", env={"SUBMARINE_CONFIG": str(_config(alice, other))}).stdout
    assert "is not accepted" in checks


@pytest.mark.parametrize("minutes", [10, -10])
def test_a_clock_that_is_off(alice: User, minutes: int) -> None:
    """Of the client, while all other processes have the right time."""
    wrong = shifted_clock(60 * minutes)
    done = alice.run("run", alice.file("x.py", "1"), "--memory", "256M", env=wrong)
    assert done.returncode == 3, done.stdout + done.stderr
    sentence = "The cluster requires a Kerberos ticket: Clock skew too great. Set the clock of this"
    assert sentence in done.stderr
    assert "`submarine login`" not in done.stderr
    assert "Traceback" not in done.stderr
    checks = alice.run("doctor", env=wrong).stdout
    side = "ahead of" if minutes > 0 else "behind"
    assert re.search(rf"error +clock +This clock is (59\d|60\d) s {side} the ResourceM", checks)
    assert "Synchronize both with NTP" in checks


def _config(user: User, ca: Path) -> Path:
    path = user.directory / "submarine.toml"
    path.write_text(f'[settings]\nca_file = "{ca}"\n')
    return path
