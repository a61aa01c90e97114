"""Stand-in for Hadoop's container-executor, the program that LinuxContainerExecutor calls.

The NodeManager's calls of it are those of Hadoop 3.5. It switches users, sets owners and modes,
joins control groups, denies GPUs and calls Docker with the command line that the NodeManager
requests. It is no security boundary: it performs few checks of the real program, whose source is in
no package. A set-uid copy of Python runs it, so it uses the standard library only.
"""

from __future__ import annotations

import configparser
import grp
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

CONFIGURATION = Path("/srv/conf/container-executor.cfg")
PRIVATE, APPLICATION, CONTAINER, CACHE = 0o700, 0o2750, 0o2710, 0o710
INVALID_ARGUMENTS, INVALID_USER, DOCKER_FAILED, DOCKER_REFUSED = 1, 2, 7, 29
NO_PROCESS = 9
_KEY = "yarn.nodemanager.linux-container-executor.group"
_REFUSAL = "not allowed by container-executor.cfg"


def fail(code: int, text: str) -> NoReturn:
    """Write a reason and exit with Hadoop's number of it."""
    print(text, file=sys.stderr)
    sys.exit(code)


class Executor:
    """The operations of the program.

    Parameters
    ----------
    caller
        User id of the NodeManager.
    """

    def __init__(self, caller: int) -> None:
        self._caller = caller
        self._settings = _parser(f"[main]\n{CONFIGURATION.read_text()}")
        self._group = grp.getgrnam(self._settings["main"][_KEY]).gr_gid

    def perform(self, arguments: list[str]) -> int:
        """Perform the operation that the arguments name, and return the exit status."""
        first = arguments[0]
        if first == "--checksetup":
            return 0
        if first == "--run-docker":
            return self._docker_command(arguments[1])
        if first == "--module-gpu":
            return self._deny_gpus(dict(zip(arguments[1::2], arguments[2::2], strict=True)))
        if first == "--remove-docker-container":
            return self._docker("rm", "-f", arguments[-1]).returncode
        if first == "--inspect-docker-container":
            return self._docker("inspect", *arguments[1:]).returncode
        if first.startswith("--"):
            fail(INVALID_ARGUMENTS, f"{first} is not in this stand-in")
        user = self._account(first)
        operations = {
            "0": self._initialize, "1": self._launch, "2": self._signal, "3": self._delete,
            "4": self._launch_docker, "5": self._list,
        }  # fmt: skip
        return operations[arguments[2]](user, arguments[3:])

    def _account(self, name: str) -> pwd.struct_passwd:
        main = self._settings["main"]
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            fail(INVALID_USER, f"User {name} not found")
        low = user.pw_uid < int(main.get("min.user.id", "1000"))
        if low or name in main.get("banned.users", "").split(","):
            fail(INVALID_USER, f"Requested user {name} is banned or has a low id")
        return user

    # Directories and files

    def _directory(self, path: Path, user: pwd.struct_passwd, mode: int) -> None:
        path.mkdir(exist_ok=True)
        os.chown(path, user.pw_uid, self._group)
        path.chmod(mode)

    def _directories(
        self, user: pwd.struct_passwd, application: str, container: str, local: str, logs: str
    ) -> None:
        """Create the directories of a container, with `%` between the roots."""
        for root in local.split("%"):
            home = Path(root, "usercache", user.pw_name)
            for path in (home, home / "appcache", home / "appcache" / application):
                self._directory(path, user, APPLICATION)
            self._directory(home / "filecache", user, CACHE)
            if container:
                self._directory(home / "appcache" / application / container, user, CONTAINER)
        for root in logs.split("%"):
            self._directory(Path(root, application), user, APPLICATION)
            if container:
                self._directory(Path(root, application, container), user, APPLICATION)

    def _give(self, source: str, target: Path, user: pwd.struct_passwd, mode: int) -> None:
        shutil.copyfile(source, target)
        os.chown(target, user.pw_uid, self._group)
        target.chmod(mode)

    def _report(self, path: str, text: str) -> None:
        """Write a file of the NodeManager, which polls for it."""
        draft = Path(f"{path}.tmp")
        draft.write_text(text)
        draft.chmod(PRIVATE)
        os.chown(draft, self._caller, self._group)
        draft.rename(path)

    # Operations as a user

    def _initialize(self, user: pwd.struct_passwd, arguments: list[str]) -> int:
        """Start the localizer of an application."""
        application, container, tokens, local, logs, *command = arguments
        self._directories(user, application, "", local, logs)
        for root in logs.split("%"):
            self._directory(Path(root, application, container), user, APPLICATION)
        work = Path(local.split("%")[0], "usercache", user.pw_name, "appcache", application)
        self._give(tokens, work / Path(tokens).name, user, 0o600)
        _become(user)
        os.chdir(work)
        os.execv(command[0], command)

    def _prepare(
        self, user: pwd.struct_passwd, arguments: list[str]
    ) -> tuple[str, Path, str, list[str]]:
        """Fill a container's directory; return its id, directory, pid file and other arguments."""
        application, container, directory, script, tokens, scheme, *rest = arguments
        pid_file, local, logs, *rest = rest[2:] if scheme == "--https" else rest
        self._directories(user, application, container, local, logs)
        work = Path(directory)
        for name in ("tmp", "private_slash_tmp", "private_var_slash_tmp"):
            self._directory(work / name, user, PRIVATE)
        self._give(script, work / "launch_container.sh", user, PRIVATE)
        self._give(tokens, work / "container_tokens", user, 0o600)
        return container, work, pid_file, rest

    def _launch(self, user: pwd.struct_passwd, arguments: list[str]) -> int:
        """Run a container's script in its control groups."""
        _, work, pid_file, rest = self._prepare(user, arguments)
        groups = rest[0].partition("=")[2].split("%") if rest else []
        child = os.fork()
        if not child:
            os.setsid()
            for group in groups:
                if group not in ("", "none"):
                    Path(group).write_text(str(os.getpid()))
            self._report(pid_file, str(os.getpid()))
            _become(user)
            os.chdir(work)
            os.execv("/bin/bash", ["bash", str(work / "launch_container.sh")])
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return self._ended(pid_file, 128 - status if status < 0 else status)

    def _ended(self, pid_file: str, status: int) -> int:
        self._report(f"{pid_file}.exitcode", str(status))
        return status

    @staticmethod
    def _signal(user: pwd.struct_passwd, arguments: list[str]) -> int:
        pid, number = int(arguments[0]), signal.Signals(int(arguments[1]))
        _become(user)
        for send in (os.killpg, os.kill):
            with suppress(ProcessLookupError):
                send(pid, number)
                return 0
        return NO_PROCESS

    def _delete(self, user: pwd.struct_passwd, arguments: list[str]) -> int:
        path, *bases = arguments
        targets = [Path(base, path) for base in bases] if bases else [Path(path)]
        owners = (user.pw_uid, self._caller, 0)
        for target in targets:
            if ".." in target.parts or not os.path.lexists(target):
                continue
            if target.is_symlink() or not target.is_dir():
                target.unlink()
            elif target.stat().st_uid in owners:
                shutil.rmtree(target, ignore_errors=True)
        return 0

    @staticmethod
    def _list(user: pwd.struct_passwd, arguments: list[str]) -> int:
        _become(user)
        print("\n".join(sorted(os.listdir(arguments[0]))))
        return 0

    # Docker

    def _option(self, name: str, default: str = "") -> str:
        if not self._settings.has_section("docker"):
            return default
        return self._settings["docker"].get(f"docker.{name}", default)

    def _options(self, name: str) -> list[str]:
        return [word for word in self._option(name).split(",") if word]

    def _docker(self, *words: str, capture: bool = False) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._option("binary", "/usr/bin/docker"), *words],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            text=True,
            capture_output=capture,
            check=False,
        )

    def _launch_docker(self, user: pwd.struct_passwd, arguments: list[str]) -> int:
        """Run a container's image, wait for its end, and return its exit status."""
        container, _, pid_file, rest = self._prepare(user, arguments)
        started = self._docker(*self._run_words(_command_file(rest[0])), capture=True)
        if started.returncode:
            print(started.stderr, file=sys.stderr)
            return self._ended(pid_file, DOCKER_FAILED)
        pid = self._inspect(container, "Pid")
        if pid not in ("", "0"):
            self._report(pid_file, pid)
            while Path("/proc", pid).exists():
                time.sleep(0.2)
        return self._ended(pid_file, int(self._inspect(container, "ExitCode") or -1))

    def _inspect(self, container: str, what: str) -> str:
        form = "{{.State.%s}}" % what  # noqa: UP031 - braces of Docker's own format
        return self._docker("inspect", "--format", form, container, capture=True).stdout.strip()

    def _run_words(self, request: dict[str, str]) -> list[str]:
        """Return the words after `docker` for a request to run an image, after the checks."""
        if not self._settings.has_section("docker"):
            fail(DOCKER_REFUSED, "Feature docker is disabled")
        image, network = request["image"], request["net"]
        registry = image.split("/")[0] if "/" in image else "library"
        words = ["run", f"--name={request['name']}", f"--user={request['user']}"]
        words += ["-d"] if request.get("detach") == "true" else []
        if network not in self._options("allowed.networks"):
            fail(DOCKER_REFUSED, f"Network {network} is {_REFUSAL}")
        words += [f"--workdir={request['workdir']}", f"--net={network}"]
        # The real program starts the image of another registry without mounts and capabilities.
        trusted = registry in self._options("trusted.registries")
        if not trusted:
            print("Disable mount volume for untrusted image", file=sys.stderr)
        for mount in _split(request, "mounts") if trusted else ():
            source, _, kind = mount.split(":")
            kinds = ("rw", "ro") if kind == "ro" else ("rw",)
            if not any(self._may_mount(source, each) for each in kinds):
                fail(DOCKER_REFUSED, f"Mount {mount} is {_REFUSAL}")
            words += ["-v", mount]
        for mount in _split(request, "tmpfs"):
            words += ["--tmpfs", mount]
        if request.get("privileged") == "true":
            fail(DOCKER_REFUSED, f"A privileged container is {_REFUSAL}")
        if "cgroup-parent" in request:
            words.append(f"--cgroup-parent={request['cgroup-parent']}")
        words.append("--cap-drop=ALL")
        allowed = self._options("allowed.capabilities") if trusted else []
        words += [f"--cap-add={name}" for name in _split(request, "cap-add") if name in allowed]
        if "runtime" in request:
            if request["runtime"] not in self._options("allowed.runtimes"):
                fail(DOCKER_REFUSED, f"Runtime {request['runtime']} is {_REFUSAL}")
            words.append(f"--runtime={request['runtime']}")
        for device in _split(request, "devices"):
            words += ["--device", device]
        if "hostname" in request:
            words.append(f"--hostname={request['hostname']}")
        for group in _split(request, "group-add"):
            words += ["--group-add", group]
        if "environ" in request:
            words += ["--env-file", request["environ"]]
        return [*words, image, *_split(request, "launch-command")]

    def _may_mount(self, source: str, kind: str) -> bool:
        path = Path(source).resolve()
        return any(
            path.is_relative_to(allowed) for allowed in self._options(f"allowed.{kind}-mounts")
        )

    def _docker_command(self, path: str) -> int:
        """Run one of the other commands of Docker that the NodeManager requests."""
        request = _command_file(path)
        verb, name = request["docker-command"], request.get("name", "")
        if verb == "run":
            return self._docker(*self._run_words(request)).returncode
        words = {
            "kill": lambda: [f"--signal={request['signal']}", name],
            "stop": lambda: [f"--time={request.get('time', '10')}", name],
            "start": lambda: [name],
            "rm": lambda: ["-f", name],
            "inspect": lambda: [f"--format={request['format']}", name],
            "pull": lambda: [request["image"]],
            "images": lambda: [request["image"], "--format={{json .}}"],
        }
        if verb not in words:
            fail(INVALID_ARGUMENTS, f"docker {verb} is not in this stand-in")
        return self._docker(verb, *words[verb]()).returncode

    # GPUs

    def _deny_gpus(self, options: dict[str, str]) -> int:
        """Deny the devices that a container does not have, by its control group."""
        major = self._settings["gpu"]["gpu.major-device-number"]
        groups = self._settings["cgroups"]
        top = Path(groups["root"], "devices", groups["yarn-hierarchy"])
        for minor in options.get("--excluded_gpus", "").split(","):
            if minor:
                rule = top / options["--container_id"] / "devices.deny"
                rule.write_text(f"c {major}:{minor} rwm")
        return 0


def _become(user: pwd.struct_passwd) -> None:
    os.setgroups(os.getgrouplist(user.pw_name, user.pw_gid))
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    os.umask(0o027)


def _parser(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, delimiters="=", interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser


def _command_file(path: str) -> dict[str, str]:
    return dict(_parser(Path(path).read_text())["docker-command-execution"])


def _split(request: dict[str, str], name: str) -> list[str]:
    return [word for word in request.get(name, "").split(",") if word]


def main() -> int:
    """Run as root, which the set-uid interpreter permits."""
    caller = os.getuid()
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    return Executor(caller).perform(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
