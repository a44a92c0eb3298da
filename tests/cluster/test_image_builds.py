"""Dockerfiles are built in the sandbox, with base images of the registry."""

from __future__ import annotations

import asyncio

import pytest

from image_builds import ImageBuilds
from pincompute.engine.images import registry
from pincompute.objects.image import parse_image

pytestmark = pytest.mark.cluster

COMMON = """\
# The base is an argument, and the tool comes from an image.
ARG REPOSITORY=nowhere
FROM ${REPOSITORY}:test AS compiled
ARG WORD=default
WORKDIR /build
COPY . .
RUN --mount=type=bind,source=kept.txt,target=/kept.txt \\
    test ! -e ignored.txt && \\

    # a comment between continuation lines
    cat /kept.txt > out.txt && echo "$WORD" >> out.txt
FROM scratch AS small
COPY --from=compiled /build/out.txt /out.txt
FROM ${REPOSITORY}:test AS checked
COPY --from=small /out.txt /
COPY --from=busybox:test --chmod=700 /bin/busybox /opt/busybox
RUN ["/opt/busybox", "grep", "-c", "given", "/out.txt"]
FROM absent:1
"""
IGNORED = {"kept.txt": "kept\n", "ignored.txt": "", ".dockerignore": "ignored.txt\n"}


def test_common_dockerfile_has_the_same_digest_each_time(image_builds: ImageBuilds):
    options = ("--target", "checked", "--build-arg", "REPOSITORY=busybox", "--build-arg", "WORD=given")
    first = image_builds.build(COMMON, *options, **IGNORED)
    assert first.exit_code == 0, first.stderr
    assert (
        "[1/3] STEP 5/5: RUN --mount=type=bind,source=kept.txt,target=/kept.txt test ! -e ignored.txt" in first.stderr
    )
    assert first.stdout.startswith("built:1 ")
    digest = asyncio.run(built_digest(image_builds))
    other = image_builds.folder / "Other"
    image_builds.write("FROM absent:1\n", **IGNORED).joinpath("Dockerfile").rename(other)
    other.write_text(COMMON)
    again = image_builds.build("FROM absent:1\n", "-f", str(other), *options, **IGNORED)
    assert again.stdout.endswith(" 0 new\n"), again.stderr
    assert asyncio.run(built_digest(image_builds)) == digest
    image_builds.wait_until_removed()


def test_failed_command_is_reported_with_line_code_and_last_output(image_builds: ImageBuilds):
    result = image_builds.build("FROM busybox:test\n\nRUN seq 30 && \\\n  printf '\\033c' && exit 7\n")
    assert result.exit_code == 1
    assert (
        "Dockerfile:3: RUN seq 30 && printf '\\033c' && exit 7: failed with exit code 7  [ImageBuild" in result.stderr
    )
    assert "  30\n" in result.stderr
    assert "  2\n" not in result.stderr
    assert "\x1b" not in result.stderr


def test_absent_base_is_refused_with_its_line(image_builds: ImageBuilds):
    result = image_builds.build("FROM busybox:test\nCOPY --from=busybox:tset /bin/sh /\n")
    assert (
        "Dockerfile:2: image busybox:tset is not in the registry of the platform  [BaseImageMissing]" in result.stderr
    )
    assert "did you mean busybox:test?" in result.stderr


async def built_digest(builds: ImageBuilds) -> str:
    async with registry.open_registry(builds.platform) as images:
        return await images.resolve_digest(parse_image("built:1"))
