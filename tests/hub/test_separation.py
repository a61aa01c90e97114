"""State, caches and processes of two users on the machine of the hub, on the local backend."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.hub.conftest import USERS
from tests.hub.hub import Hub
from tests.hub.person import Person
from tests.second_user import as_user

pytestmark = pytest.mark.full

#: Directories of the product below a home.
STATE = Path(".local/state/jupyter-submarine")
#: Returns the files below a directory that the user of the process can read.
READABLE = """
found = []
for root, directories, files in os.walk({root!r}):
    for name in files:
        path = os.path.join(root, name)
        try:
            if os.stat(path).st_uid == {owner} and stat.S_ISREG(os.stat(path).st_mode):
                open(path, "rb").close()
                found.append(path)
        except OSError:
            continue
return sorted(found)
"""


@pytest.mark.parametrize("name", USERS)
def test_state_is_in_the_home_of_its_user(people: dict[str, Person], hub: Hub, name: str) -> None:
    account = hub.accounts[name]
    state = account.home / STATE
    owned = {path.relative_to(state).parts[0] for path in state.rglob("*")}
    assert {"jobs.sqlite"} <= owned, owned
    status = state.stat()
    assert (status.st_uid, status.st_mode & 0o777) == (account.uid, 0o700)
    assert all(path.lstat().st_uid == account.uid for path in state.rglob("*"))
    # Outside it, the directory of the process may remain until the next command.
    (job,) = (state / "jobs").rglob(people[name].job)
    assert job.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", USERS)
def test_another_user_reads_none_of_its_files(
    people: dict[str, Person], hub: Hub, name: str
) -> None:
    owner = hub.accounts[name]
    other = next(it for it in hub.accounts.values() if it is not owner)
    # The home itself may be entered, so that the directories of the product are what protects.
    assert owner.home.stat().st_mode & 0o777 == 0o755
    notebook = str(owner.home / "hello.ipynb")
    code = READABLE.format(root=str(owner.home), owner=owner.uid)
    found = as_user(code, other.uid)
    assert notebook in found, found
    for part in (STATE, Path(".cache/jupyter-submarine"), Path(".config/jupyter-submarine")):
        assert str(owner.home / part) not in found
    assert as_user(f"return os.listdir({str(owner.home / STATE)!r})", other.uid).startswith(
        "PermissionError"
    )
    code = READABLE.format(root=str(hub.temporary), owner=owner.uid)
    assert as_user(code, other.uid) == "[]"


@pytest.mark.parametrize("name", USERS)
def test_another_user_reads_no_environment(people: dict[str, Person], hub: Hub, name: str) -> None:
    owner = hub.accounts[name]
    other = next(it for it in hub.accounts.values() if it is not owner)
    server = hub.server(name)
    assert "JUPYTERHUB_API_TOKEN" in server.environ()
    pids = [server.pid, *(it.pid for it in server.children(recursive=True))]
    assert len(pids) > 1  # the kernel
    for pid in pids:
        assert os.stat(f"/proc/{pid}").st_uid == owner.uid
        read = as_user(f"return open('/proc/{pid}/environ').read()", other.uid)
        assert read.startswith("PermissionError"), pid
