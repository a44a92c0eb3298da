"""Messages of containerd's API in bytes."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from pincompute.agents.debug.protobuf import Field, Fields, Malformed, decode, encode

INNER: Fields = {1: Field("text", str), 2: Field("data", bytes)}
OUTER: Fields = {1: Field("number", int), 4: Field("inner", INNER), 200: Field("names", str, repeated=True)}


def test_encodes_as_the_standard_says() -> None:
    # From the specification: field 1 with 150 is 08 96 01, field 2 with "testing" 12 07 and the text.
    assert encode({1: Field("a", int)}, {"a": 150}) == bytes.fromhex("089601")
    assert encode({2: Field("b", str)}, {"b": "testing"}) == bytes.fromhex("120774657374696e67")


@given(st.integers(0, 2**64 - 1), st.text(), st.binary(), st.lists(st.text(), max_size=5))
def test_decodes_what_it_encodes(number: int, text: str, data: bytes, names: list[str]) -> None:
    message = {"number": number, "inner": {"text": text, "data": data}, "names": names}
    assert decode(OUTER, encode(OUTER, message)) == message


def test_absent_fields_have_defaults_and_unknown_ones_are_skipped() -> None:
    assert decode(OUTER, b"") == {"number": 0, "inner": {}, "names": []}
    newer = {**OUTER, 7: Field("new", INNER), 9: Field("more", int)}
    data = encode(newer, {"new": {"text": "x"}, "number": 3, "more": 5})
    assert decode(OUTER, data)["number"] == 3


def test_skips_numbers_of_fixed_width() -> None:
    assert decode(OUTER, b"\x49" + bytes(8) + b"\x55" + bytes(4) + b"\x08\x01")["number"] == 1


@pytest.mark.parametrize("data", [b"\x08", b"\x0a\x05abc", b"\xff" * 11, b"\x0b", b"\x09\x00"])
def test_refuses_malformed_bytes(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode(OUTER, data)


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    with suppress(Malformed):
        decode(OUTER, data)
