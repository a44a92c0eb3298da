"""The lines of a watch, however the network cuts them, and what stands in them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pincompute.kube.errors import Gone
from pincompute.kube.splitter import Splitter
from pincompute.kube.watch import identity, told


@given(st.binary(), st.lists(st.integers(min_value=0)))
def test_any_chunking_gives_the_same_lines(content: bytes, cuts: list[int]) -> None:
    ends = sorted({cut % (len(content) + 1) for cut in cuts} | {len(content)})
    chunks = [content[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    splitter = Splitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    assert [*lines, splitter.end()] == content.split(b"\n")
    assert splitter.end() == b""


def test_an_object_is_left_unread_but_for_its_identity() -> None:
    line = b'{"type":"ADDED","object":{"metadata":{"name":"web","namespace":"me","resourceVersion":"7"},"spec":1}}'
    event = told(line)
    assert event.type == "ADDED"
    who = identity(event.object)
    assert (who.key, who.metadata.resource_version) == (("me", "web"), "7")
    assert msgspec.json.decode(event.object)["spec"] == 1


def test_an_error_in_the_midst_is_raised() -> None:
    with pytest.raises(Gone) as caught:
        told(
            b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old: 1 (9)"}}',
            "pods",
        )
    assert str(caught.value.problem().where) == "pods"
