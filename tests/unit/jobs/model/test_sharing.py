"""The texts of ``--share``: what they mean, and what is refused."""

from __future__ import annotations

import pytest

from submarine_jobs.errors import UsageError
from submarine_jobs.model import Sharing, check_user_name, format_share, parse_share


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("view:bob", ("view:bob",)),
        ("view:bob,@analysts", ("view:bob", "view:@analysts")),
        ("view:@analysts,bob,modify:carol,@ops", ("view:@analysts", "view:bob", "modify:carol",
                                                  "modify:@ops")),
        ("view:a.b-c_1, modify:_x", ("view:a.b-c_1", "modify:_x")),
    ],
)  # fmt: skip
def test_a_name_without_a_right_has_that_of_the_name_before(
    text: str, entries: tuple[str, ...]
) -> None:
    assert parse_share(text) == entries
    assert parse_share(format_share(entries)) == entries


@pytest.mark.parametrize("text", ["bob", "", "admin:bob", ":bob", "view:bob,read:carol"])
def test_a_text_without_a_right_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="does not say what it permits"):
        parse_share(text)


@pytest.mark.parametrize(
    "name",
    ["", "*", "@", "@@a", "b b", "b:rwx", "1bob", "-x", "bob\nx", "a/b", "a%b", "é", "a" * 101],
)
def test_a_name_that_hdfs_or_yarn_would_read_otherwise_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"is not the name|does not say what"):
        parse_share(f"view:{name},carol")
    with pytest.raises(UsageError, match="is not the name of a user"):
        check_user_name(name)


def test_modify_includes_view() -> None:
    sharing = Sharing.of(["view:bob", "modify:carol", "modify:@ops", "view:carol"])
    assert (sharing.view_users, sharing.view_groups) == (("bob", "carol"), ("ops",))
    assert (sharing.modify_users, sharing.modify_groups) == (("carol",), ("ops",))
    assert sharing.sentence() == (
        "Shared with bob, carol, @ops (view); carol, @ops may cancel and rerun it (modify)."
    )
    assert Sharing.of(["view:@a"]).sentence() == "Shared with @a (view)."


def test_more_names_than_an_acl_may_have_are_refused() -> None:
    Sharing.of(f"view:u{number}" for number in range(20))
    with pytest.raises(UsageError, match="names 21 users and groups, and the limit is 20"):
        Sharing.of(f"view:u{number}" for number in range(21))
