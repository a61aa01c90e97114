"""Jobs through an HttpFS gateway, by clients that do not know the web ports of HDFS."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest

from submarine_jobs.backends.yarn.cluster import read_properties, write_properties
from submarine_jobs.backends.yarn.driver import stop_directory
from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import SecureWebHdfs
from tests.kerberos.helpers import User
from tests.kerberos.httpfs import gateway

pytestmark = [pytest.mark.cluster, pytest.mark.full]

#: Larger than an answer that is read as a whole.
SIZE = 3 << 20
PROGRAM = """\
import os, pathlib, time
time.sleep(2)
tokens = pathlib.Path(os.environ["HADOOP_TOKEN_FILE_LOCATION"]).read_bytes()
rank = os.environ.get("RANK", "-")
print("rank", rank, pathlib.Path(os.environ["SUBMARINE_INPUT_DATA"]).stat().st_size)
print("token", b"SWEBHDFS delegation" in tokens, flush=True)
pathlib.Path(os.environ["SUBMARINE_MODEL_DIR"], f"{rank}.bin").write_bytes(bytes(SIZE))
"""


@pytest.fixture(scope="module")
def alice(
    kerberos_minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[User]:
    """A user whose configuration names a closed port of the NameNode, and the gateway."""
    cluster, folder = kerberos_minicluster, tmp_path_factory.mktemp("httpfs")
    user = User(cluster, "alice", folder / "alice")
    home = SecureWebHdfs(cluster.url("namenode"), cluster.access("alice"))
    home.write("/user/alice/data.bin", bytes(SIZE))
    conf = folder / "client"
    shutil.copytree(cluster.layout.client_conf, conf)
    site = read_properties(conf / "hdfs-site.xml")
    site["dfs.namenode.https-address"] = "localhost:1"
    (conf / "hdfs-site.xml").write_bytes(write_properties(site))
    (folder / "httpfs").mkdir()
    with gateway(cluster, folder / "httpfs") as url:
        user.environ["HADOOP_CONF_DIR"] = str(conf)
        settings = user.directory / "jupyter-submarine" / "submarine.toml"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(f'[profiles.default.settings]\nhttpfs = "{url}"\n')
        yield user
    for driver in user.directory.glob("jupyter-submarine/driver/*"):
        stop_directory(driver)


def test_one_task(alice: User, kerberos_minicluster: Minicluster) -> None:
    program = alice.file("one.py", PROGRAM.replace("SIZE", str(SIZE)))
    words = ("--memory", "256M", "--input", "DATA=/user/alice/data.bin")
    dry = alice.run("run", program, *words, "--dry-run")
    assert dry.returncode == 0, dry.stdout
    job = alice.json("run", program, *words, "--wait")
    assert alice.run("logs", job["job_id"]).stdout.splitlines() == [f"rank - {SIZE}", "token True"]
    saved = alice.run("save", job["job_id"])
    assert saved.returncode == 0, saved.stderr
    found = alice.run("doctor").stdout
    assert re.search(r"ok +webhdfs +https://localhost:\d+ answers", found), found


def test_a_gang_with_a_keytab(alice: User, kerberos_minicluster: Minicluster) -> None:
    program = alice.file("gang.py", PROGRAM.replace("SIZE", str(SIZE)))
    keytab = str(kerberos_minicluster.keytab("alice"))
    job = alice.json(
        *("run", program, "--memory", "256M", "--num_workers", "2", "--wait"),
        *("--input", "DATA=/user/alice/data.bin", "--distribute_keytab"),
        *("--keytab", keytab, "--principal", "alice@MINICLUSTER.TEST"),
    )
    shown = alice.json("show", job["job_id"])
    assert shown["state"] == "SUCCEEDED"
    log = alice.run("logs", job["job_id"], "--all").stdout
    assert {f"rank 0 {SIZE}", f"rank 1 {SIZE}"} <= set(re.findall("rank . .*", log))
    assert log.count("token True") == 2
