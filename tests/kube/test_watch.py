"""Splitting a watch into lines, and decoding its events."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from pincompute.base.line_splitter import LineSplitter
from pincompute.kube.errors import Gone
from pincompute.kube.watch import parse_event, parse_identity


@given(st.binary(), st.lists(st.integers(min_value=0)))
def test_lines_do_not_depend_on_chunks(content: bytes, cuts: list[int]) -> None:
    ends = sorted({cut % (len(content) + 1) for cut in cuts} | {len(content)})
    chunks = [content[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    splitter = LineSplitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    assert [*lines, splitter.flush()] == content.split(b"\n")
    assert splitter.flush() == b""


def test_decodes_only_identity_of_object() -> None:
    line = b'{"type":"ADDED","object":{"metadata":{"name":"web","namespace":"me","resourceVersion":"7"},"spec":1}}'
    event = parse_event(line)
    assert event.type == "ADDED"
    identity = parse_identity(event.object)
    assert (identity.key, identity.metadata.resource_version) == (("me", "web"), "7")
    assert msgspec.json.decode(event.object)["spec"] == 1


def test_raises_error_event() -> None:
    with pytest.raises(Gone) as caught:
        parse_event(
            b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old: 1 (9)"}}',
            "pods",
        )
    assert str(caught.value.problem().where) == "pods"
