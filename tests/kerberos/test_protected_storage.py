"""A cluster that protects its RPC and blocks, with an encryption zone in HDFS.

One that signs them (integrity) and one that encrypts them (privacy).
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from submarine_jobs.errors import StorageError
from submarine_jobs.storage import hdfs_storage
from submarine_minicluster import Minicluster, Settings
from submarine_minicluster.hadoop import SUPERUSER, ZONE_KEY, SecureWebHdfs
from submarine_minicluster.pytest_plugin import running
from tests.kerberos.helpers import User, until_kept

pytestmark = [pytest.mark.cluster, pytest.mark.full]

#: With the protection, such as SUBMARINE_TEST_PRIVACY_MINICLUSTER.
REUSE = "SUBMARINE_TEST_{}_MINICLUSTER"
ZONE, SECRET = "/user/alice/zone", "a secret of alice"
#: Reads a file that YARN has decrypted, and a plain one with the token of its container.
READS = """\
import sys
from pathlib import Path
from hdfs_native import Client
print("localized", Path("secret.txt").read_text())
options = {"hadoop.security.authentication": "kerberos",
           "dfs.data.transfer.protection": sys.argv[2]}
reader = Client(sys.argv[1], options).read("/user/alice/data.txt")
print("read", bytes(reader.read_range(0, len(reader))).decode())
"""
GANG = """\
import os, pathlib
rank = os.environ["RANK"]
print("rank", rank, "has", pathlib.Path(os.environ["SUBMARINE_INPUT_ANSWER"]).read_text())
pathlib.Path(os.environ["SUBMARINE_MODEL_DIR"], f"{rank}.txt").write_text("the model")
"""


@pytest.fixture(scope="module", params=["integrity", "privacy"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Minicluster]:
    level = str(request.param)
    settings = Settings(kerberos=True, https=True, protection=level, encryption_zones=True)
    with running(REUSE.format(level.upper()), settings) as found:
        assert found.saved.settings.protection == level
        yield found


@pytest.fixture(scope="module")
def alice(cluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> User:
    return User(cluster, "alice", tmp_path_factory.mktemp("users") / "alice")


@pytest.fixture(scope="module")
def home(cluster: Minicluster) -> SecureWebHdfs:
    found = SecureWebHdfs(cluster.url("namenode"), cluster.access("alice"))
    found.write("/user/alice/data.txt", b"forty-two")
    return found


@pytest.fixture(scope="module")
def secret(cluster: Minicluster, home: SecureWebHdfs) -> str:
    """URL of an encrypted file of alice."""
    home.call("PUT", ZONE, "MKDIRS")
    if not home.call("GET", ZONE, "GETFILESTATUS")["FileStatus"].get("encBit"):
        words = ("crypto", "-createZone", "-keyName", ZONE_KEY, "-path", ZONE)
        environ = cluster.environ(SUPERUSER)
        subprocess.run([str(cluster.layout.bin / "hdfs"), *words], env=environ, check=True)
    home.write(f"{ZONE}/secret.txt", SECRET.encode())
    return f"{cluster.default_fs}{ZONE}/secret.txt"


def test_a_task_reads_what_yarn_decrypts(
    alice: User, cluster: Minicluster, home: SecureWebHdfs, secret: str
) -> None:
    words = ("--memory", "256M", "--localization", f"{secret}:secret.txt", "--wait")
    place = ("--", cluster.default_fs, cluster.saved.settings.protection)
    job = alice.json("run", alice.file("reads.py", READS), *words, *place)
    log = alice.run("logs", job["job_id"]).stdout
    assert log.splitlines() == [f"localized {SECRET}", "read forty-two"]
    # The call that sets the tracking URL is protected too.
    until_kept(cluster, alice.json("show", job["job_id"]))


def test_a_gang_with_protected_rpc_and_blocks(
    alice: User, cluster: Minicluster, home: SecureWebHdfs
) -> None:
    data = f"ANSWER={cluster.default_fs}/user/alice/data.txt"
    words = ("--memory", "256M", "--num_workers", "2", "--input", data, "--wait")
    job = alice.json("run", alice.file("gang.py", GANG), *words)
    shown = alice.json("show", job["job_id"])
    assert shown["state"] == "SUCCEEDED"
    log = alice.run("logs", job["job_id"], "--all").stdout
    until_kept(cluster, shown)
    assert {"rank 0 has forty-two", "rank 1 has forty-two"} <= set(re.findall("rank.*", log))
    # Larger than what is written through WebHDFS: hdfs-native signs or encrypts the blocks.
    large = alice.file("large.bin", "x" * (2 << 20))
    localized = ("--memory", "256M", "--localization", f"{large}:large.bin", "--wait")
    program = alice.file("size.py", "import os; print(os.path.getsize('large.bin'))")
    again = alice.json("run", program, *localized)
    assert alice.run("logs", again["job_id"]).stdout.split() == [str(2 << 20)]


@pytest.mark.parametrize(
    ("words", "what", "fix"),
    [
        (("--input", "data={secret}"), "--input data: {secret}", "Use --localization"),
        (
            ("--checkpoint_path", f"{ZONE}/new/checkpoints"),
            "--checkpoint_path: {fs}/user/alice/zone/new/checkpoints",
            "Name a directory outside",
        ),
    ],
)
def test_paths_that_agents_cannot_use_are_refused(
    words: tuple[str, ...], what: str, fix: str, alice: User, cluster: Minicluster, secret: str
) -> None:
    names = {"secret": secret, "fs": cluster.default_fs}
    program = alice.file("x.py", "1")
    options = [word.format_map(names) for word in words]
    for more in ((), ("--dry-run",)):
        ran = alice.run("run", program, "--memory", "256M", *options, *more)
        assert ran.returncode == 2, ran.stdout + ran.stderr
        sentence = f"{what.format_map(names)} lies in an encryption zone of HDFS"
        assert sentence in ran.stderr + ran.stdout
        assert fix in ran.stderr + ran.stdout


def test_a_job_root_in_a_zone_is_refused(alice: User, cluster: Minicluster, secret: str) -> None:
    env = {"SUBMARINE_JOB_ROOT": f"{ZONE}/jobs"}
    ran = alice.run("run", alice.file("x.py", "1"), "--memory", "256M", env=env)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert f"The job root {cluster.default_fs}{ZONE}/jobs lies in an encryption zone" in ran.stderr
    assert "Set job_root in submarine.toml to a directory outside" in ran.stderr
    found = alice.run("doctor", env=env).stdout
    assert re.search(r"error +encryption zones +The job root .*/zone/jobs lies in an", found)
    assert re.search(
        r"ok +encryption zones +.* is outside of encryption", alice.run("doctor").stdout
    )


def test_a_file_in_a_zone_is_never_read_encrypted(
    alice: User, cluster: Minicluster, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KRB5_CONFIG", "KRB5CCNAME", "HADOOP_CONF_DIR"):
        monkeypatch.setenv(name, alice.environ[name])
    storage = hdfs_storage(cluster.default_fs, conf_dir=cluster.layout.client_conf)
    with pytest.raises(StorageError) as raised:
        storage.read(f"{ZONE}/secret.txt")
    assert f"Cannot read {secret}, which lies in an encryption zone: " in str(raised.value)
    assert "hadoop.security.key.provider.path" in raised.value.fix
