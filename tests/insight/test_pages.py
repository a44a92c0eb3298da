"""Pages of a collection: filters, order, cursors and fields."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from pincompute.api.insight import MAX_COUNTED_VALUES, InsightQuery, WorkloadItem
from pincompute.base.problem import Refused
from pincompute.insight.item_index import ItemIndex, key_of_item
from pincompute.insight.pages import Page, list_page

WORDS = ("web", "api", "train", "Web-2")


def item(name: str, project: str = "ads", **fields: Any) -> WorkloadItem:
    known: dict[str, Any] = {
        "kind": fields.pop("kind", "PinterestService"), "uid": f"{project}/{name}",
        "generation": 1, "revision": 1, "goal": "Ready",
        "ready": 1, "wanted": 1, "image": "hello:1",
    }  # fmt: skip
    return msgspec.structs.replace(WorkloadItem(**known, name=name, project=project), **fields)


def index_of(*items: WorkloadItem) -> ItemIndex[WorkloadItem]:
    index: ItemIndex[WorkloadItem] = ItemIndex()
    for each in items:
        index.store_item(each)
    return index


def page(index: ItemIndex[WorkloadItem], projects: list[str] | None = None, **query: Any) -> Page:
    return list_page(index.in_projects(projects), InsightQuery(**query), WorkloadItem)


ITEMS = st.lists(
    st.builds(
        item,
        st.sampled_from([f"w{number}" for number in range(12)]),
        st.sampled_from(["ads", "search", "home"]),
        reason=st.sampled_from(["Available", "CrashLoop", "QuotaUsedUp"]),
        created_at=st.sampled_from(["2026-01-01", "2026-01-02"]),
        failed=st.booleans(),
    ),
    max_size=30,
)


@given(
    ITEMS,
    st.sampled_from(["name", "reason", "state", "created", "restarts", "urgency"]),
    st.booleans(),
    st.integers(1, 7),
    st.sampled_from(["", "CrashLoop"]),
)
def test_pages_together_are_the_whole_list_in_order(
    items: list[WorkloadItem], sort: Any, descending: bool, limit: int, reason: str
) -> None:
    index = index_of(*items)
    whole = page(index, sort=sort, descending=descending, reason=reason, limit=500)
    paged: list[WorkloadItem] = []
    cursor = ""
    while True:
        part = page(index, sort=sort, descending=descending, reason=reason, limit=limit, cursor=cursor)
        assert part.total == whole.total
        paged += part.items
        cursor = part.next
        if not cursor:
            break
    assert paged == whole.items
    assert len({key_of_item(each) for each in paged}) == whole.total
    values = [{"reason": each.reason, "state": each.state, "created": each.created_at}.get(sort, "") for each in paged]
    assert values == sorted(values, reverse=descending)


def test_cursor_continues_where_items_were_inserted_and_deleted() -> None:
    index = index_of(*(item(f"w{number}") for number in range(6)))
    first = page(index, limit=3)
    index.discard_item(key_of_item(item("w2")))
    index.store_item(item("w1-new"))
    assert [each.name for each in page(index, limit=3, cursor=first.next).items] == ["w3", "w4", "w5"]


def test_filters_and_searches() -> None:
    index = index_of(
        item("web", reason="CrashLoop", failed=True),
        item("api", "search", message="exit 1 in WEB worker"),
        item("train", kind="PinterestTrainingJob", done=True, owner="team-web"),
    )
    queries: tuple[dict[str, Any], ...] = (
        {"search": "WeB"}, {"search": "nothing"}, {"state": "failed"}, {"state": "waiting"},
        {"kind": "PinterestTrainingJob"}, {"reason": "CrashLoop"}, {"project": "search"}, {"node": "n"},
    )  # fmt: skip
    names = [[each.name for each in page(index, **query).items] for query in queries]
    assert names == [["train", "web", "api"], [], ["web"], ["api"], ["train"], ["web"], ["api"], []]


def test_only_items_of_visible_projects_are_listed_and_counted() -> None:
    index = index_of(item("web"), item("web", "search"), item("web", "home"))
    found = page(index, ["search", "nowhere"])
    assert ([each.project for each in found.items], found.total) == (["search"], 1)


def test_returns_the_selected_fields_only() -> None:
    assert page(index_of(item("web")), fields="name,createdAt").items == [{"name": "web", "createdAt": ""}]


def test_refuses_unknown_fields() -> None:
    with pytest.raises(Refused, match="no such fields: secret"):
        page(index_of(item("web")), fields="name,secret")


def forged(*values: Any) -> str:
    return urlsafe_b64encode(msgspec.json.encode(values)).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "x", "ä", "=", "[]", "A" * 2_000, forged(), forged("name"), forged("reason", False, "", "", "", ""),
        forged("name", True, "", "", "", ""), forged("name", False, 3, "", "", ""),
        forged("name", False, "", [], "", ""), urlsafe_b64encode(b"[" * 1_000).decode(),
    ],
)  # fmt: skip
def test_refuses_a_forged_cursor(cursor: str) -> None:
    with pytest.raises(Refused, match="invalid cursor"):
        page(index_of(item("web")), cursor=cursor)


def test_cursor_into_another_project_shows_nothing_of_it() -> None:
    index = index_of(item("web"), item("web", "search"), item("zoo"))
    cursor = forged("name", False, "", "search", "", "")
    assert page(index, ["ads"], cursor=cursor).items == []
    assert page(index, ["ads"], cursor=forged("name", False, "", "", "", "")).total == 2


def test_a_page_of_many_items_encodes_no_more_than_it_shows() -> None:
    """The work for a page grows with the list only by its filter."""
    index = index_of(*(item(f"w{number:05}", created_at=str(number)) for number in range(5_000)))
    counted = 0

    class CountedIndex(list[WorkloadItem]):
        def __iter__(self) -> Any:
            nonlocal counted
            for each in super().__iter__():
                counted += 1
                yield each

    found = list_page(CountedIndex(index.in_projects(None)), InsightQuery(limit=100), WorkloadItem)
    assert (len(found.items), found.total, counted) == (100, 5_000, 5_000)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["a", "b"]), st.sampled_from(["x", "y", "z"])), max_size=40))
def test_index_is_ordered_and_counts_changes(steps: list[tuple[bool, str, str]]) -> None:
    index: ItemIndex[WorkloadItem] = ItemIndex()
    model: dict[tuple[str, str], WorkloadItem] = {}
    for exists, project, name in steps:
        before = index.version_of(["a"])
        new = item(name, project)
        differs = model.get((project, name)) != (new if exists else None)
        if exists:
            index.store_item(new)
            model[project, name] = new
        else:
            index.discard_item(key_of_item(new))
            model.pop((project, name), None)
        assert index.version_of(["a"]) == before + (differs and project == "a")
    assert list(index.in_projects(None)) == [model[key] for key in sorted(model)]


def test_urgency_puts_failures_first_and_what_is_as_wanted_last() -> None:
    index = index_of(
        item("a-ready", reason="Available", done=True),
        item("b-waits", reason="Progressing"),
        item("c-outdated", reason="RuntimeOutdated", done=True),
        item("d-crashes", reason="CrashLoop"),
        item("e-failed", reason="Progressing", failed=True),
    )
    names = [each.name for each in page(index, sort="urgency").items]
    assert names == ["e-failed", "d-crashes", "c-outdated", "b-waits", "a-ready"]


def test_counts_are_of_all_pages_most_frequent_first() -> None:
    crashing = [item(f"w{number}", reason="CrashLoop") for number in range(3)]
    index = index_of(item("web", reason="Available", done=True), *crashing)
    assert page(index, count="reason", limit=1).counts == {"CrashLoop": 3, "Available": 1}
    assert page(index, count="state", search="w1").counts == {"waiting": 1}
    assert page(index).counts == {}


def test_counted_values_are_bounded() -> None:
    index = index_of(*(item("web", f"p{number}") for number in range(600)))
    assert len(page(index, count="project").counts) == MAX_COUNTED_VALUES
