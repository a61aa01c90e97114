"""A Zeppelin installation for ``submarine notebook start --app zeppelin``, of the tests' jars."""

from __future__ import annotations

from pathlib import Path

from submarine_minicluster.machine import find_java
from tests.zeppelin.server_jars import ensure_jars


def zeppelin_at(home: Path) -> Path:
    """Make it, as far as the server needs one; its start script is short, like theirs."""
    for name in ("bin", "conf", "interpreter", "war"):
        (home / name).mkdir(parents=True)
    # What an administrator has set must not lead the job's server elsewhere.
    (home / "conf" / "zeppelin-env.sh").write_text("export ZEPPELIN_PORT=1\nexport MARK=kept\n")
    (home / "bin" / "zeppelin.sh").write_text(
        "set -e\n"
        '. "$ZEPPELIN_CONF_DIR/zeppelin-env.sh"\n'
        'test "$MARK" = kept\n'
        f'exec "{find_java().binary}" -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 '
        '-Dzeppelin.war="$ZEPPELIN_HOME/war" '
        '-Dzeppelin.interpreter.dir="$ZEPPELIN_HOME/interpreter" '
        f'-cp "$ZEPPELIN_CONF_DIR:{ensure_jars()}/*" '
        "org.apache.zeppelin.server.ZeppelinServer\n"
    )
    return home
