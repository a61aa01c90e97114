#!/bin/sh
# shellcheck disable=SC2016  # Values from the cluster are in single quotes: they never expand.
# Written by `submarine doctor --fix`. Nothing has been run: read it first.
#
#   sh FILE dry-run MACHINE   show each command with its reason
#   sh FILE apply MACHINE     run them; a second time changes nothing
#   sh FILE undo MACHINE      take them back
#
# MACHINE is client, resourcemanager or node: the kind of this machine. Run it on each machine of a
# kind, as root or as the owner of the configuration, then restart the daemons that it names.
# HADOOP_CONF_DIR [/etc/hadoop/conf] is the directory of the configuration files, CGROUP_ROOT
# [/sys/fs/cgroup] that of the control groups, YARN_USER [yarn] the user of the NodeManager.
set -eu

CONF=${HADOOP_CONF_DIR:-/etc/hadoop/conf}
CGROUPS=${CGROUP_ROOT:-/sys/fs/cgroup}
YARN_USER=${YARN_USER:-yarn}
MODE=${1:-}
MACHINE=${2:-}

case $MODE-$MACHINE in
apply-client | apply-resourcemanager | apply-node) ;;
undo-client | undo-resourcemanager | undo-node) ;;
dry-run-client | dry-run-resourcemanager | dry-run-node) ;;
*)
    sed -n '3,14p' "$0" >&2
    exit 2
    ;;
esac
if [ ! -d "$CONF" ]; then
    printf '%s is not a directory: set HADOOP_CONF_DIR.\n' "$CONF" >&2
    exit 2
fi

reason() {
    printf '\n# %s\n' "$1"
}

run() {
    printf '+ %s\n' "$*"
    [ "$MODE" = dry-run ] || "$@"
}

# edit FILE set|add NAME VALUE: set a property, or add a word to its list. The former value is kept
# in FILE.submarine-undo. Other text of the file, such as comments, stays as it is.
edit() {
    printf '+ %s in %s: %s %s %s\n' "$MODE" "$CONF/$1" "$2" "$3" "$4"
    [ "$MODE" = dry-run ] || "${PYTHON:-python3}" - "$MODE" "$CONF/$1" "$2" "$3" "$4" <<'PYTHON_END'
import json, os, re, sys
from xml.sax.saxutils import escape, unescape

mode, path, operation, name, value = sys.argv[1:]
kept = path + ".submarine-undo"
empty = '<?xml version="1.0"?>\n<configuration>\n</configuration>\n'
created = not os.path.exists(path)
text = empty
if not created:
    with open(path, encoding="utf-8") as file:
        text = file.read()
saved = {"created": created, "values": {}}
if os.path.exists(kept):
    with open(kept, encoding="utf-8") as file:
        saved = json.load(file)
comments = [match.span() for match in re.finditer(r"<!--.*?-->", text, re.DOTALL)]
block = None
for match in re.finditer(r"<property>.*?</property>", text, re.DOTALL):
    found = re.search(r"<name>\s*(.*?)\s*</name>", match.group(), re.DOTALL)
    commented = any(start <= match.start() < end for start, end in comments)
    if found and found.group(1) == name and not commented:
        block = match
old = None
if block:
    inner = re.search(r"<value>(.*?)</value>", block.group(), re.DOTALL)
    old = unescape(inner.group(1)).strip() if inner else ""
if mode == "undo":
    if name not in saved["values"]:
        sys.exit()
    new = saved["values"].pop(name)
else:
    words = [word.strip() for word in (old or "").split(",") if word.strip()]
    new = value if operation == "set" else ",".join(dict.fromkeys([*words, value]))
    if new == old:
        sys.exit()
    saved["values"].setdefault(name, old)
if new is None:
    text = re.sub(r"[ \t]*" + re.escape(block.group()) + r"\n?", "", text) if block else text
else:
    made = f"<property><name>{name}</name><value>{escape(new)}</value></property>"
    if block:
        text = text[: block.start()] + made + text[block.end() :]
    else:
        head, end, tail = text.rpartition("</configuration>")
        if not end:
            sys.exit(f"{path} has no <configuration>: correct it by hand.")
        text = f"{head}  {made}\n{end}{tail}"
if saved["created"] and not saved["values"] and text == empty:
    for one in (path, kept):
        if os.path.exists(one):
            os.remove(one)
    sys.exit()
with open(kept, "w", encoding="utf-8") as file:
    json.dump(saved, file)
with open(path, "w", encoding="utf-8") as file:
    file.write(text)
if not saved["values"]:
    os.remove(kept)
PYTHON_END
}

# block NAME FILE LINES [top]: add lines to a file between two marks, at its end or its top.
block() {
    begin="# submarine-doctor $1 begin" end="# submarine-doctor $1 end"
    if [ "$MODE" = undo ]; then
        [ ! -f "$2" ] || run sed -i "/^$begin\$/,/^$end\$/d" "$2"
    elif ! grep -qsxF "$begin" "$2"; then
        printf '+ add to %s:\n%s\n' "$2" "$3"
        [ "$MODE" != dry-run ] || return 0
        rest=
        if [ "${4:-}" = top ] && [ -f "$2" ]; then
            rest=$(cat "$2")
            : >"$2"
        fi
        printf '%s\n%s\n%s\n' "$begin" "$3" "$end" >>"$2"
        [ -z "$rest" ] || printf '%s\n' "$rest" >>"$2"
    fi
}

install_packages() {
    if command -v apt-get >/dev/null; then
        run apt-get install -y "$@"
    else
        run dnf install -y "$@"
    fi
}

remove_packages() {
    if command -v apt-get >/dev/null; then
        run apt-get remove -y "$@"
    else
        run dnf remove -y "$@"
    fi
}

# --- items ---
