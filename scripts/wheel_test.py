"""Build the wheel, install it into an empty environment, and run a job from there.

Checks that the wheel contains everything that a user needs, including the code for containers and
JupyterLab's front end; that nothing depends on the source tree; and that Node.js is not needed to
build a wheel from the source archive or to install it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEEDED = (
    "submarine_runtime/__init__.py",
    "submarine_jobs/__init__.py",
    "submarine_magics/__init__.py",
    "submarine_kernel/__init__.py",
    "submarine_minicluster/pom.xml",
    "submarine_server/__init__.py",
)
DIST = ROOT / "labextension" / "dist"
#: Directory of the wheel for files outside of the packages, by its name and version.
DATA = "{}.data/data/"
FRONT_END = "share/jupyter/labextensions/jupyter-submarine/"
SERVER_CONFIG = "etc/jupyter/jupyter_server_config.d/submarine_server.json"
NODE = ("node", "nodejs", "npm", "npx", "corepack", "yarn", "yarnpkg", "pnpm", "jlpm")
#: Sends a collected cell and then its job to the installed kernel, like a front end.
CELLS = """
from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel(kernel_name="submarine", startup_timeout=60)
try:
    for cell in (
        "%%submarine --only\\nanswer = 6 * 7",
        "job = %submarine run cells --backend local --return answer --wait",
        "print(job.state.value, job.result['answer'])",
    ):
        def show(message):
            content = message["content"]
            print(content.get("text", ""), *content.get("traceback", ()))

        client.execute_interactive(cell, timeout=90, output_hook=show)
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""
JUPYTERLAB = "jupyterlab>=4.6,<5"
PROGRAM = "import sys\nprint('hello from the wheel', sys.version_info[:2])\n"


def run(
    *command: str | Path, cwd: Path, env: dict[str, str], timeout: float = 300, errors: bool = False
) -> str:
    """Run a command; return its stdout, and with ``errors`` its stderr too.

    On failure, print both and exit.
    """
    print("  $", *command, flush=True)
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout + (done.stderr if errors else "")


def build_wheel(work: Path, env: dict[str, str]) -> Path:
    """Build the wheel of the source tree; return its path."""
    build = (sys.executable, "-m", "build", "--wheel", "--outdir", work / "dist", ROOT)
    run(*build, cwd=work, env=env)
    return next((work / "dist").glob("*.whl"))


def environment(home: Path) -> dict[str, str]:
    """Return the environment variables without those of a cluster or a source tree."""
    dropped = ("PYTHON", "SUBMARINE_", "HADOOP_", "VIRTUAL_ENV", "JUPYTER")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    return {**kept, "HOME": str(home), "XDG_DATA_HOME": str(home / "data")}


def main() -> None:
    """Build, install, run."""
    # The content of labextension/dist is packed unchanged: build it from the present sources.
    subprocess.run([ROOT / "scripts" / "setup.sh", "node"], check=True)
    with tempfile.TemporaryDirectory(prefix="submarine-wheel-") as scratch:
        work = Path(scratch)
        cache = os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))
        env = {**environment(work), "PIP_CACHE_DIR": cache}
        env["PATH"] = str(path_without_node(work / "path", env["PATH"]))
        # The source archive, and a wheel that is built from it.
        run(sys.executable, "-m", "build", "--outdir", work / "dist", ROOT, cwd=work, env=env)
        check_archive(next((work / "dist").glob("*.tar.gz")))
        wheel = next((work / "dist").glob("*.whl"))
        check_content(wheel)
        # A second one, from the source tree: the same bytes.
        again = ("--wheel", "--no-isolation", "--outdir", work / "again", ROOT)
        run(sys.executable, "-m", "build", *again, cwd=work, env=env)
        check_equal(wheel, work / "again" / wheel.name)
        venv.create(work / "venv", with_pip=True)
        binaries = work / "venv" / "bin"
        env["PATH"] = f"{binaries}{os.pathsep}{env['PATH']}"
        pip = (binaries / "python", "-m", "pip", "install", "--quiet")
        run(*pip, wheel, cwd=work, env=env)
        check_commands(binaries, work, env)
        check_extras(binaries, work, env)
        check_notebook(binaries, work, env)
        run(*pip, JUPYTERLAB, cwd=work, env=env)
        check_extensions(binaries, work, env)
    print(f"  {wheel.name} works on its own")


def path_without_node(folder: Path, path: str) -> Path:
    """Return a directory with links to all programs of ``path`` except Node.js and its tools."""
    folder.mkdir()
    for place in path.split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / program.name
            if program.name not in NODE and not link.is_symlink():
                link.symlink_to(program)
    if found := [name for name in NODE if shutil.which(name, path=str(folder))]:
        sys.exit(f"{', '.join(found)} is still on the PATH")
    return folder


def check_archive(archive: Path) -> None:
    """Check that the source archive has the built front end, without its dependencies."""
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    if "labextension/dist/package.json" not in names or "labextension/src/index.ts" not in names:
        sys.exit(f"{archive.name} lacks the front end")
    if extra := [name for name in names if "node_modules/" in name or name.startswith(".venv")]:
        sys.exit(f"{archive.name} holds {len(extra)} files too many, among them {min(extra)}")


def check_content(wheel: Path) -> None:
    """Check packages, server configuration, and the front end of ``labextension/dist``."""
    data = DATA.format("-".join(wheel.name.split("-")[:2]))
    with zipfile.ZipFile(wheel) as archive:
        digests = {name: hashlib.sha256(archive.read(name)).hexdigest()
                   for name in archive.namelist()}  # fmt: skip
    missing = {*NEEDED, data + SERVER_CONFIG, f"{data}{FRONT_END}install.json"} - set(digests)
    if missing:
        sys.exit(f"{wheel.name} lacks {', '.join(sorted(missing))}")
    built = {
        f"{data}{FRONT_END}{file.relative_to(DIST).as_posix()}": digest_of(file)
        for file in DIST.rglob("*")
        if file.is_file()
    }
    held = {name: digest for name, digest in digests.items() if name.startswith(data + FRONT_END)}
    del held[f"{data}{FRONT_END}install.json"]
    if built != held:
        differing = sorted({name for name, _ in built.items() ^ held.items()})
        sys.exit(f"{wheel.name} has another front end than labextension/dist: {differing[:5]}")
    version = json.loads((DIST / "package.json").read_text(encoding="utf-8"))["version"]
    if version != wheel.name.split("-")[1]:
        sys.exit(f"the front end is version {version} in {wheel.name}: set both to the same")


def check_equal(wheel: Path, other: Path) -> None:
    """Check that two builds are equal, except for the line that names the version of hatchling."""
    contents: list[dict[str, object]] = []
    for file in (wheel, other):
        with zipfile.ZipFile(file) as archive:
            contents.append(
                {
                    info.filename: (
                        info.date_time,
                        info.external_attr,
                        re.sub(rb"(?m)^Generator: .*$", b"", archive.read(info)),
                    )
                    for info in archive.infolist()
                    if not info.filename.endswith(".dist-info/RECORD")
                }
            )
    first, second = contents
    if list(first) != list(second) or first != second:
        differing = sorted(
            name for name in {*first, *second} if first.get(name) != second.get(name)
        )
        sys.exit(f"two builds of {wheel.name} differ: {differing[:5]}")


def digest_of(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def check_extensions(binaries: Path, work: Path, env: dict[str, str]) -> None:
    """Check that JupyterLab and its server have enabled and validated both extensions."""
    jupyter = binaries / "jupyter"
    for command, name in ((("labextension", "list"), "jupyter-submarine"),
                          (("server", "extension", "list"), "submarine_server")):  # fmt: skip
        said = run(jupyter, *command, cwd=work, env=env, errors=True)
        lines = [line for line in said.splitlines() if name in line]
        if not any("enabled" in line for line in lines) or not any("OK" in line for line in lines):
            sys.exit(f"jupyter {' '.join(command)} does not find {name} in order:\n{said}")


def check_commands(binaries: Path, work: Path, env: dict[str, str]) -> None:
    """Check help, a job on the local backend, and its record."""
    submarine = binaries / "submarine"
    for arguments in (["--help"], ["run", "--help"], ["minicluster", "--help"]):
        if "Usage" not in run(submarine, *arguments, cwd=work, env=env):
            sys.exit(f"submarine {' '.join(arguments)} prints no usage")
    (work / "hello.py").write_text(PROGRAM, encoding="utf-8")
    run(submarine, "run", "hello.py", "--backend", "local", "--wait", cwd=work, env=env)
    record = json.loads(run(submarine, "show", "last", "--json", cwd=work, env=env))
    if "SUCCEEDED" not in json.dumps(record):
        sys.exit(f"the job did not succeed: {record}")
    log = run(submarine, "logs", "last", cwd=work, env=env)
    if "hello from the wheel" not in log:
        sys.exit(f"the job's log is not what it printed: {log!r}")


def check_extras(binaries: Path, work: Path, env: dict[str, str]) -> None:
    """Check help, completion and errors without extras, and the command that an error names."""
    submarine = binaries / "submarine"
    for group in ("workflow", "zeppelin"):
        if "Usage" not in run(submarine, group, "--help", cwd=work, env=env):
            sys.exit(f"submarine {group} --help prints no usage")
    words = {"COMP_WORDS": "submarine workflow ch", "COMP_CWORD": "2"}
    completing = {**env, **words, "_SUBMARINE_COMPLETE": "bash_complete"}
    if "plain,check" not in run(submarine, cwd=work, env=completing):
        sys.exit("submarine workflow ch is not completed")
    check_extra_missing(submarine, "run hello.ipynb -o out.ipynb", "workflows", work, env)
    (work / "zeppelin" / "interpreter").mkdir(parents=True)
    install = "zeppelin install zeppelin"
    command = check_extra_missing(submarine, install, "zeppelin", work, env)
    run("sh", "-c", command, cwd=work, env=env)
    run(submarine, *install.split(), cwd=work, env=env)


def check_extra_missing(
    submarine: Path, words: str, extra: str, work: Path, env: dict[str, str]
) -> str:
    """Check that a command names the extra that it needs; return the command that installs it."""
    print("  $", submarine, words, flush=True)
    done = subprocess.run(
        [submarine, *words.split()], cwd=work, env=env, capture_output=True, text=True, timeout=60
    )
    said = done.stderr.strip()
    named = re.fullmatch(r"submarine: The extra (\w+) is not installed \(.*\); type (.*)", said)
    if done.returncode != 1 or named is None or named[1] != extra:
        sys.exit(f"submarine {words} does not name the extra {extra}: {said or done.stdout}")
    return named[2]


def check_notebook(binaries: Path, work: Path, env: dict[str, str]) -> None:
    """Check that the kernel "Python + Submarine" is installed, and collects and runs a cell."""
    run(binaries / "submarine", "kernel", "install", cwd=work, env=env)
    (work / "cells.py").write_text(CELLS, encoding="utf-8")
    said = run(binaries / "python", "cells.py", cwd=work, env=env)
    if "SUCCEEDED 42" not in said:
        sys.exit(f"the notebook's job did not come back: {said[-4000:]}")


if __name__ == "__main__":
    main()
