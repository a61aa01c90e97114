#!/bin/sh
# Makes this machine ready: `setup.sh [python] [java]`. What is there already is left alone, and a
# second run is quick. Debian's packages are asked for only where something is missing, and it says so.
set -eu
cd "$(dirname "$0")/.."

fail() {
  echo "set-up: $*" >&2
  exit 1
}

# install REASON PACKAGE...: by apt, as root or by sudo.
install() {
  reason=$1
  shift
  command -v apt-get >/dev/null 2>&1 ||
    fail "$reason, and there is no apt-get here: install the equivalent of: $*"
  if [ "$(id -u)" = 0 ]; then
    as_root=
  elif command -v sudo >/dev/null 2>&1; then
    as_root=sudo
  else
    fail "$reason: as root, run: apt-get install $*"
  fi
  echo "set-up: $reason: asking apt for $*"
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq ||
    fail "apt-get update failed; is the network there?"
  $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
    fail "apt-get could not install $*"
}

# An interpreter that is new enough, or nothing. TensorFlow is slow to follow the newest.
find_python() {
  for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
}

setup_python() {
  stamp=.venv/.set-up
  wanted=$(cksum pyproject.toml)
  if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    return
  fi
  if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    if [ -z "$python" ]; then
      install "no Python 3.11 or newer was found" python3 python3-venv
      python=$(find_python)
    fi
    [ -n "$python" ] || fail "this system's Python is older than 3.11: install Python 3.11 or newer" \
      "and name it, as in: PYTHON=/opt/python3.12/bin/python3 make test"
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
      version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
      install "$python cannot make virtual environments" "python$version-venv"
    fi
    echo "set-up: making .venv with $python"
    "$python" -m venv --clear .venv
  fi
  echo "set-up: installing the project, TensorFlow and the tools into .venv (minutes, the first time)"
  # Dependency groups need pip 25.1.
  .venv/bin/python -m pip install --quiet 'pip>=25.1'
  .venv/bin/python -m pip install --quiet -e '.[tensorflow]' --group dev
  echo "$wanted" >"$stamp"
}

setup_java() {
  find_java='from submarine_minicluster.java import find_java; find_java()'
  if ! .venv/bin/python -c "$find_java" 2>/dev/null; then
    package=openjdk-17-jdk-headless
    apt-cache show "$package" >/dev/null 2>&1 || package=default-jdk-headless
    install "no Java 17 or newer was found" "$package"
  fi
  command -v mvn >/dev/null 2>&1 || install "Maven (mvn) was not found" maven
}

for part in "$@"; do
  case "$part" in
  python | java) "setup_$part" ;;
  *) fail "there is no part '$part': it is python or java" ;;
  esac
done
