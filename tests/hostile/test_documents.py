"""Small documents that are expensive to check, or have errors that would fill a response."""

from __future__ import annotations

import asyncio
import threading
import time

import msgspec
import pytest

from pincompute.api.documents import MAX_FILE_BYTES, MAX_VALUES, read_documents
from pincompute.api.validation import parse_resources
from pincompute.base.problem import Refused
from pincompute.desk.limits.long_texts import LongTexts

HEAD = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: hello}
spec:
  image: hello:dev
  port: 8080
"""
FIELDS = MAX_VALUES // 2 - 20
"""As many as a document may have: names count as values."""
HOSTILE = {
    "unknown fields": HEAD + "".join(f"  imagePullPolicz{number}: a\n" for number in range(FIELDS)),
    "unknown fields of a container": HEAD
    + "  template:\n    spec:\n      containers:\n      - name: a\n"
    + "".join(f"        terminationMessagePolicz{number}: a\n" for number in range(FIELDS)),
    # Fields of newer Kubernetes versions are allowed, so each name has to be compared with the known ones.
    "fields that resemble known ones": HEAD.replace("8080", "none")
    + "  template:\n    spec:\n      containers:\n      - name: a\n"
    + "".join(f"        terminationMessageCourse{number}: a\n" for number in range(FIELDS)),
    "containers with unknown fields": HEAD
    + "  template:\n    spec:\n      containers:\n"
    + "".join(f"      - {{name: a, terminationMessagePolicz{number}: a, b: c}}\n" for number in range(FIELDS // 4)),
    "long names": HEAD + "".join(f"  ? {'x' * 50_000}{number}\n  : a\n" for number in range(20)),
    "one long name": HEAD + f"  ? {'imagePullPolicy' * 60_000}\n  : a\n",
    "long value": HEAD.replace("8080", "8" * 900_000),
    "wrong values": HEAD + "  environment:\n" + "".join(f"    A{number}: 1\n" for number in range(FIELDS)),
    "wrong values below a long name": HEAD
    + f"  template:\n    ? {'x' * 90_000}\n    : a\n"
    + "  environment:\n"
    + "".join(f"    ? {'x' * 8_000}{number}\n    : 1\n" for number in range(100)),
    "invalid labels": HEAD
    + "---\n"
    + HEAD.replace(
        "{name: hello}", "\n  name: two\n  labels:\n" + "".join(f"    a{number}: ä\n" for number in range(FIELDS - 20))
    ).rstrip("\n"),
    "long commands": HEAD + "  command:\n" + "".join("    - {a: b}\n" for _ in range(FIELDS // 2)),
}
MAX_ERROR_BYTES = 100_000
MAX_CPU_S = 1.0
"""Generous: processor time grows on a core that is shared."""


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_errors_are_few_and_cheap(text: str) -> None:
    assert len(text) <= MAX_FILE_BYTES
    documents = read_documents(text)
    began = time.process_time()
    with pytest.raises(Refused) as refused:
        parse_resources(documents, "me")
    assert time.process_time() - began < MAX_CPU_S
    assert len(refused.value.problems) <= 51
    assert len(msgspec.json.encode(refused.value.json())) < MAX_ERROR_BYTES


def test_first_errors_still_have_suggestions() -> None:
    with pytest.raises(Refused) as refused:
        parse_resources(read_documents(HEAD + "  replcias: 2\n  imagePullPolicz: a\n"), "me")
    assert "did you mean replicas?" in {each.next for each in refused.value.problems}


async def test_long_text_is_parsed_beside_the_event_loop() -> None:
    texts = LongTexts()
    parsing, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def parse() -> str:
        loop.call_soon_threadsafe(parsing.set)
        assert release.wait(30)
        return "parsed"

    first = asyncio.create_task(texts.parse("x" * 100_000, parse))
    # The loop goes on, so that this event arrives while the text is being parsed.
    await parsing.wait()
    second = asyncio.create_task(texts.parse("x" * 100_000, lambda: "second"))
    assert await texts.parse("short", lambda: "short") == "short"
    assert not first.done()
    assert not second.done()
    release.set()
    assert (await first, await second) == ("parsed", "second")
