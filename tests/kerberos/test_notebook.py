"""A notebook without a ticket: the refusal names the magic, and the same kernel continues."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_kernel.kernelspecs import install_kernel
from submarine_minicluster import Minicluster
from tests.kerberos.helpers import User
from tests.notebook.conftest import TIMEOUT, Notebook

pytestmark = [pytest.mark.cluster, pytest.mark.full]

RUN = "%submarine run hello.py --memory 256M --wait"


@pytest.fixture
def notebook(kerberos_minicluster: Minicluster, tmp_path: Path) -> Iterator[Notebook]:
    user = User(kerberos_minicluster, "alice", tmp_path / "alice", ticket=False)
    install_kernel(prefix=str(tmp_path))
    kernels = tmp_path / "share" / "jupyter" / "kernels"
    with contextlib.closing(Notebook(tmp_path, kernels, environment=user.environ)) as opened:
        yield opened


@pytest.mark.timeout(400)
def test_login_after_a_refusal(notebook: Notebook, kerberos_minicluster: Minicluster) -> None:
    (notebook.folder / "hello.py").write_text("print('hello')")
    refused = notebook.run(RUN)
    assert refused.status == "error"
    assert refused.ename == "TicketError"
    for shown in (refused.evalue, refused.traceback):
        assert "Get one with `%submarine login` or kinit" in shown
        assert "`%submarine doctor` shows details" in shown
        assert "`submarine " not in shown
    assert not refused.cards

    password = kerberos_minicluster.password("alice")
    login = notebook.send("%submarine login alice")
    question = notebook.client.get_stdin_msg(timeout=TIMEOUT)["content"]
    assert question["password"] is True
    assert "Password of alice" in question["prompt"]
    notebook.client.input(password)
    notebook.wait(login)
    assert login.status == "ok", login.traceback
    assert "alice@MINICLUSTER.TEST has a ticket for" in login.stdout

    done = notebook.good(RUN)
    assert done.cards
    listed = notebook.good("%submarine list")
    assert "hello" in str(listed.displays) + listed.stdout
    for ran in notebook.ran.values():
        assert password not in str(ran)
