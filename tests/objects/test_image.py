"""Names of images: what people write, where it is kept, and what they probably meant."""

from __future__ import annotations

import pytest

from pincompute.objects.image import nearest, parse, stored

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("text", "repository", "reference", "short"),
    [
        ("hello", "library/hello", "latest", "hello:latest"),
        ("hello:dev", "library/hello", "dev", "hello:dev"),
        ("localhost/hello:dev", "library/hello", "dev", "hello:dev"),
        ("docker.io/library/hello:dev", "library/hello", "dev", "hello:dev"),
        ("docker.io/hello:dev", "library/hello", "dev", "hello:dev"),
        ("team/hello:1.0", "team/hello", "1.0", "team/hello:1.0"),
        ("registry.example/team/hello:1.0", "team/hello", "1.0", "registry.example/team/hello:1.0"),
        ("registry.example/pause", "pause", "latest", "registry.example/pause:latest"),
        ("10.201.0.1:5000/hello:dev", "hello", "dev", "10.201.0.1:5000/hello:dev"),
        (f"hello:dev@{DIGEST}", "library/hello", DIGEST, "hello:dev"),
    ],
)
def test_a_name_says_where_its_image_is_kept(text: str, repository: str, reference: str, short: str):
    name = parse(text)
    assert (name.repository, name.reference, name.short) == (repository, reference, short)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("my image", "lower-case"),
        ("Hello:dev", "lower-case"),
        ("", "lower-case"),
        ("a//b", "lower-case"),
        ("../etc/passwd", "registry"),
        ("hello:", "a tag"),
        ("hello:a b", "a tag"),
        ("hello:" + "x" * 129, "a tag"),
        ("hello@sha256:12", "a digest"),
    ],
)
def test_a_name_that_no_registry_could_hold_is_refused_with_words(text: str, words: str):
    with pytest.raises(ValueError, match=words):
        parse(text)


def test_what_is_listed_is_named_as_one_would_type_it():
    assert [stored("library/hello", "dev"), stored("team/hello", "1"), stored("pause", "3.9")] == [
        "hello:dev",
        "team/hello:1",
        "*/pause:3.9",
    ]


@pytest.mark.parametrize(
    ("meant", "known", "found"),
    [
        ("helo:dev", ["hello:dev", "web:1"], "hello:dev"),
        ("hello:def", ["hello:dev", "help:def"], "hello:dev"),
        ("hello", ["hello:dev"], "hello:dev"),
        ("docker.io/library/hello:1", ["hello:dev"], "hello:dev"),
        ("Hello World", ["hello-world:dev"], "hello-world:dev"),
        ("postgres:15", ["hello:dev", "web:1"], ""),
        ("hello:dev", [], ""),
    ],
)
def test_the_nearest_name_is_another_tag_first_and_then_what_looks_alike(meant: str, known: list[str], found: str):
    assert nearest(meant, known) == found
    assert nearest(meant, reversed(known)) == found
