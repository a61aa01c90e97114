"""Read job descriptions of Apache Submarine: YAML files of its command line and of its server.

The command line of its YARN releases reads ``spec``, ``configs``, ``roles``, ``scheduling``,
``security`` and ``tensorBoard`` (`job run -f FILE`); its server reads an experiment: ``meta``,
``environment`` and ``spec``. Both are converted to words of ``run``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from submarine_jobs.errors import UsageError
from submarine_jobs.options.role_options import ROLE_OPTIONS, RoleOptions, format_role
from submarine_runtime.translation import _, gettext_noop

#: Maximum size of a description in bytes.
_MAX_BYTES = 1 << 20
_MAX_TEXT = 60
#: Resources of an experiment that ``--worker_resources`` names differently.
_RESOURCES = {"cpu": "vcores", "nvidia.com/gpu": "gpu"}
#: Part of a role without own options -> text of ``--role``.
_ROLE_FORMS = {
    "": "{role}={text}",
    "resources": "{role},{text}",
    "launch_cmd": "{role},cmd={text}",
    "docker_image": "{role},image={text}",
}
#: Reasons why a key is refused.
_PROGRAM = gettext_noop("copy the program with --program or --file, or put it into the image")
_OF_THE_JOB = gettext_noop("write it below configs: it applies to all roles")


@dataclass
class _Reader:
    """The words and the errors of one description."""

    words: list[str] = field(default_factory=list)
    errors: list[tuple[int, str]] = field(default_factory=list)

    def refuse(self, node: yaml.Node, sentence: str) -> None:
        """Add an error with the line of a node."""
        self.errors.append((node.start_mark.line + 1, sentence))

    def option(self, name: str, node: yaml.Node) -> None:
        """Add an option whose value is the text of a scalar."""
        text = self.text(node)
        if text is not None:
            self.words += [name, text]

    def text(self, node: yaml.Node) -> str | None:
        """Return the text of a scalar; None for an empty value or, with an error, another node."""
        if not isinstance(node, yaml.ScalarNode):
            self.refuse(node, _("this value must be a text or a number"))
            return None
        return None if node.tag.endswith(":null") else str(node.value)

    def flag(self, name: str, node: yaml.Node) -> None:
        """Add an option without a value for true."""
        text = (self.text(node) or "false").lower()
        if text not in ("true", "false"):
            self.refuse(node, _("this value must be true or false"))
        elif text == "true":
            self.words.append(name)

    def texts(self, node: yaml.Node) -> list[str]:
        """Return the texts of a list."""
        if not isinstance(node, yaml.SequenceNode):
            self.refuse(node, _("this value must be a list"))
            return []
        return [text for item in node.value if (text := self.text(item)) is not None]

    def pairs(self, node: yaml.Node) -> dict[str, str]:
        """Return a mapping of names to texts."""
        pairs = ((key, self.text(value)) for key, _key, value in self.items(node))
        return {key: text or "" for key, text in pairs}

    def items(self, node: yaml.Node) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        """Yield key, node of the key and value; report values of another kind and repeated keys."""
        if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null"):
            return
        if not isinstance(node, yaml.MappingNode):
            self.refuse(node, _("keys and values are expected here"))
            return
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else "?"
            if name in seen:
                self.refuse(key, _("{key} is given twice").format(key=_shown(name)))
                continue
            seen.add(name)
            yield name, key, value

    def section(
        self, where: str, node: yaml.Node, known: Mapping[str, Callable[[yaml.Node], None]]
    ) -> None:
        """Read the keys of a section, each by its function; report unknown keys."""
        for name, key, value in self.items(node):
            if name in known:
                known[name](value)
                continue
            self.refuse(
                key,
                _("{key} is not a key of {section}, which has {known}").format(
                    key=_shown(name), section=where, known=", ".join(known)
                ),
            )


def description_words(path: str) -> list[str]:
    """Return the words of ``run`` for a job description of Apache Submarine.

    Parameters
    ----------
    path
        A YAML or JSON file.

    Raises
    ------
    UsageError
        If the file cannot be read, is no YAML, or has unknown keys or values; the message has one
        sentence with the line for each.
    """
    root = _parse(path)
    reader = _Reader()
    keys = {name for name, _key, _value in _Reader().items(root)}
    if "meta" in keys:
        _experiment(reader, root)
    else:
        _job(reader, root)
    if reader.errors:
        sentences = (
            _("{path}, line {line}: {error}.").format(path=path, line=line, error=error)
            for line, error in sorted(reader.errors)
        )
        raise UsageError(" ".join(sentences))
    return reader.words


def _parse(path: str) -> yaml.Node:
    try:
        with Path(path).expanduser().open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as exc:
        raise UsageError(
            _("The job description {path} cannot be read: {error}.").format(
                path=path, error=exc.strerror or exc
            )
        ) from exc
    if len(data) > _MAX_BYTES:
        raise UsageError(
            _("The job description {path} is larger than {size} bytes.").format(
                path=path, size=f"{_MAX_BYTES:,}"
            )
        )
    try:
        root = yaml.compose(data, Loader=yaml.SafeLoader)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        raise UsageError(
            _("{path}, line {line}: {error}.").format(
                path=path,
                line=mark.line + 1 if mark is not None else 1,
                error=getattr(exc, "problem", None) or _("this is no YAML"),
            )
        ) from exc
    if not isinstance(root, yaml.MappingNode):
        raise UsageError(
            _("The job description {path} has no keys such as spec and roles.").format(path=path)
        )
    return root


def _job(reader: _Reader, root: yaml.Node) -> None:
    """Read the description of the command line."""
    reader.section(
        _("a job description"),
        root,
        {
            "spec": lambda node: reader.section(
                "spec",
                node,
                {
                    "name": lambda value: reader.option("--name", value),
                    # A label without an effect, also in Apache Submarine.
                    "job_type": lambda value: None,
                    "framework": lambda value: _framework(reader, value),
                },
            ),
            "configs": lambda node: _configs(reader, node),
            "scheduling": lambda node: reader.section(
                "scheduling", node, {"queue": lambda value: reader.option("--queue", value)}
            ),
            "roles": lambda node: _roles(reader, node, _role),
            "security": lambda node: reader.section(
                "security",
                node,
                {
                    "keytab": lambda value: reader.option("--keytab", value),
                    "principal": lambda value: reader.option("--principal", value),
                    "distribute_keytab": lambda value: reader.flag("--distribute_keytab", value),
                },
            ),
            "tensorBoard": lambda node: _tensorboard(reader, node),
        },
    )


def _configs(reader: _Reader, node: yaml.Node) -> None:
    def each(option: str) -> Callable[[yaml.Node], None]:
        def add(value: yaml.Node) -> None:
            for text in reader.texts(value):
                reader.words += [option, text]

        return add

    def mounts(value: yaml.Node) -> None:
        if texts := reader.texts(value):
            reader.words += ["--conf", f"docker_mounts={','.join(texts)}"]

    def text(name: str) -> Callable[[yaml.Node], None]:
        return lambda value: reader.option(f"--{name}", value)

    places = ("input_path", "checkpoint_path", "saved_model_path", "docker_image")
    reader.section(
        "configs",
        node,
        {
            **{name: text(name) for name in places},
            "wait_job_finish": lambda value: reader.flag("--wait", value),
            "envs": lambda value: _environment(reader, value),
            "localizations": each("--localization"),
            "mounts": mounts,
            "quicklinks": each("--quicklink"),
        },
    )


def _tensorboard(reader: _Reader, node: yaml.Node) -> None:
    reader.words.append("--tensorboard")
    reader.section(
        "tensorBoard",
        node,
        {
            "resources": lambda value: reader.option("--tensorboard_resources", value),
            "docker_image": lambda value: reader.option("--tensorboard_docker_image", value),
        },
    )


def _experiment(reader: _Reader, root: yaml.Node) -> None:
    """Read an experiment of the server; its command is that of each role without an own one."""
    command: list[yaml.Node] = []

    def namespace(node: yaml.Node) -> None:
        if reader.text(node) not in (None, "default"):
            reader.refuse(node, _("YARN has no namespaces: leave it out, or use --queue"))

    def predefined(node: yaml.Node) -> None:
        reader.refuse(node, _("predefined environments are not supported: name an image"))

    sections: dict[str, Callable[[yaml.Node], None]] = {
        "meta": lambda node: reader.section(
            "meta",
            node,
            {
                "name": lambda value: reader.option("--name", value),
                "namespace": namespace,
                "framework": lambda value: _framework(reader, value),
                "cmd": command.append,
                "envVars": lambda value: _environment(reader, value),
            },
        ),
        "environment": lambda node: reader.section(
            "environment",
            node,
            {
                "image": lambda value: reader.option("--docker_image", value),
                "name": predefined,
            },
        ),
        "spec": lambda node: _roles(reader, node, _task),
        "code": lambda node: _refused(reader, node, _PROGRAM),
    }
    reader.section(_("an experiment"), root, sections)
    if command and "--worker_launch_cmd" not in reader.words:
        reader.option("--worker_launch_cmd", command[0])


def _framework(reader: _Reader, node: yaml.Node) -> None:
    text = reader.text(node)
    if text is not None:
        reader.words += ["--framework", text.lower()]


def _environment(reader: _Reader, node: yaml.Node) -> None:
    for name, value in reader.pairs(node).items():
        reader.words += ["--env", f"{name}={value}"]


def _refused(reader: _Reader, node: yaml.Node, reason: str) -> None:
    reader.refuse(node, _("this is not supported: {reason}").format(reason=_(reason)))


def _roles(
    reader: _Reader, node: yaml.Node, read: Callable[[_Reader, str, yaml.Node], None]
) -> None:
    for name, key, value in reader.items(node):
        role = name.lower()
        if not role.isidentifier() or role == "tensorboard":
            reader.refuse(key, _("{key} is not the name of a role").format(key=_shown(name)))
            continue
        read(reader, role, value)


def _role(reader: _Reader, role: str, node: yaml.Node) -> None:
    """Read a role of the command line's description."""
    reader.section(
        role,
        node,
        {
            "replicas": lambda value: _part(reader, role, "", value),
            "resources": lambda value: _part(reader, role, "resources", value),
            "launch_cmd": lambda value: _part(reader, role, "launch_cmd", value),
            "docker_image": lambda value: _part(reader, role, "docker_image", value),
            "envs": lambda value: _role_environment(reader, role, value),
            "localizations": lambda value: _refused(reader, value, _OF_THE_JOB),
            "mounts": lambda value: _refused(reader, value, _OF_THE_JOB),
        },
    )


def _task(reader: _Reader, role: str, node: yaml.Node) -> None:
    """Read a task of an experiment."""
    reader.section(
        role,
        node,
        {
            "name": lambda value: None,
            "replicas": lambda value: _part(reader, role, "", value),
            "resources": lambda value: _part(reader, role, "resources", value),
            "cmd": lambda value: _part(reader, role, "launch_cmd", value),
            "image": lambda value: _part(reader, role, "docker_image", value),
            "envVars": lambda value: _role_environment(reader, role, value),
        },
    )


def _part(reader: _Reader, role: str, part: str, node: yaml.Node) -> None:
    """Add number, size, command or image of a role, by its own option or by ``--role``."""
    text = reader.text(node)
    if text is None:
        return
    if part == "resources":
        text = ",".join(_resource(amount) for amount in text.split(","))
    if f"{role}_{part}" in ROLE_OPTIONS or (not part and role in ROLE_OPTIONS):
        reader.words += [f"--{role}_{part}" if part else f"--{role}", text]
        return
    reader.words += ["--role", _ROLE_FORMS[part].format(role=role, text=text)]


def _resource(amount: str) -> str:
    name, equals, number = amount.partition("=")
    return f"{_RESOURCES.get(name.strip().lower(), name.strip())}{equals}{number}"


def _role_environment(reader: _Reader, role: str, node: yaml.Node) -> None:
    if pairs := reader.pairs(node):
        reader.words += ["--role", format_role(RoleOptions(role, env=pairs))]


def _shown(name: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in name[:_MAX_TEXT])
