"""MIT's KDC in place of Kerby's on a running minicluster, and libfaketime.

``scripts/setup.sh krb5`` unpacks both from Debian's packages, without an installation. Kerby
answers the renewal of a ticket, but does not extend it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import REALM, cache_dir
from submarine_minicluster.machine import accepts_connections
from tests.waiting import until

_MISSING = "{} is not here: scripts/setup.sh krb5"
_KDC_CONF = """\
[kdcdefaults]
  kdc_listen = ""
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {directory}/principal
    key_stash_file = {directory}/stash
    max_life = 7d
    max_renewable_life = 7d
    supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
  }}
[dbmodules]
  db_module_dir = {plugins}
[logging]
  kdc = FILE:{directory}/kdc.log
"""


def find(pattern: str) -> Path:
    """Return a file of the unpacked packages, or of the system; skip the test without it."""
    for root in (cache_dir() / "krb5", Path("/")):
        for path in root.glob(pattern):
            return path
    pytest.skip(_MISSING.format(pattern.rpartition("/")[2]))


def shifted_clock(seconds: int) -> dict[str, str]:
    """Return variables of a process whose clock is ahead (or behind, if negative).

    Its monotonic clock is shifted too: with FAKETIME_DONT_FAKE_MONOTONIC libfaketime 0.9.10 shifts
    the ends of waits by that clock nevertheless, so that they fail or never end.
    """
    library = find("usr/lib/*/faketime/libfaketimeMT.so.1")
    return {"LD_PRELOAD": str(library), "FAKETIME": f"{seconds:+d}s"}


@contextmanager
def mit_kdc(cluster: Minicluster, directory: Path) -> Iterator[None]:
    """Replace the KDC of a cluster by MIT's, with the same principals, passwords and port.

    Keys follow from the passwords, so that keytabs and tickets stay valid.
    """
    kdc = find("usr/sbin/krb5kdc")
    directory.mkdir()
    configuration = directory / "kdc.conf"
    port = cluster.saved.ports["kdc"]
    plugins = find("usr/lib/*/krb5/plugins/kdb/db2.so").parent
    configuration.write_text(
        _KDC_CONF.format(port=port, realm=REALM, directory=directory, plugins=plugins)
    )
    environ = {
        **os.environ,
        "KRB5_CONFIG": str(cluster.layout.krb5_conf),
        "KRB5_KDC_PROFILE": str(configuration),
        "LD_LIBRARY_PATH": str(plugins.parents[2]),
    }
    names = [line.split()[:2] for line in cluster.layout.principals.read_text().splitlines()]
    _run([find("usr/sbin/kdb5_util"), "-r", REALM, "create", "-s", "-P", "master"], environ)
    _run(
        [find("usr/sbin/kadmin.local"), "-r", REALM],
        environ,
        f"delprinc -force krbtgt/{REALM}\n"
        + "".join(f"addprinc -pw {password} {name}\n" for name, password in names),
    )
    cluster.kill("kdc")
    with subprocess.Popen(
        [kdc, "-n", "-r", REALM], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            until(lambda: accepts_connections(port), "MIT's KDC", 20)
            yield
        finally:
            process.terminate()
            process.wait(10)
            cluster.start()


def _run(command: list[object], environ: dict[str, str], words: str = "") -> None:
    done = subprocess.run(
        [str(word) for word in command],
        env=environ, input=words, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
