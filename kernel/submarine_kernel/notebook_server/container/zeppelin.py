"""Zeppelin: a copy of its configuration with one user; the token is the password.

Zeppelin has no tokens. Anonymous access is therefore disabled, and the password can be derived in
this container and by the owner of the job only.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
from xml.sax.saxutils import escape

from .application import Application, StartError
from .environment import ContainerEnvironment

USER = "submarine"
STORAGE = "org.apache.zeppelin.notebook.repo.VFSNotebookRepo"
#: Its processes use less than this part of a core when no paragraph runs.
IDLE_LOAD = 0.1


class Zeppelin(Application):
    """A Zeppelin installation of the node, or from an archive of the job."""

    label = "Zeppelin"
    health = "/api/version"

    def __init__(self, container: ContainerEnvironment, home: str) -> None:
        super().__init__(container)
        self._home = os.path.abspath(os.path.expanduser(home))
        self._used = 0.0
        self._before = (time.monotonic(), 0.0)

    def command(self) -> list[str]:
        """Write the configuration with the password to private files.

        Raises
        ------
        StartError
            If there is no Zeppelin in the installation directory.
        """
        start = os.path.join(self._home, "bin", "zeppelin.sh")
        if not os.path.isfile(start):
            raise StartError(
                f"there is no Zeppelin in {self._home} of the container: bin/zeppelin.sh is "
                "missing. Name its installation on the nodes with --zeppelin-home, or bring one "
                "along: --archive zeppelin.tgz:zeppelin --zeppelin-home zeppelin."
            )
        conf = os.path.join(self.container.private_directory("zeppelin"), "conf")
        given = os.path.join(self._home, "conf")
        if os.path.isdir(given):
            shutil.copytree(given, conf, dirs_exist_ok=True)
        self.container.write_private("zeppelin/conf/zeppelin-site.xml", self._site())
        self.container.write_private("zeppelin/conf/zeppelin-env.sh", self._environment(given))
        self.container.write_private("zeppelin/conf/shiro.ini", _shiro(self.container.token))
        return ["bash", start]

    def variables(self) -> dict[str, str]:
        """Use the scratch directory instead of the installation."""
        scratch = os.path.join(self.container.root, "zeppelin")
        return {
            "ZEPPELIN_HOME": self._home,
            "ZEPPELIN_CONF_DIR": os.path.join(scratch, "conf"),
            "ZEPPELIN_LOG_DIR": os.path.join(scratch, "logs"),
            "ZEPPELIN_PID_DIR": os.path.join(scratch, "run"),
            "ZEPPELIN_WAR_TEMPDIR": os.path.join(scratch, "webapps"),
            # Without it the server reads stdin and ends at its end.
            "ZEPPELIN_IDENT_STRING": "submarine",
        }

    def _environment(self, given: str) -> str:
        """Return the installation's ``zeppelin-env.sh``, followed by overriding variables."""
        overrides = {
            "ZEPPELIN_ADDR": "127.0.0.1",
            "ZEPPELIN_PORT": str(self.port),
            "ZEPPELIN_NOTEBOOK_DIR": self.container.notebooks,
            "ZEPPELIN_NOTEBOOK_STORAGE": STORAGE,
            "ZEPPELIN_ALLOW_ANONYMOUS": "false",
            **self.variables(),
        }
        lines = ["export " + name + "=" + shlex.quote(value) for name, value in overrides.items()]
        try:
            with open(os.path.join(given, "zeppelin-env.sh"), encoding="utf-8") as file:
                lines.insert(0, file.read())
        except FileNotFoundError:
            pass
        return "\n".join(lines) + "\n"

    def _site(self) -> str:
        scratch = os.path.join(self.container.root, "zeppelin")
        values = {
            "zeppelin.server.addr": "127.0.0.1",
            "zeppelin.server.port": str(self.port),
            "zeppelin.notebook.dir": self.container.notebooks,
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
        """Return when its processes last used the processor: Zeppelin does not report its use."""
        now, used = time.monotonic(), processor_seconds()
        then, before = self._before
        self._before = (now, used)
        if before and used - before > IDLE_LOAD * (now - then):
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
    """Return the processor time of all processes in this program's session, with dead children."""
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
