"""Pages of a collection: filters, order, cursors and selected fields. Pure."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from pincompute.api.insight import MAX_COUNTED_VALUES, InsightItem, InsightQuery
from pincompute.api.structs import struct_fields
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DOCUMENT_INVALID, find_reason
from pincompute.insight.item_index import key_of_item

_EQUAL_FILTERS = ("project", "kind", "workload", "node", "reason", "state")
_SEARCHED = ("name", "project", "workload", "kind", "reason", "message", "image", "node", "owner")
_SORT_FIELDS = {"reason": "reason", "state": "state", "created": "created_at", "restarts": "restarts"}
_NUMBERED = {"restarts", "urgency"}
"""Orders by a number."""
SortKey = tuple[Any, ...]


class Page(NamedTuple):
    items: list[Any]
    """Items, or their selected fields."""
    total: int
    next: str
    counts: dict[str, int] = {}  # noqa: RUF012  (never changed)


class _Cursor(msgspec.Struct, array_like=True, frozen=True):
    """Where a page ends. It is a position only: what a caller may see does not depend on it."""

    sort: str
    descending: bool
    value: str | int
    project: str
    name: str
    kind: str

    @property
    def item_key(self) -> tuple[str, str, str]:
        return self.project, self.name, self.kind


def list_page(items: Iterable[InsightItem], query: InsightQuery, item_type: type[InsightItem]) -> Page:
    """A page of the items, which come in the order of project and name."""
    selected = _selected_fields(query.fields, item_type)
    cursor = _parse_cursor(query)
    matching = list(_matching(items, query))
    ordered = _ordered_after(matching, query, cursor)
    page = list(islice(ordered, query.limit + 1))
    shown = page[: query.limit]
    following = _encode_cursor(shown[-1], query) if len(page) > query.limit else ""
    counts = _count_values(matching, query.count) if query.count else {}
    return Page([_with_fields(each, selected) for each in shown], len(matching), following, counts)


def _count_values(items: Iterable[InsightItem], field: str) -> dict[str, int]:
    counted = Counter(str(getattr(item, field, "")) for item in items)
    return dict(counted.most_common(MAX_COUNTED_VALUES))


def _matching(items: Iterable[InsightItem], query: InsightQuery) -> Iterator[InsightItem]:
    wanted = [(name, value) for name in _EQUAL_FILTERS if (value := getattr(query, name))]
    text = query.search.casefold()
    if not wanted and not text:
        yield from items
        return
    for item in items:
        if all(getattr(item, name, None) == value for name, value in wanted) and (not text or _contains(item, text)):
            yield item


def _contains(item: InsightItem, text: str) -> bool:
    return any(text in getattr(item, name, "").casefold() for name in _SEARCHED)


def _ordered_after(matching: list[InsightItem], query: InsightQuery, cursor: _Cursor | None) -> Iterable[InsightItem]:
    """The items behind the cursor, of which only the first page is needed in order."""
    if query.sort == "name" and not query.descending:
        if cursor is None:
            return matching
        return (each for each in matching if key_of_item(each) > cursor.item_key)
    after = [each for each in matching if cursor is None or _is_behind(each, query, cursor)]
    if not query.descending:
        return nsmallest(query.limit + 1, after, key=_sort_key(query))
    # Not `nlargest`: items with the same value stay in the order of project and name.
    value = _value_of(query)
    after.sort(key=value, reverse=True)
    return after


def _sort_key(query: InsightQuery) -> Callable[[InsightItem], SortKey]:
    value = _value_of(query)
    return lambda item: (value(item), key_of_item(item))


def _value_of(query: InsightQuery) -> Callable[[InsightItem], Any]:
    if query.sort == "name":
        return lambda item: item.name
    if query.sort == "urgency":
        return _urgency
    field, default = _SORT_FIELDS[query.sort], 0 if query.sort in _NUMBERED else ""
    # A replica has the time since which it runs in place of a time of creation.
    return lambda item: getattr(item, field, getattr(item, "since", default) if query.sort == "created" else default)


def _urgency(item: InsightItem) -> int:
    """0 for what has failed, then what has a problem, what is done with one, what waits, and what is as wanted."""
    done = getattr(item, "done", getattr(item, "ready", False))
    if getattr(item, "failed", False):
        return 0
    found = find_reason(getattr(item, "reason", ""))
    if found is not None and found.is_problem:
        return 2 if done else 1
    return 4 if done else 3


def _is_behind(item: InsightItem, query: InsightQuery, cursor: _Cursor) -> bool:
    value = _value_of(query)(item)
    if value == cursor.value:
        return key_of_item(item) > cursor.item_key
    return (value < cursor.value) if query.descending else (value > cursor.value)


def _encode_cursor(item: InsightItem, query: InsightQuery) -> str:
    key = key_of_item(item)
    cursor = _Cursor(query.sort, query.descending, _value_of(query)(item), *key)
    return urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def _parse_cursor(query: InsightQuery) -> _Cursor | None:
    if not query.cursor:
        return None
    try:
        padded = query.cursor + "=" * (-len(query.cursor) % 4)
        cursor = msgspec.json.decode(urlsafe_b64decode(padded.encode("ascii")), type=_Cursor)
    except (ValueError, msgspec.DecodeError, RecursionError):
        cursor = None
    expected = int if query.sort in _NUMBERED else str
    if (
        cursor is None
        or type(cursor.value) is not expected
        or (cursor.sort, cursor.descending)
        != (
            query.sort,
            query.descending,
        )
    ):
        what = "invalid cursor: it must be the `next` of a page with the same order"
        raise Refused(Problem(DOCUMENT_INVALID, what, next="ask without a cursor for the first page"))
    return cursor


def _selected_fields(fields: str, item_type: type[InsightItem]) -> frozenset[str] | None:
    """Names of the fields as JSON has them; None for all."""
    if not fields:
        return None
    known = {each.encode_name for each in struct_fields(item_type)}
    names = frozenset(filter(None, fields.split(",")))
    if unknown := sorted(names - known):
        what = f"no such fields: {', '.join(unknown[:5])}"
        raise Refused(Problem(DOCUMENT_INVALID, what, note=f"fields: {', '.join(sorted(known))}"))
    return names


def _with_fields(item: InsightItem, selected: frozenset[str] | None) -> Any:
    if selected is None:
        return item
    return {name: value for name, value in msgspec.to_builtins(item).items() if name in selected}
