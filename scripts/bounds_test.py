"""Run the project with the lowest and with the newest versions that pyproject.toml admits.

Uses this interpreter, and a newer Python of a later Debian suite that is unpacked into a temporary
directory, without root. If apt does not have that suite, this part is skipped with a message.
Before that, uv resolves both sets of versions for every supported Python, from wheels only.

The modules of skein, which are no longer maintained, run with each combination of Python and of the
first and last protobuf and grpcio of each major version that is admitted (`skein_smoke.py`):
``bounds_test.py skein`` runs only these.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version
from wheel_test import CELLS, build_wheel, environment, run

ROOT = Path(__file__).resolve().parent.parent
SMOKE = ROOT / "scripts" / "bounds_smoke.py"
SKEIN_SMOKE = ROOT / "scripts" / "skein_smoke.py"
PROJECT = ROOT / "pyproject.toml"
IGNORED = "ignore::DeprecationWarning"
#: Without the packages of this environment.
WITH_PACKAGES = """
import runpy, site
site.addsitedir({packages!r})
runpy.run_path({program!r}, run_name="__main__")
"""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
RESOLUTIONS = ("lowest-direct", "highest")
#: Extras whose versions are resolved with the others. TensorFlow has no wheel for each Python.
EXTRAS = ("data", "workflows", "zeppelin")
#: What skein leaves open; of each major version both ends are tried.
SKEIN_NEEDS = ("protobuf", "grpcio")
#: A suite with a newer Python than the oldest that the project supports, and its packages.
SUITE, PACKAGES = "trixie", ("python3.13", "libsqlite3-0", "libssl3t64")
#: Suites that have the Pythons that are not installed here, for skein's modules.
SUITES = {
    "3.13": (SUITE, PACKAGES),
    "3.14": ("sid", ("python3.14", "libsqlite3-0", "libssl3t64")),
}
#: Starts the unpacked Python with its own loader, which works on any system.
START = """#!/bin/sh
export PYTHONHOME={tree}/usr
exec {tree}/lib64/ld-linux-x86-64.so.2 --library-path {tree}/usr/lib/x86_64-linux-gnu \\
  --argv0 {tree}/python3 {tree}/usr/bin/{python} "$@"
"""


def main() -> None:
    """Resolve, install, run."""
    uv = str(Path(sys.executable).parent / "uv")
    with tempfile.TemporaryDirectory(prefix="submarine-bounds-") as scratch:
        work = Path(scratch)
        cache = os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv"))
        env = {**environment(work), "UV_CACHE_DIR": cache, "UV_LINK_MODE": "copy"}
        skein_combinations(uv, work / "skein", env)
        if sys.argv[1:] == ["skein"]:
            return
        for version in PYTHONS:
            for resolution in RESOLUTIONS:
                compile_versions(uv, version, resolution, work, env)
        wheel = build_wheel(work, env)
        trees = (None, unpacked_python(work / "tree", SUITE, PACKAGES))
        for tree in trees if trees[1] else trees[:1]:
            for resolution in RESOLUTIONS:
                smoke(uv, tree, resolution, wheel, work, env)
    print("  both ends of the version bounds work")


def compile_versions(
    uv: str, version: str, resolution: str, work: Path, env: dict[str, str]
) -> None:
    """Resolve the dependencies from wheels only, and write a file with all versions."""
    target = work / f"{version}-{resolution}.txt"
    run(
        *(uv, "pip", "compile", "--quiet", "--python-version", version, "--only-binary", ":all:"),
        *("--resolution", resolution, "--no-header", "--no-annotate", "--output-file", target),
        *(word for extra in EXTRAS for word in ("--extra", extra)),
        ROOT / "pyproject.toml",
        cwd=work, env=env,
    )  # fmt: skip


def unpacked_python(tree: Path, suite: str, packages: tuple[str, ...]) -> Path | None:
    """Unpack a Debian suite's Python, the first package; return its path, None if there is none."""
    sources = [*Path("/etc/apt").glob("sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    words = [word for file in sources if file.is_file() for word in file.read_text().split()]
    mirror = next((word for word in words if word.endswith("/debian")), None)
    if mirror is None or not shutil.which("dpkg-deb"):
        print(f"  LEFT OUT: this machine's apt knows no mirror of Debian, so there is no {suite}")
        return None
    state = tree.parent / f"apt-{suite}"
    for folder in (state / "lists" / "partial", state / "cache" / "archives" / "partial"):
        folder.mkdir(parents=True)
    (state / "status").touch()
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (state / "sources.list").write_text(f"deb [signed-by={keys}] {mirror} {suite} main\n")
    options = {
        "Dir::Etc::sourcelist": f"{state}/sources.list", "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": f"{state}/lists", "Dir::State::status": f"{state}/status",
        "Dir::Cache": f"{state}/cache", "Debug::NoLocking": "1", "Acquire::Languages": "none",
        "APT::Install-Recommends": "false", "APT::Sandbox::User": "",
    }  # fmt: skip
    apt = ["apt-get", *(word for pair in options.items() for word in ("-o", "=".join(pair)))]
    for words in (["-qq", "update"], ["-qq", "-y", "--download-only", "install", *packages]):
        done = subprocess.run([*apt, *words], capture_output=True, text=True, timeout=300)
        if done.returncode:
            print(f"  LEFT OUT: apt has no {suite}: {done.stderr.strip()[-300:]}")
            return None
    for name in ("bin", "sbin", "lib", "lib64"):
        (tree / "usr" / name).mkdir(parents=True)
        (tree / name).symlink_to(f"usr/{name}")
    for package in sorted((state / "cache" / "archives").glob("*.deb")):
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE
        ) as unpacked:
            subprocess.run(
                ["tar", "-x", "-C", tree, "--keep-directory-symlink", "--no-same-owner"],
                stdin=unpacked.stdout, check=True,
            )  # fmt: skip
    python = tree / "python3"
    python.write_text(START.format(tree=tree, python=packages[0]))
    python.chmod(0o755)
    return tree


def skein_combinations(uv: str, work: Path, env: dict[str, str]) -> None:
    """Run skein's modules with each combination of versions, and print a table."""
    rows = []
    requirements = {
        one.name: one
        for one in map(Requirement, tomllib.loads(PROJECT.read_text())["project"]["dependencies"])
    }
    others = [str(requirements[name]) for name in ("skein", "cryptography", "pyyaml")]
    for version in PYTHONS:
        python = python_of(version, work, env)
        if python is None:
            rows.append(f"{version}: LEFT OUT, there is no Python {version}")
            continue
        ends = [both_ends(uv, requirements[name], version, work, env) for name in SKEIN_NEEDS]
        for pair in itertools.product(*ends):
            pins = [f"{name}=={pin}" for name, pin in zip(SKEIN_NEEDS, pair, strict=True)]
            packages = work / f"{version}-{'-'.join(pair)}"
            run(
                *(uv, "pip", "install", "--quiet", "--only-binary", ":all:", "--target", packages),
                *("--python", sys.executable, "--python-version", version),
                *(*others, *pins),
                cwd=work, env=env,
            )  # fmt: skip
            start = WITH_PACKAGES.format(packages=str(packages), program=str(SKEIN_SMOKE))
            said = run(python, "-S", "-W", IGNORED, "-c", start, cwd=work, env=env)
            rows.append(said.strip())
            shutil.rmtree(packages)
    print("  skein's modules work with Python, protobuf, grpcio, cryptography, protobuf's code:")
    for row in rows:
        print(f"    {row}", flush=True)


def python_of(version: str, work: Path, env: dict[str, str]) -> Path | None:
    """Return an interpreter of that version: this one, an installed one, or one of Debian."""
    work.mkdir(exist_ok=True)
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sys.executable)
    found = [shutil.which(f"python{version}", path=path) for path in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found += [str(one) for one in pyenv.glob(f"{version}.*/bin/python{version}")]
    for path in filter(None, found):
        # A shim of pyenv exists for versions that are not active, and fails.
        done = subprocess.run([path, "-c", ""], capture_output=True, env=env, timeout=60)
        if done.returncode == 0:
            return Path(path)
    if version not in SUITES:
        return None
    tree = unpacked_python(work / f"tree-{version}", *SUITES[version])
    return tree / "python3" if tree else None


def both_ends(
    uv: str, requirement: Requirement, version: str, work: Path, env: dict[str, str]
) -> list[str]:
    """Return the first and the last version of each admitted major version that has a wheel."""
    lowest = next(Version(one.version) for one in requirement.specifier if one.operator == ">=")
    end = next(Version(one.version) for one in requirement.specifier if one.operator == "<")
    found = []
    for major in range(lowest.major, end.major):
        first = max(lowest, Version(f"{major}.0.dev0"))
        for resolution in RESOLUTIONS:
            source = work / "requirement.in"
            source.write_text(f"{requirement.name}>={first.base_version},<{major + 1}\n")
            said = run(
                *(uv, "pip", "compile", "--quiet", "--python-version", version, "--no-deps"),
                *("--only-binary", ":all:", "--resolution", resolution, "--no-header"),
                *("--no-annotate", source),
                cwd=work, env=env,
            )  # fmt: skip
            found.append(said.strip().rpartition("==")[2])
    return list(dict.fromkeys(found))


def smoke(
    uv: str, tree: Path | None, resolution: str, wheel: Path, work: Path, env: dict[str, str]
) -> None:
    """Install versions and wheel for an interpreter, and run the smoke test."""
    python = Path(sys.executable) if tree is None else tree / "python3"
    say = "import sys; print('%d.%d' % sys.version_info[:2])"
    version = run(python, "-c", say, cwd=work, env=env).strip()
    place = work / f"run-{version}-{resolution}"
    place.mkdir()
    versions = work / f"{version}-{resolution}.txt"
    if tree is None:
        run(uv, "venv", "--quiet", "--python", python, place / "venv", cwd=work, env=env)
        python = place / "venv" / "bin" / "python"
        where: tuple[str | Path, ...] = ("--python", python)
    else:
        # An unpacked Python has no environments. Debian's Python searches this directory.
        packages = tree / "usr" / "local" / "lib" / f"python{version}" / "dist-packages"
        shutil.rmtree(packages, ignore_errors=True)
        where = ("--python", sys.executable, "--python-version", version, "--target", packages)
    run(
        *(uv, "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"),
        *(*where, "-r", versions, wheel),
        cwd=work, env=env,
    )  # fmt: skip
    own = {**env, "HOME": str(place), "XDG_DATA_HOME": str(place / "data")}
    shutil.copy(SMOKE, place / "smoke.py")
    (place / "cells.py").write_text(CELLS, encoding="utf-8")
    run(python, "smoke.py", cwd=place, env=own)
    said = run(python, "cells.py", cwd=place, env=own)
    if "SUCCEEDED 42" not in said:
        sys.exit(f"the notebook's job did not come back: {said[-4000:]}")
    print(f"  Python {version} with {resolution}: works")
    shutil.rmtree(place)


if __name__ == "__main__":
    main()
