"""Image names: parsing, registry paths and suggestions."""

from __future__ import annotations

import pytest

from pincompute.objects.image import listed_image_name, nearest_image, parse_image

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
def test_parses_image_name(text: str, repository: str, reference: str, short: str):
    name = parse_image(text)
    assert (name.repository, name.reference, name.short) == (repository, reference, short)


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_rejects_invalid_image_name(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        parse_image(text)


def test_names_listed_images_in_short_form():
    assert [
        listed_image_name("library/hello", "dev"),
        listed_image_name("team/hello", "1"),
        listed_image_name("pause", "3.9"),
    ] == [
        "hello:dev",
        "team/hello:1",
        "*/pause:3.9",
    ]


@pytest.mark.parametrize(
    ("wanted", "known", "found"),
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
def test_nearest_image_prefers_other_tags(wanted: str, known: list[str], found: str):
    assert nearest_image(wanted, known) == found
    assert nearest_image(wanted, reversed(known)) == found
