"""A Zeppelin installation for ``submarine notebook start --app zeppelin``, from the tests' jars."""

from __future__ import annotations

from pathlib import Path

from submarine_minicluster.machine import find_java
from tests.zeppelin.server_jars import ensure_jars


def zeppelin_at(home: Path) -> Path:
    """Create an installation with the files that the server needs, and a short start script."""
    for name in ("bin", "conf", "interpreter", "war"):
        (home / name).mkdir(parents=True)
    # Settings of an administrator must not change the job's server.
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
