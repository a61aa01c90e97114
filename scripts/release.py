"""Set version and addresses, check that a commit can be released, and rehearse a release.

`version` writes the version into its only source, `submarine_jobs/version.py`, and into the two
files of the front end, which cannot read Python. `urls` writes the project's public addresses.
`changelog` turns the section "Unreleased" into that of the version. `check` prints why HEAD is not
a release. `rehearse` carries out the steps of RELEASE.md in a clone in a temporary directory: it
builds all archives twice and compares them, uploads them to an index on a loopback port, and runs
`submarine` from an empty environment that has installed it from there. Nothing leaves this machine,
except that pip fetches dependencies.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import hashlib
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler
from wheel_test import digest_of, run

ROOT = Path(__file__).resolve().parent.parent
PROJECT = "jupyter-submarine"
CHANGELOG = "CHANGELOG.md"
UNRELEASED = "Unreleased"
PYPROJECT = "pyproject.toml"
#: Name of each project address, and its path below that of the repository.
PROJECT_URLS = {
    "Homepage": "",
    "Documentation": "/tree/main/docs",
    "Source": "",
    "Issues": "/issues",
    "Changelog": f"/blob/main/{CHANGELOG}",
}
#: Address of the repository in a rehearsal if the project states none.
REHEARSED_URL = "https://repository.invalid/jupyter-submarine"
#: The types of changes of Keep a Changelog, in the order of its sections.
CHANGE_TYPES = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
_RELEASE_LINE = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<date>\S+))?(?P<rest>.*)$")


@dataclass(frozen=True)
class VersionPlace:
    """A file that states the version; ``pattern`` has it as its only group."""

    file: str
    pattern: str
    npm: bool = False


#: The source of the version, then its copies.
VERSION_PLACES = (
    VersionPlace("jobs/submarine_jobs/version.py", r'^__version__ = "([^"]+)"$'),
    VersionPlace("labextension/package.json", r'^  "version": "([^"]+)",$', npm=True),
    VersionPlace(
        "labextension/src/api/readiness.ts", r"^export const VERSION = '([^']+)';$", npm=True
    ),
)


def npm_version(version: str) -> str:
    """Return a version in the form of npm: ``1.2.0rc1`` is ``1.2.0-rc.1``."""
    parsed = Version(version)
    stage = f"-{parsed.pre[0]}.{parsed.pre[1]}" if parsed.pre else ""
    return f"{parsed.major}.{parsed.minor}.{parsed.micro}{stage}"


def read_version(root: Path, place: VersionPlace = VERSION_PLACES[0]) -> str:
    """Return the version that a file states."""
    found = re.findall(place.pattern, (root / place.file).read_text("utf-8"), re.MULTILINE)
    if len(found) != 1:
        raise SystemExit(
            f"{place.file} must state the version once, and does so {len(found)} times."
        )
    return str(found[0])


def write_version(root: Path, version: str) -> None:
    """Write the version into its source and its copies."""
    for place in VERSION_PLACES:
        before = read_version(root, place)
        text = (root / place.file).read_text("utf-8")
        line = re.search(place.pattern, text, re.MULTILINE)
        if line is not None:
            stated = line[0].replace(before, npm_version(version) if place.npm else version)
            text = f"{text[: line.start()]}{stated}{text[line.end() :]}"
            (root / place.file).write_text(text, "utf-8")


def version_problems(root: Path) -> list[str]:
    """Return what is wrong with the source and the copies of the version."""
    version = read_version(root)
    try:
        if str(Version(version)) != version or len(Version(version).release) != 3:
            return [f"{version} is not a version like 1.2.3 or 1.2.3rc1."]
    except InvalidVersion:
        return [f"{version} is not a version."]
    return [
        f"{place.file} states {found}, and {VERSION_PLACES[0].file} {version}: "
        f"type python scripts/release.py version {version}."
        for place in VERSION_PLACES[1:]
        if (found := read_version(root, place)) != npm_version(version)
    ]


def project_urls(root: Path) -> dict[str, str]:
    """Return the addresses that the package index shows; empty if the project states none."""
    project = tomllib.loads((root / PYPROJECT).read_text("utf-8"))["project"]
    return {str(name): str(url) for name, url in project.get("urls", {}).items()}


def write_project_urls(root: Path, repository: str) -> None:
    """Write the addresses of a repository, in place of earlier ones.

    Raises
    ------
    SystemExit
        If it is not an HTTPS address.
    """
    if re.fullmatch(r"https://[\w.-]+(/[\w.~-]+)+", repository) is None:
        raise SystemExit(f"{repository} is not an address like https://HOST/OWNER/NAME.")
    lines = (f'{name} = "{repository}{path}"\n' for name, path in PROJECT_URLS.items())
    table = f"[project.urls]\n{''.join(lines)}\n"
    text = (root / PYPROJECT).read_text("utf-8")
    text = re.sub(r"^\[project\.urls\]\n(?:[^\[\n].*\n)*\n?", "", text, flags=re.MULTILINE)
    (root / PYPROJECT).write_text(
        text.replace("[project.scripts]\n", f"{table}[project.scripts]\n", 1), "utf-8"
    )


def changelog_problems(text: str) -> list[str]:
    """Return in what the changelog differs from the form of Keep a Changelog."""
    found: list[str] = []
    names: list[str] = []
    types: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            match = _RELEASE_LINE.match(line)
            if match is None or match["rest"]:
                found.append(f"line {number}: a release is `## [1.2.3] - 2026-11-30`, not {line!r}")
                continue
            name, date = match["name"], match["date"]
            if name != UNRELEASED and not _is_date(date):
                found.append(f"line {number}: {name} has no date like 2026-11-30")
            names.append(name)
            types = []
        elif line.startswith("### "):
            kind = line[4:]
            if kind not in CHANGE_TYPES:
                found.append(f"line {number}: {kind} is none of {', '.join(CHANGE_TYPES)}")
            elif types and CHANGE_TYPES.index(kind) <= CHANGE_TYPES.index(types[-1]):
                found.append(f"line {number}: {kind} must come before {types[-1]}")
            else:
                types.append(kind)
    if names[:1] != [UNRELEASED]:
        found.append(f"the first section must be `## [{UNRELEASED}]`")
    released = [Version(name) for name in names[1:]]
    if released != sorted(set(released), reverse=True):
        found.append("the newest release must come first, each once")
    return [f"{CHANGELOG}: {problem}." for problem in found]


def _is_date(text: str | None) -> bool:
    try:
        return text is not None and str(datetime.date.fromisoformat(text)) == text
    except ValueError:
        return False


def sections(text: str) -> dict[str, str]:
    """Return the text of each release in the changelog."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines(keepends=True):
        match = _RELEASE_LINE.match(line.rstrip("\n"))
        if match is not None:
            name = match["name"]
            found[name] = ""
        elif name:
            found[name] += line
    return {name: body.strip() for name, body in found.items()}


def released_changelog(text: str, version: str, date: str) -> str:
    """Return the changelog with the section "Unreleased" as that of a version."""
    known = sections(text)
    if version in known:
        raise SystemExit(f"{CHANGELOG} has a section of {version} already.")
    if not known.get(UNRELEASED):
        raise SystemExit(f"{CHANGELOG} has no changes below `## [{UNRELEASED}]`.")
    line = f"## [{UNRELEASED}]\n"
    return text.replace(line, f"{line}\n## [{version}] - {date}\n", 1)


def release_problems(root: Path) -> list[str]:
    """Return why HEAD of a checkout is not a release, one sentence each."""
    text = (root / CHANGELOG).read_text("utf-8")
    found = [*version_problems(root), *changelog_problems(text)]
    version = read_version(root)
    known = sections(text)
    if version not in known:
        found.append(f"{CHANGELOG} has no section of {version}: type "
                     "python scripts/release.py changelog.")  # fmt: skip
    if known.get(UNRELEASED):
        found.append(f"{CHANGELOG} has changes below `## [{UNRELEASED}]`.")
    if missing := PROJECT_URLS.keys() - project_urls(root).keys():
        found.append(f"{PYPROJECT} has no project address {', '.join(sorted(missing))}: type "
                     "python scripts/release.py urls https://HOST/OWNER/NAME.")  # fmt: skip
    if git(root, "status", "--porcelain"):
        found.append("The checkout has uncommitted changes.")
    if f"v{version}" not in git(root, "tag", "--points-at", "HEAD").splitlines():
        found.append(f"HEAD does not have the tag v{version}.")
    return found


def git(root: Path, *words: str) -> str:
    """Run git in a checkout; return its output."""
    done = subprocess.run(
        ["git", *words], cwd=root, capture_output=True, text=True, check=False, timeout=120
    )
    if done.returncode:
        raise SystemExit(f"git {' '.join(words)} failed:\n{done.stderr.strip()}")
    return done.stdout.strip()


# The rehearsal


class IndexHandler(RequestHandler):
    """An index: `POST /` uploads a file, `GET /PROJECT/` lists them, `GET /files/NAME` reads."""

    def initialize(self, folder: Path) -> None:
        """Use the files of a directory."""
        self.folder = folder

    def post(self, _path: str) -> None:
        """Store an uploaded file; a name can be used once."""
        try:
            upload = self.request.files["content"][0]
        except (KeyError, IndexError):
            raise HTTPError(400) from None
        name = Path(upload["filename"]).name
        if (self.folder / name).exists():
            raise HTTPError(409)
        digest = self.get_body_argument("sha256_digest", "")
        if digest and digest != hashlib.sha256(upload["body"]).hexdigest():
            raise HTTPError(400)
        (self.folder / name).write_bytes(upload["body"])

    def get(self, path: str) -> None:
        """Return the list of files, or one of them."""
        if path == f"{PROJECT}/":
            for file in sorted(self.folder.iterdir()):
                name = html.escape(file.name)
                self.write(f'<a href="/files/{name}#sha256={digest_of(file)}">{name}</a>\n')
            return
        file = self.folder / path.removeprefix("files/")
        if "/" in path.removeprefix("files/") or not file.is_file():
            raise HTTPError(404)
        self.set_header("Content-Type", "application/octet-stream")
        self.write(file.read_bytes())


@contextlib.contextmanager
def local_index(folder: Path) -> Iterator[str]:
    """Serve an index of the files in a directory on a loopback port; yield its address."""
    sockets = bind_sockets(0, "127.0.0.1")
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        application = Application(
            [(r"/(.*)", IndexHandler, {"folder": folder})], log_function=_quiet
        )
        HTTPServer(application, max_buffer_size=1 << 30).add_sockets(sockets)

    def serve_forever() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(serve())
        loop.run_forever()

    thread = threading.Thread(target=serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}/"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        for one in sockets:
            one.close()


def _quiet(_handler: RequestHandler) -> None:
    """Log no requests."""


def rehearse(version: str) -> None:
    """Carry out the steps of RELEASE.md in a clone."""
    if git(ROOT, "status", "--porcelain"):
        print("  note: the rehearsal uses HEAD, without the uncommitted changes")
    with tempfile.TemporaryDirectory(prefix="submarine-release-") as scratch:
        work = Path(scratch)
        tree = work / "tree"
        prepare(tree, version)
        built = [
            build(tree, work / "dist", version),
            build(second_clone(tree, work), work / "dist-2", version),
        ]
        compare(*built)
        step("twine", "check", "--strict", *built[0], cwd=work)
        index = work / "index"
        index.mkdir()
        with local_index(index) as address:
            upload(built[0], address, work)
            install(built[0], address, version, work)
    print(f"  the release of {version} was rehearsed")


def prepare(tree: Path, version: str) -> None:
    """Make the commit and the tag of the release in a clone with the built front end."""
    git(ROOT, "clone", "--quiet", "--no-hardlinks", str(ROOT), str(tree))
    write_version(tree, version)
    if not project_urls(tree):
        write_project_urls(tree, REHEARSED_URL)
    changelog = tree / CHANGELOG
    text = changelog.read_text("utf-8")
    if version not in sections(text):
        today = datetime.datetime.now(datetime.UTC).date()
        changelog.write_text(released_changelog(text, version, str(today)), "utf-8")
    identity = ("-c", "user.name=Rehearsal", "-c", "user.email=rehearsal@localhost")
    if git(tree, "status", "--porcelain"):
        git(tree, *identity, "commit", "--quiet", "--all", "-m", f"Release {version}")
    git(tree, *identity, "tag", "--force", "-a", f"v{version}", "-m", f"Release {version}")
    if problems := release_problems(tree):
        raise SystemExit("\n".join(problems))
    print(f"  HEAD of the clone is v{version}")
    # The front end of the same sources need not be built again.
    dist = ROOT / "labextension" / "dist"
    if dist.is_dir():
        shutil.copytree(dist, tree / "labextension" / "dist")


def second_clone(tree: Path, work: Path) -> Path:
    """Clone the release into another directory: other paths, times and modes of files."""
    other = work / "elsewhere" / "second"
    other.parent.mkdir()
    before = os.umask(0o077)
    try:
        git(work, "clone", "--quiet", "--no-hardlinks", str(tree), str(other))
        # What the first build has built, if it had to.
        shutil.copytree(
            tree / "labextension" / "dist", other / "labextension" / "dist",
            copy_function=shutil.copyfile,
        )  # fmt: skip
    finally:
        os.umask(before)
    return other


def build(tree: Path, target: Path, version: str) -> list[Path]:
    """Build the source archive, and the wheel from it, with the time of the commit."""
    epoch = git(tree, "log", "-1", "--format=%ct")
    step(sys.executable, "-m", "build", "--outdir", target, tree,
         cwd=tree.parent, SOURCE_DATE_EPOCH=epoch)  # fmt: skip
    found = sorted(target.iterdir())
    stem = f"{PROJECT.replace('-', '_')}-{version}"
    if [file.name for file in found] != [f"{stem}-py3-none-any.whl", f"{stem}.tar.gz"]:
        raise SystemExit(f"The build made {', '.join(file.name for file in found)}.")
    with zipfile.ZipFile(found[0]) as wheel:
        metadata = wheel.read(f"{stem}.dist-info/METADATA").decode()
    for name, url in project_urls(tree).items():
        if f"\nProject-URL: {name}, {url}\n" not in metadata:
            raise SystemExit(f"The metadata of the wheel lacks the project address {name}.")
    return found


def compare(first: list[Path], second: list[Path]) -> None:
    """Compare two builds byte by byte."""
    for one, other in zip(first, second, strict=True):
        if digest_of(one) != digest_of(other):
            raise SystemExit(f"Two builds of {one.name} differ: the build is not reproducible.")
        print(f"  two builds of {one.name} are equal: {digest_of(one)}, {one.stat().st_size} bytes")


def upload(files: list[Path], address: str, work: Path) -> None:
    """Upload the archives to the index."""
    account = {"TWINE_USERNAME": "__token__", "TWINE_PASSWORD": "unused"}
    options = ("--non-interactive", "--disable-progress-bar")
    step("twine", "upload", *options, *files, cwd=work, TWINE_REPOSITORY_URL=address, **account)


def install(files: list[Path], address: str, version: str, work: Path) -> None:
    """Install from the index into an empty environment, and run the command."""
    venv.create(work / "venv", with_pip=True)
    python = work / "venv" / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    wanted = f"{PROJECT}=={version}"
    only_local = {"PIP_INDEX_URL": address, "PIP_EXTRA_INDEX_URL": "", "PIP_NO_CACHE_DIR": "1"}
    # First from this index alone: another one may have a project of this name.
    step(*pip, "download", "--quiet", "--no-deps", "--dest", work / "fetched", wanted,
         cwd=work, **only_local)  # fmt: skip
    (fetched,) = (work / "fetched").iterdir()
    if digest_of(fetched) not in map(digest_of, files):
        raise SystemExit(f"The index returned another {fetched.name} than was uploaded.")
    step(*pip, "install", "--quiet", "--no-deps", wanted, cwd=work, **only_local)
    step(*pip, "install", "--quiet", wanted, cwd=work)
    said = step(python.with_name("submarine"), "--version", cwd=work)
    if said.strip() != f"submarine {version}":
        raise SystemExit(f"`submarine --version` printed {said!r}.")
    print(f"  {said.strip()}")


def step(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Run a command of this environment with these variables; return its output."""
    dropped = ("PYTHON", "SUBMARINE_", "VIRTUAL_ENV", "TWINE_", "SKIP_JUPYTER_BUILDER")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    search = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    program = shutil.which(command[0], path=search) or command[0]
    env = {**kept, "PATH": search, **variables}
    return run(program, *command[1:], cwd=cwd, env=env, timeout=900)


def main() -> int:
    """Run the command of the command line; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    setting = commands.add_parser("version", help="Write the version into all its places.")
    setting.add_argument("version", help="Like 1.2.3 or 1.2.3rc1.")
    addresses = commands.add_parser("urls", help="Write the project's public addresses.")
    addresses.add_argument("repository", help="Like https://HOST/OWNER/NAME.")
    commands.add_parser("changelog", help='Turn "Unreleased" into the section of the version.')
    commands.add_parser("check", help="Print why HEAD is not a release.")
    rehearsal = commands.add_parser("rehearse", help="Rehearse a release to a local index.")
    rehearsal.add_argument("version", nargs="?", help="By default the present one.")
    arguments = parser.parse_args()
    if arguments.command == "version":
        write_version(ROOT, str(Version(arguments.version)))
    elif arguments.command == "urls":
        write_project_urls(ROOT, arguments.repository)
    elif arguments.command == "changelog":
        today = datetime.datetime.now(datetime.UTC).date()
        text = (ROOT / CHANGELOG).read_text("utf-8")
        changed = released_changelog(text, read_version(ROOT), str(today))
        (ROOT / CHANGELOG).write_text(changed, "utf-8")
    elif arguments.command == "rehearse":
        rehearse(arguments.version or read_version(ROOT))
        return 0
    problems = release_problems(ROOT) if arguments.command == "check" else version_problems(ROOT)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
