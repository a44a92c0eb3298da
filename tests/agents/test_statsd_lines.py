"""Lines of StatsD: every supported form, every limit, and any bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pincompute.agents.statsd.lines import (
    MAX_LABEL_VALUE_CHARS,
    MAX_LABELS,
    MAX_LINE_BYTES,
    MAX_NAME_CHARS,
    Sample,
    parse_line,
)

VALID = {
    "orders:1|c": Sample("counter", "orders", 1),
    "orders:2.5|c|@0.1": Sample("counter", "orders", 25),
    "queue:17|g": Sample("gauge", "queue", 17),
    "queue:-3|g": Sample("gauge", "queue", -3, is_delta=True),
    "queue:+3|g": Sample("gauge", "queue", 3, is_delta=True),
    "render:320|ms": Sample("histogram", "render_seconds", 0.32),
    "render:320|ms|@0.5": Sample("histogram", "render_seconds", 0.32, weight=2),
    "size:12|h": Sample("histogram", "size", 12),
    "size:12|d": Sample("histogram", "size", 12),
    "shop.orders-new:1|c": Sample("counter", "shop_orders_new", 1),
    "3d:1|c": Sample("counter", "_3d", 1),
    "a:b:1|c": None,
    "orders:1|c|#route:home,cached": Sample("counter", "orders", 1, (("cached", ""), ("route", "home"))),
    "orders:1|c|#le:1": Sample("counter", "orders", 1, (("le_", "1"),)),
    "orders:1|c|#__name__:x": Sample("counter", "orders", 1, (("name__", "x"),)),
    "orders:1|c|#url:http://a": Sample("counter", "orders", 1, (("url", "http://a"),)),
    "orders:1|c|@0.5|#a:b": Sample("counter", "orders", 2, (("a", "b"),)),
}
MALFORMED = [
    "", "orders", "orders:", ":1|c", "orders:1", "orders:1|", "orders:1|x", "orders:1|s", "orders:one|c",
    "orders:nan|g", "orders:inf|g", "orders:1e999|g", "orders:1_000|c", "orders: 1|c", "orders:-1|c", "orders:1e19|g",
    "orders:1|c|@0", "orders:1|c|@2", "orders:1|c|@-1", "orders:1|c|@1e-9", "orders:1|c|unknown", "orders:1|c|#:v",
    "orders:٣|c",
]  # fmt: skip


@pytest.mark.parametrize("line", VALID)
def test_valid_line_is_one_sample(line: str) -> None:
    assert parse_line(line.encode()) == VALID[line]


@pytest.mark.parametrize("line", MALFORMED)
def test_malformed_line_is_no_sample(line: str) -> None:
    assert parse_line(line.encode()) is None


@pytest.mark.parametrize(
    ("longest", "too_long"),
    [
        (f"{'n' * MAX_NAME_CHARS}:1|c", f"{'n' * (MAX_NAME_CHARS + 1)}:1|c"),
        (f"n:1|c|#a:{'v' * MAX_LABEL_VALUE_CHARS}", f"n:1|c|#a:{'v' * (MAX_LABEL_VALUE_CHARS + 1)}"),
        (
            f"n:1|c|#{','.join(f'l{at}:v' for at in range(MAX_LABELS))}",
            f"n:1|c|#{','.join(f'l{at}:v' for at in range(MAX_LABELS + 1))}",
        ),
    ],
)
def test_sizes_are_bounded(longest: str, too_long: str) -> None:
    assert parse_line(longest.encode())
    assert parse_line(too_long.encode()) is None
    assert parse_line(b"n:1|c|#a:" + b"," * MAX_LINE_BYTES) is None


def test_bytes_that_are_no_text_are_malformed() -> None:
    assert parse_line(b"orders\xff:1|c") is None


@given(st.binary(max_size=60) | st.text(alphabet="ab:|@#,.+-0129cgmshd\u00e9", max_size=60).map(str.encode))
def test_any_bytes_are_a_sample_with_valid_names_or_none(line: bytes) -> None:
    sample = parse_line(line)
    if sample:
        names = [sample.name, *(name for name, _ in sample.labels)]
        assert all(name.isascii() and name.isidentifier() for name in names)
        assert not any(name.startswith("__") for name, _ in sample.labels)
