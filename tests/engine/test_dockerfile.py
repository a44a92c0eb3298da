"""Dockerfiles: stages, the images that they need, and what a build refuses."""

from __future__ import annotations

import pytest

from pincompute.base.problem import Refused
from pincompute.engine.images.dockerfile import MAX_INSTRUCTIONS, Options, declares, expand_bases, read_dockerfile

COMMON = """\
# syntax=docker/dockerfile:1
ARG VERSION=3.11
ARG BASE=python:${VERSION}-slim

FROM ${BASE} AS Build
RUN first && \\
    # a comment

    second
COPY --from=tools:1 /a /b
FROM --platform=$BUILDPLATFORM build as test
RUN --mount=type=bind,from=fixtures,target=/f true
FROM scratch
COPY --from=build --chown=1:1 /a /
COPY --from=0 /a /
"""


def refusals(text: str) -> list[str]:
    with pytest.raises(Refused) as refused:
        read_dockerfile("Dockerfile", text)
    return [problem.text() for problem in refused.value.problems]


def test_reads_stages_and_joins_continuation_lines():
    found = read_dockerfile("Dockerfile", COMMON)
    assert [(stage.name, stage.base) for stage in found.stages] == [
        ("build", "python:3.11-slim"),
        ("test", "build"),
        ("", "scratch"),
    ]
    run = found.instruction(1, 2)
    assert run is not None
    assert (run.line, run.last_line, str(run)) == (6, 9, "RUN first && second")
    assert found.instruction(4, 1) is found.instruction(1, 9) is found.instruction(0, 0) is None


@pytest.mark.parametrize(
    ("options", "images"),
    [
        (Options(), {"python:3.11-slim": 5, "tools:1": 10}),
        (Options(target="TEST"), {"python:3.11-slim": 5, "tools:1": 10, "fixtures": 12}),
        (Options({"BASE": "mine"}, target="0"), {"mine": 5, "tools:1": 10}),
        (Options({"VERSION": "3.12"}), {"python:3.12-slim": 5, "tools:1": 10}),
        (Options({"OTHER": "x"}), {"python:3.11-slim": 5, "tools:1": 10}),
    ],
)
def test_images_are_those_of_the_target(options: Options, images: dict[str, int]):
    assert read_dockerfile("Dockerfile", COMMON, options).images == images


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("$A", "a"),
        ("${A}-${B:-b}", "a-b"),
        ("${A:+set}${B:+set}x", "setx"),
        ("x/$TARGETARCH", "x/amd64"),
    ],
)
def test_variables_of_bases_are_expanded(reference: str, value: str):
    text = f"ARG A=a B\nFROM \\\n  {reference} AS one\nRUN true\n"
    found = read_dockerfile("Dockerfile", text)
    assert found.stages[0].base == value
    assert expand_bases(text, found) == f"ARG A=a B\nFROM {value} AS one\n\nRUN true\n"


def test_stage_without_instructions_gets_one_that_changes_nothing():
    text = "FROM a AS b\nFROM b\nUSER 1\n"
    found = read_dockerfile("Dockerfile", text)
    assert expand_bases(text, found) == "FROM a AS b\nARG UNCHANGED\nFROM b\nUSER 1\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("RUN --network=host true", "RUN --network=host"),
        ("RUN --security=insecure true", "RUN --security=insecure"),
        ("RUN --mount=type=secret,id=token true", "RUN --mount=type=secret,id=token"),
        ("RUN --mount=type=ssh true", "RUN --mount=type=ssh"),
        ("RUN --device=/dev/sda true", "RUN --device=/dev/sda"),
        ("RUN <<EOF\nmkdir /a\nFOO\nEOF", "RUN with a here-document"),
        ("COPY <<-'END' /file\nBAR\nEND", "COPY with a here-document"),
        ("ADD https://example.com/x.tar /", "ADD of a URL"),
        ('ADD ["a", "HTTP://example.com/x", "/"]', "ADD of a URL"),
        ("ADD git@github.com:a/b.git /", "ADD of a URL"),
        ("COPY --link a /", "COPY --link"),
        ("COPY --from=$STAGE a /", "COPY --from with a variable"),
        ("FROM --platform=linux/s390x other", "FROM --platform=linux/s390x"),
        ("INCLUDE other", "unknown instruction INCLUDE"),
        ("RUN", "RUN without a value"),
    ],
)
def test_refuses_with_line_and_what_to_do_instead(line: str, message: str):
    (problem,) = refusals(f"FROM scratch\n\n{line}\nRUN true\n")
    assert problem.startswith(f"Dockerfile:3: {message}  [DockerfileUnsupported]")
    assert "next: " in problem or line == "RUN"


def test_reports_everything_at_once():
    problems = refusals("RUN early\nFROM scratch\nFOO\nADD http://x /\n")
    assert [each.split(": ")[0] for each in problems] == ["Dockerfile:3", "Dockerfile:4", "Dockerfile:1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no FROM"),
        ("ARG A\n", "no FROM"),
        ("FROM $NONE\n", "FROM an empty name"),
        ("FROM scratch\n" + "RUN true\n" * 10_000, f"10001 instructions; at most {MAX_INSTRUCTIONS} are built"),
        ("FROM scratch\n" + "#" * 300_000, "300013 bytes; at most 262144 are read"),
        ("FROM scratch\n" + "\\\n" * 100_000 + "FOO", "unknown instruction FOO"),
        ("FROM scratch\n" + "FOO\n" * 400, "unknown instruction FOO"),
    ],
)
def test_unusable_files_are_refused(text: str, message: str):
    problems = refusals(text)
    assert message in problems[0]
    assert len(problems) <= 20


def test_refuses_an_unknown_target_with_the_names_of_stages():
    with pytest.raises(Refused, match="no stage 'rest'") as refused:
        read_dockerfile("Dockerfile", COMMON, Options(target="rest"))
    assert refused.value.problems[0].next == "stages: build, test"


def test_backtick_continues_lines_after_its_directive():
    found = read_dockerfile("Dockerfile", "# escape=`\nFROM scratch\nRUN a `\n  b\n")
    assert str(found.stages[0].instructions[1]) == "RUN a b"


def test_declared_arguments():
    assert declares("ARG A=1 BASE\nFROM x\n", "BASE")
    assert not declares("# ARG BASE\nENV BASE=1\nARG BASES\n", "BASE")
