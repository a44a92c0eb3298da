"""Framing of HTTP/1.1 responses: bodies however the network cuts them, and responses that must not be believed."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from pincompute.kube.http_framing import (
    MAX_CHUNK_LINE_BYTES,
    BodyDecoder,
    HttpSyntaxError,
    ResponseHead,
    parse_head,
)

CHUNKED = ResponseHead(200, {b"transfer-encoding": b"chunked"})


def decode_body(head: ResponseHead, *parts: bytes) -> tuple[bytes, bool]:
    decoder = BodyDecoder(head)
    body = b"".join(decoder.feed(each) for each in parts)
    return body, decoder.complete


def test_parses_status_and_headers() -> None:
    head = parse_head(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After:  7 \r\nVary: a\r\nvary: b")
    assert (head.status, head.header(b"retry-after"), head.header(b"vary")) == (429, "7", "a, b")
    assert head.header(b"date") == ""


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        (b"HTTP/1.1 200 OK", True),
        (b"HTTP/1.1 200", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Close", False),
        (b"HTTP/1.0 200 OK", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive", True),
    ],
)
def test_server_says_whether_the_connection_stays_open(lines: bytes, kept: bool) -> None:
    assert parse_head(lines).keep_alive is kept


@pytest.mark.parametrize(
    "head", [b"", b"HTTP/2 200", b"SSH-2.0-OpenSSH", b"HTTP/1.1 2x0 OK", b"HTTP/1.1 20", b"HTTP/1.1 2000 OK",
             b"HTTP/1.1 200 OK\r\nno colon", b"HTTP/1.1 200 OK\r\n: x", b"HTTP/1.1 200 OK\r\nContent-Length : 7",
             b"HTTP/1.1 200 OK\r\n folded: x"]
)  # fmt: skip
def test_refuses_an_invalid_head(head: bytes) -> None:
    with pytest.raises(HttpSyntaxError):
        parse_head(head)


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.lists(st.integers(min_value=1)), st.booleans())
def test_chunked_body_does_not_depend_on_packets(chunks: list[bytes], cuts: list[int], trailers: bool) -> None:
    encoded = b"".join(b"%x;name=value\r\n%b\r\n" % (len(each), each) for each in chunks)
    encoded += b"0\r\n" + (b"Expires: never\r\n" if trailers else b"") + b"\r\n"
    ends = sorted({0, len(encoded), *(each % (len(encoded) + 1) for each in cuts)})
    packets = [encoded[begin:end] for begin, end in itertools.pairwise(ends)]
    assert decode_body(CHUNKED, *packets) == (b"".join(chunks), True)
    assert decode_body(CHUNKED, *packets[:-1])[1] is False


@pytest.mark.parametrize(
    "body", [b"x\r\n", b"-1\r\n", b"+1\r\n", b"0x1\r\n", b"1_0\r\n", b"\r\n", b"1000000000000000\r\n", b"2\r\nabc\r\n",
             b"0\r\n\r\nHTTP/1.1 200 OK", b"1" * (MAX_CHUNK_LINE_BYTES + 1)]
)  # fmt: skip
def test_refuses_invalid_chunks(body: bytes) -> None:
    with pytest.raises(HttpSyntaxError):
        decode_body(CHUNKED, body)
    with pytest.raises(HttpSyntaxError):
        decode_body(CHUNKED, *(bytes([each]) for each in body))


def test_length_ends_the_body() -> None:
    head = ResponseHead(200, {b"content-length": b"5"})
    assert decode_body(head, b"ab", b"cd") == (b"abcd", False)
    assert decode_body(head, b"ab", b"cde") == (b"abcde", True)
    with pytest.raises(HttpSyntaxError):
        decode_body(head, b"ab", b"cdef")


@pytest.mark.parametrize("length", [b"", b"-1", b"+5", b"5, 6", b"0x5", b"9" * 19, b"\xd9\xa5"])
def test_refuses_an_invalid_length(length: bytes) -> None:
    with pytest.raises(HttpSyntaxError):
        BodyDecoder(ResponseHead(200, {b"content-length": length}))


def test_refuses_an_unknown_encoding() -> None:
    """With a length beside it, two readers could see the end of the body at different places."""
    with pytest.raises(HttpSyntaxError):
        BodyDecoder(ResponseHead(200, {b"transfer-encoding": b"gzip, chunked", b"content-length": b"5"}))


@pytest.mark.parametrize("status", [204, 304, 101])
def test_some_statuses_have_no_body(status: int) -> None:
    assert BodyDecoder(ResponseHead(status, {b"content-length": b"5"})).complete


def test_body_without_length_ends_with_the_connection() -> None:
    decoder = BodyDecoder(ResponseHead(200))
    assert (decoder.feed(b"abc"), decoder.complete) == (b"abc", False)
    decoder.finish()
    assert decoder.complete


def test_end_of_the_connection_completes_no_other_body() -> None:
    decoder = BodyDecoder(CHUNKED)
    decoder.feed(b"5\r\nab")
    decoder.finish()
    assert not decoder.complete
