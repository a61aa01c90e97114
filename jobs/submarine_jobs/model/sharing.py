"""The users and groups with whom ``--share`` shares a job: parsing, checks, sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _

#: Precedes the name of a group.
GROUP = "@"
VIEW, MODIFY = "view", "modify"
#: The names that WebHDFS accepts in an ACL. YARN separates names by commas and spaces, and an
#: asterisk means all users there.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,99}")
#: An ACL of HDFS has at most 32 entries.
MAX_NAMES = 20


def parse_share(text: str) -> tuple[str, ...]:
    """Parse ``view:bob,@analysts,modify:carol``: a name without a right has that of the one before.

    Returns
    -------
    tuple of str
        One entry for each name: ``view:bob``, ``view:@analysts``, ``modify:carol``.

    Raises
    ------
    UsageError
        If a right or a name is invalid.
    """
    right, entries = "", []
    for part in text.split(","):
        word, colon, name = part.strip().rpartition(":")
        if colon:
            right = word
        if right not in (VIEW, MODIFY):
            raise UsageError(
                _("--share {text!r} does not say what it permits.").format(text=text[:60]),
                _("Write for example --share view:bob,@analysts or --share modify:carol."),
            )
        if not _NAME.fullmatch(name.removeprefix(GROUP)):
            raise UsageError(
                _("--share {text!r}: {name!r} is not the name of a user or group.").format(
                    text=text[:60], name=name[:60]
                ),
                _("Names have letters, digits, '.', '_' and '-'; a group begins with @."),
            )
        entries.append(f"{right}:{name}")
    return tuple(entries)


def check_user_name(text: str) -> str:
    """Return the name of a user; it becomes part of a path.

    Raises
    ------
    UsageError
        If it is invalid.
    """
    if not _NAME.fullmatch(text):
        raise UsageError(
            _("{name!r} is not the name of a user.").format(name=text[:60]),
            _("Names have letters, digits, '.', '_' and '-'."),
        )
    return text


def format_share(entries: Sequence[str]) -> str:
    """Return the text that ``parse_share`` parses."""
    return ",".join(entries)


class Sharing(NamedTuple):
    """The names in the entries of ``--share``; ``modify`` includes ``view``."""

    view_users: tuple[str, ...] = ()
    view_groups: tuple[str, ...] = ()
    modify_users: tuple[str, ...] = ()
    modify_groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Sharing:
        """Return the names in entries of a specification, sorted.

        Raises
        ------
        UsageError
            If an entry is invalid, or there are too many.
        """
        parsed = {entry for text in entries for entry in parse_share(text)}
        names = {
            right: {entry.partition(":")[2] for entry in parsed if entry.startswith(f"{right}:")}
            for right in (VIEW, MODIFY)
        }
        viewers = names[VIEW] | names[MODIFY]
        if len(viewers) > MAX_NAMES:
            raise UsageError(
                _("--share names {count} users and groups, and the limit is {limit}.").format(
                    count=len(viewers), limit=MAX_NAMES
                ),
                _("Name a group of them: --share view:@GROUP."),
            )
        return cls(
            *(_users(viewers), _groups(viewers)), *(_users(names[MODIFY]), _groups(names[MODIFY]))
        )

    def sentence(self) -> str:
        """Return who may view the job, and who may cancel it and run it again."""
        viewers = _names(self.view_users, self.view_groups)
        if not (self.modify_users or self.modify_groups):
            return _("Shared with {names} (view).").format(names=viewers)
        changers = _names(self.modify_users, self.modify_groups)
        return _("Shared with {names} (view); {others} may cancel and rerun it (modify).").format(
            names=viewers, others=changers
        )


def _users(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in names if not name.startswith(GROUP)))


def _groups(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(name[len(GROUP) :] for name in names if name.startswith(GROUP)))


def _names(users: Iterable[str], groups: Iterable[str]) -> str:
    return ", ".join([*users, *(GROUP + name for name in groups)])
