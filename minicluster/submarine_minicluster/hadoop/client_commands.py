"""Shell scripts `yarn` and `hdfs` that run Hadoop's client commands from the cached jars.

skein calls `yarn classpath --glob`; `hdfs dfs` and `yarn application` are for interactive use. The
scripts reject other subcommands.
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from submarine_minicluster.layout import Layout
from submarine_minicluster.machine import Java
from submarine_runtime.files import replace_file

_SCRIPT = """\
#!/bin/sh
# Written by `submarine minicluster start`.
conf=${{HADOOP_CONF_DIR:-{conf}}}
lib={lib}
run() {{
  exec {java} -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx256m{options} \\
    -cp "$lib/*:$conf" "$@"
}}
command=$1
[ $# -gt 0 ] && shift
case "$command" in
{cases}
*) echo "{name}: $command: not a command of the minicluster (available: {known})" >&2; exit 2 ;;
esac
"""

# Configuration last: a class-data archive (AppCDS) requires jars first.
_CLASSPATH = """\
classpath)
  if [ "$1" = --glob ]; then
    set -- "$lib"/*.jar
    (IFS=:; echo "$*:$conf")
  else
    echo "$lib/*:$conf"
  fi ;;"""

_CLI = "org.apache.hadoop.yarn.client.cli"
_YARN = {
    "application": f"{_CLI}.ApplicationCLI application",
    "app": f"{_CLI}.ApplicationCLI app",
    "applicationattempt": f"{_CLI}.ApplicationCLI applicationattempt",
    "container": f"{_CLI}.ApplicationCLI container",
    "node": f"{_CLI}.NodeCLI",
    "queue": f"{_CLI}.QueueCLI",
    "logs": f"{_CLI}.LogsCLI",
    "rmadmin": f"{_CLI}.RMAdminCLI",
    "version": "org.apache.hadoop.util.VersionInfo",
}
_HDFS = {
    "dfs": "org.apache.hadoop.fs.FsShell",
    "dfsadmin": "org.apache.hadoop.hdfs.tools.DFSAdmin",
    "crypto": "org.apache.hadoop.hdfs.tools.CryptoAdmin",
    "haadmin": "org.apache.hadoop.hdfs.tools.DFSHAAdmin",
    "fsck": "org.apache.hadoop.hdfs.tools.DFSck",
    "getconf": "org.apache.hadoop.hdfs.tools.GetConf",
    "version": "org.apache.hadoop.util.VersionInfo",
}


def write_client_commands(layout: Layout, java: Java, lib: Path, *, kerberos: bool) -> None:
    """Write both scripts into the cluster's `bin` directory."""
    # Java does not read KRB5_CONFIG.
    options = f" -Djava.security.krb5.conf={layout.krb5_conf}" if kerberos else ""
    for name, commands in (("yarn", _YARN), ("hdfs", _HDFS)):
        cases = [_CLASSPATH, *(f'{word}) run {main} "$@" ;;' for word, main in commands.items())]
        text = _SCRIPT.format(
            name=name,
            conf=quote(str(layout.client_conf)),
            lib=quote(str(lib)),
            java=quote(str(java.binary)),
            options=options and f" {quote(options.strip())}",
            cases="\n".join(cases),
            known=", ".join(["classpath", *commands]),
        )
        path = layout.bin / name
        replace_file(path, text.encode(), mode=0o755)
