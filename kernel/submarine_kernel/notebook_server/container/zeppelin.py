"""Zeppelin: a copy of its configuration with one user, whose password is the token.

Zeppelin has no token of its own, so anonymous use is switched off, and what lets a person in is a
password that only this container and the owner of the job can make.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
from xml.sax.saxutils import escape

from .application import Application, StartError
from .surroundings import Surroundings

USER = "submarine"
STORAGE = "org.apache.zeppelin.notebook.repo.VFSNotebookRepo"
#: A part of a core that its processes use when nothing runs stays below this.
AT_REST = 0.1


class Zeppelin(Application):
    """A Zeppelin installation of the node, or of an archive that came along."""

    label = "Zeppelin"
    health = "/api/version"

    def __init__(self, around: Surroundings, home: str) -> None:
        super().__init__(around)
        self._home = os.path.abspath(os.path.expanduser(home))
        self._used = 0.0
        self._before = (time.monotonic(), 0.0)

    def command(self) -> list[str]:
        """Its user goes into a file that only this user can read."""
        start = os.path.join(self._home, "bin", "zeppelin.sh")
        if not os.path.isfile(start):
            raise StartError(
                f"there is no Zeppelin in {self._home} of the container: bin/zeppelin.sh is "
                "missing. Name its installation on the nodes with --zeppelin-home, or bring one "
                "along: --archive zeppelin.tgz:zeppelin --zeppelin-home zeppelin."
            )
        conf = os.path.join(self.around.closed("zeppelin"), "conf")
        given = os.path.join(self._home, "conf")
        if os.path.isdir(given):
            shutil.copytree(given, conf, dirs_exist_ok=True)
        self.around.private("zeppelin/conf/zeppelin-site.xml", self._site())
        self.around.private("zeppelin/conf/zeppelin-env.sh", self._environment(given))
        self.around.private("zeppelin/conf/shiro.ini", _shiro(self.around.token))
        return ["bash", start]

    def variables(self) -> dict[str, str]:
        """Nothing of it is written to the installation."""
        scratch = os.path.join(self.around.root, "zeppelin")
        return {
            "ZEPPELIN_HOME": self._home,
            "ZEPPELIN_CONF_DIR": os.path.join(scratch, "conf"),
            "ZEPPELIN_LOG_DIR": os.path.join(scratch, "logs"),
            "ZEPPELIN_PID_DIR": os.path.join(scratch, "run"),
            "ZEPPELIN_WAR_TEMPDIR": os.path.join(scratch, "webapps"),
            # Without it the server reads its input, and ends with it.
            "ZEPPELIN_IDENT_STRING": "submarine",
        }

    def _environment(self, given: str) -> str:
        """The installation's own ``zeppelin-env.sh``, and ours behind it: variables win."""
        ours = {
            "ZEPPELIN_ADDR": "127.0.0.1",
            "ZEPPELIN_PORT": str(self.port),
            "ZEPPELIN_NOTEBOOK_DIR": self.around.notebooks,
            "ZEPPELIN_NOTEBOOK_STORAGE": STORAGE,
            "ZEPPELIN_ALLOW_ANONYMOUS": "false",
            **self.variables(),
        }
        lines = ["export " + name + "=" + shlex.quote(value) for name, value in ours.items()]
        try:
            with open(os.path.join(given, "zeppelin-env.sh"), encoding="utf-8") as file:
                lines.insert(0, file.read())
        except FileNotFoundError:
            pass
        return "\n".join(lines) + "\n"

    def _site(self) -> str:
        scratch = os.path.join(self.around.root, "zeppelin")
        values = {
            "zeppelin.server.addr": "127.0.0.1",
            "zeppelin.server.port": str(self.port),
            "zeppelin.notebook.dir": self.around.notebooks,
            "zeppelin.notebook.storage": STORAGE,
            "zeppelin.anonymous.allowed": "false",
            "zeppelin.war.tempdir": os.path.join(scratch, "webapps"),
            "zeppelin.recovery.dir": os.path.join(scratch, "recovery"),
            "zeppelin.search.index.path": os.path.join(scratch, "index"),
        }
        rows = "".join(
            f"<property><name>{name}</name><value>{escape(value)}</value></property>\n"
            for name, value in values.items()
        )
        return f'<?xml version="1.0"?>\n<configuration>\n{rows}</configuration>\n'

    def last_used(self) -> float:
        """It does not tell who is there: work of its processes counts, beside saved notes."""
        now, used = time.monotonic(), processor_seconds()
        then, before = self._before
        self._before = (now, used)
        if before and used - before > AT_REST * (now - then):
            self._used = time.time()
        return self._used


def _shiro(token: str) -> str:
    return (
        f"[users]\n{USER} = {token}, admin\n[main]\n"
        "sessionManager = org.apache.shiro.web.session.mgt.DefaultWebSessionManager\n"
        "cacheManager = org.apache.shiro.cache.MemoryConstrainedCacheManager\n"
        "securityManager.cacheManager = $cacheManager\n"
        "securityManager.sessionManager = $sessionManager\n"
        "securityManager.sessionManager.globalSessionTimeout = 86400000\n"
        "shiro.loginUrl = /api/login\n[roles]\nadmin = *\n[urls]\n"
        "/api/version = anon\n/** = authc\n"
    )


def processor_seconds() -> float:
    """Processor time of all processes in this program's session, dead children included."""
    total, session = 0, os.getsid(0)
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                words = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[3]) == session:
            total += sum(int(word) for word in words[11:15])
    return total / float(os.sysconf("SC_CLK_TCK"))
