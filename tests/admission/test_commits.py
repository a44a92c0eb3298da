"""Commits as changes of a branch: each commit belongs to the change that has brought it in."""

from __future__ import annotations

import pytest

from pincompute.admission.commits import Change, Commit, group_into_changes


def history(*lines: str) -> dict[str, Commit]:
    """Each line is a commit and its parents; its author has its name in capitals."""
    found = [line.split() for line in lines]
    return {id_: Commit(id_, tuple(parents), "", id_.upper(), frozenset({id_.upper()})) for id_, *parents in found}


def changes(head: str, *lines: str) -> list[str]:
    return [f"{each.id} by {''.join(sorted(each.authors))}" for each in group_into_changes(head, history(*lines))]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("c b", "b a", "a"), ["c by C", "b by B", "a by A"]),
        # Up to a base that is not part of the range.
        (("c b", "b a"), ["c by C", "b by B"]),
        # A merge brings in what its first parent does not have.
        (("c b s", "s r", "r a", "b a", "a"), ["c by CRS", "b by B", "a by A"]),
        # With swapped parents the other side is the branch.
        (("c s b", "s r", "r a", "b a", "a"), ["c by BC", "s by S", "r by R", "a by A"]),
        # Commits of an older merge are not counted again.
        (("d c s", "c b r", "b a", "s r", "r a", "a"), ["d by DS", "c by CR", "b by B", "a by A"]),
        (("c b r s", "r", "s", "b"), ["c by CRS", "b by B"]),
    ],
)
def test_groups_commits_into_changes(lines: tuple[str, ...], expected: list[str]) -> None:
    assert changes(lines[0][0], *lines) == expected


def test_head_outside_of_the_commits_is_no_change() -> None:
    assert changes("z", "b a", "a") == []


def test_long_history_is_grouped_without_recursion() -> None:
    lines = [f"c{number} c{number - 1}" for number in range(2_000)]
    assert len(changes("c1999", *lines)) == 2_000


def test_label_has_no_control_characters() -> None:
    change = Change("a" * 40, "\x1b[31mred\n\u202edetrever", "ann\x07@example.com")
    assert change.label == 'aaaaaaaaaaaa "?[31mred??detrever" by ann?@example.com'
