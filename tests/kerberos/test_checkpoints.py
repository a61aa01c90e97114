"""A checkpoint in parts on a cluster with Kerberos: each task uploads its part and reads all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from submarine_minicluster import Minicluster
from tests.kerberos.helpers import User

pytestmark = [pytest.mark.cluster, pytest.mark.full]

#: Rank 1 fails once, after both parts are in a snapshot.
PARTS = """\
import os, pathlib, pickle, time
rank = int(os.environ["RANK"])
place = pathlib.Path(os.environ["SUBMARINE_CHECKPOINT_DIR"], "step_5")
print("rank", rank, "finds", *sorted(path.name for path in place.glob("*")), flush=True)
if not place.exists():
    place.mkdir()
    names = ["__0_0.distcp", "__1_0.distcp"]
    (place / names[rank]).write_text(str(rank))
    if rank == 0:
        (place / ".metadata").write_bytes(pickle.dumps(names))
    time.sleep(25)
    raise SystemExit(7 * rank)
"""


@pytest.mark.timeout(400)
def test_each_task_restores_the_files_of_all_tasks(
    kerberos_minicluster: Minicluster, tmp_path: Path
) -> None:
    alice = User(kerberos_minicluster, "alice", tmp_path / "alice")
    words = ("--memory", "256M", "--num_workers", "2", "--framework", "pytorch", "--name", "parts")
    done = alice.run("run", alice.file("parts.py", PARTS), *words, "--wait", seconds=360)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = alice.json("show", "parts")
    assert any("(rule union)" in note for note in shown["notes"]), shown
    log = alice.run("logs", "parts", "--all").stdout
    found = set(re.findall(r"rank (\d) finds \.metadata __0_0\.distcp __1_0\.distcp", log))
    assert found == {"0", "1"}
