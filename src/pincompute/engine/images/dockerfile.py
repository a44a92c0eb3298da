"""Reads a Dockerfile: its stages, the images that they need, and what a build in the sandbox refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import DOCKERFILE_UNSUPPORTED

MAX_BYTES = 256 * 1024
MAX_INSTRUCTIONS = 500
_MAX_PROBLEMS = 20

SCRATCH = "scratch"
"""The empty base."""

_FLAGS = {
    "FROM": ("platform",),
    "RUN": ("mount", "network"),
    "COPY": ("from", "chown", "chmod"),
    "ADD": ("chown", "chmod"),
    "HEALTHCHECK": ("interval", "timeout", "start-period", "retries"),
    **dict.fromkeys(("ARG", "CMD", "ENTRYPOINT", "ENV", "EXPOSE", "LABEL", "MAINTAINER", "ONBUILD"), ()),
    **dict.fromkeys(("SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"), ()),
}
"""Flags that each instruction may have."""

_INSTEAD = {
    "FROM --platform": "images are built for this machine: remove --platform",
    "RUN --network": "a build has no network: COPY what the command needs, or build elsewhere and load the image",
    "RUN --security": "a build has no privileges: remove --security",
    "RUN --mount": "use --mount with type=bind, cache or tmpfs; a container reads its secrets when it runs",
    "RUN --device": "a build has no devices: remove --device",
    "RUN <<": "join the lines with `&& \\`, or COPY a script and RUN it",
    "COPY <<": "write a file into the folder, and COPY it",
    "ADD URL": "a build has no network: download the file into the folder, and COPY it",
}

_MOUNT_TYPES = frozenset({"bind", "cache", "tmpfs"})
_FLAG = re.compile(r"--([a-z-]+)(?:=(\S*))?\s*")
_HERE_DOCUMENT = re.compile(r"(?:^|\s)<<-?([\"']?)([A-Za-z_]\w*)\1")
_REMOTE = re.compile(r"(?:[a-z+]+://|git@)\S+", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?:(:[-+])([^}]*))?\})")
_BACKTICK = re.compile(r"(#[^\n]*\n)*#\s*escape\s*=\s*`", re.IGNORECASE)
"""Directive that makes the backtick the character of continuation lines."""
_ASSIGNMENT = re.compile(r"(\w+)(?:=(\"[^\"]*\"|'[^']*'|\S*))?")


class Flag(NamedTuple):
    name: str
    value: str


class Instruction(NamedTuple):
    line: int
    last_line: int
    keyword: str
    flags: tuple[Flag, ...]
    text: str
    """What follows keyword and flags, on one line."""
    here_document: str = ""
    """Last line of its here-documents, if it has any."""

    def values(self, flag: str) -> Iterator[str]:
        return (each.value for each in self.flags if each.name == flag)

    def __str__(self) -> str:
        flags = (f"--{each.name}={each.value}" for each in self.flags)
        return " ".join((self.keyword, *flags, self.text))


class Stage(NamedTuple):
    name: str
    """Lower case; empty if the stage has no name."""
    base: str
    """Name of a stage or image, with its variables expanded."""
    instructions: tuple[Instruction, ...]


class Dockerfile(NamedTuple):
    stages: tuple[Stage, ...]
    images: dict[str, int]
    """Images that the build needs, and the line that names each first."""

    def instruction(self, stage: int, step: int) -> Instruction | None:
        """An instruction by the numbers that buildah prints, which begin at 1."""
        if 1 <= stage <= len(self.stages) and 1 <= step <= len(self.stages[stage - 1].instructions):
            return self.stages[stage - 1].instructions[step - 1]
        return None


class Options(NamedTuple):
    """Options of a build."""

    arguments: Mapping[str, str] = {}
    """Of `--build-arg`."""
    target: str = ""
    platform: str = "linux/amd64"


_DEFAULTS = Options()


def read_dockerfile(file: str, text: str, options: Options = _DEFAULTS) -> Dockerfile:
    """Parse a Dockerfile; all that a build refuses is reported at once."""
    if len(text) > MAX_BYTES:
        raise Refused(_problem(file, 0, f"{len(text)} bytes; at most {MAX_BYTES} are read"))
    instructions = list(_instructions(text))
    if len(instructions) > MAX_INSTRUCTIONS:
        line = instructions[MAX_INSTRUCTIONS].line
        what = f"{len(instructions)} instructions; at most {MAX_INSTRUCTIONS} are built"
        raise Refused(_problem(file, line, what, "move commands into a script, COPY it and RUN it"))
    problems = [problem for each in instructions for problem in _refusals(file, each, options.platform)]
    first = next((n for n, each in enumerate(instructions) if each.keyword == "FROM"), len(instructions))
    problems += [
        _problem(file, each.line, f"{each.keyword} before the first FROM", "move it behind FROM")
        for each in instructions[:first]
        if each.keyword in _FLAGS and each.keyword != "ARG"
    ]
    if first == len(instructions) and not problems:
        problems.append(_problem(file, 0, "no FROM", "begin with FROM IMAGE, or FROM scratch"))
    if problems:
        raise Refused(*problems[:_MAX_PROBLEMS])
    stages = _stages(instructions[first:], _global_arguments(instructions[:first], options))
    return Dockerfile(stages, _images(file, stages, options.target))


def expand_bases(text: str, dockerfile: Dockerfile) -> str:
    """The text with the variables of FROM replaced: buildah finds the images of a build by their names only."""
    lines = text.splitlines()
    for stage in dockerfile.stages:
        first = stage.instructions[0]
        lines[first.line - 1 : first.last_line] = [""] * (first.last_line - first.line + 1)
        lines[first.line - 1] = f"FROM {stage.base} AS {stage.name}" if stage.name else f"FROM {stage.base}"
        if len(stage.instructions) == 1:
            # buildah 1.28 cannot write an image that is its base; an argument changes nothing in it.
            lines[first.line - 1] += "\nARG UNCHANGED"
    return "\n".join(lines) + "\n"


def declares(text: str, argument: str) -> bool:
    """Whether an instruction ARG names the argument."""
    found = (each for each in _instructions(text) if each.keyword == "ARG")
    return any(name == argument for each in found for name, _ in _assignments(each.text))


def _instructions(text: str) -> Iterator[Instruction]:
    """Instructions with their continuation lines, without comments and the bodies of here-documents."""
    lines = enumerate(text.removeprefix("\ufeff").splitlines(), 1)
    escape = "`" if _BACKTICK.match(text) else "\\"
    start, number, parts = 0, 0, list[str]()
    for number, whole in lines:
        line = whole.strip()
        # A comment or an empty line between continuation lines does not end the instruction.
        if not line or line.startswith("#"):
            continue
        start = start if parts else number
        parts.append(line.removesuffix(escape).strip())
        if line.endswith(escape):
            continue
        yield (instruction := _instruction(start, number, " ".join(parts)))
        if instruction.here_document:
            next((True for _, body in lines if body.strip() == instruction.here_document), None)
        parts = list[str]()
    if parts:
        yield _instruction(start, number, " ".join(parts))


def _instruction(line: int, last_line: int, text: str) -> Instruction:
    keyword, *more = text.split(maxsplit=1)
    keyword, rest, flags = keyword.upper(), "".join(more), list[Flag]()
    while found := _FLAG.match(rest):
        flags.append(Flag(found[1], found[2] or ""))
        rest = rest[found.end() :]
    ends = _HERE_DOCUMENT.findall(rest) if keyword in ("RUN", "COPY", "ADD") else []
    return Instruction(line, last_line, keyword, tuple(flags), rest, ends[-1][1] if ends else "")


def _refusals(file: str, instruction: Instruction, platform: str) -> Iterator[Problem]:
    line, keyword = instruction.line, instruction.keyword
    if keyword not in _FLAGS:
        yield _problem(file, line, f"unknown instruction {keyword[:40]}", f"use one of {', '.join(sorted(_FLAGS))}")
        return
    for flag in instruction.flags:
        if not _accepts(keyword, flag, platform):
            used = f"{keyword} --{flag.name}"
            yield _problem(file, line, f"{used}={flag.value}" if flag.value else used, _instead(used))
    if instruction.here_document:
        yield _problem(
            file, line, f"{keyword} with a here-document", _INSTEAD["RUN <<" if keyword == "RUN" else "COPY <<"]
        )
    if keyword == "ADD" and _REMOTE.search(instruction.text):
        yield _problem(file, line, "ADD of a URL", _INSTEAD["ADD URL"])
    if not instruction.text:
        yield _problem(file, line, f"{keyword} without a value")
    if any("$" in each for each in instruction.values("from")):
        yield _problem(file, line, "COPY --from with a variable", "name a stage: FROM ${IMAGE} AS source")


def _instead(used: str) -> str:
    return _INSTEAD.get(used, f"remove --{used.partition('--')[2]}")


def _accepts(keyword: str, flag: Flag, platform: str) -> bool:
    if flag.name not in _FLAGS[keyword]:
        return False
    if flag.name == "platform":
        return flag.value in (platform, "$BUILDPLATFORM", "$TARGETPLATFORM", "${BUILDPLATFORM}", "${TARGETPLATFORM}")
    if flag.name == "network":
        return flag.value in ("none", "default")
    if flag.name == "mount":
        return _mount(flag).get("type", "bind") in _MOUNT_TYPES
    return True


def _mount(flag: Flag) -> dict[str, str]:
    return {key: value for key, _, value in (each.partition("=") for each in flag.value.split(","))}


def _stages(instructions: list[Instruction], arguments: Mapping[str, str]) -> tuple[Stage, ...]:
    starts = [n for n, each in enumerate(instructions) if each.keyword == "FROM"]
    ends = [*starts[1:], len(instructions)]
    stages = []
    for start, end in zip(starts, ends, strict=True):
        base, _, alias = instructions[start].text.partition(" ")
        name = alias.strip().partition(" ")[2].strip().lower()
        stages.append(Stage(name, _expand(base, arguments), tuple(instructions[start:end])))
    return tuple(stages)


def _global_arguments(instructions: list[Instruction], options: Options) -> Mapping[str, str]:
    os, _, architecture = options.platform.partition("/")
    values = {"TARGETPLATFORM": options.platform, "TARGETOS": os, "TARGETARCH": architecture}
    for instruction in instructions:
        for name, default in _assignments(instruction.text):
            values[name] = options.arguments.get(name, _expand(default, values))
    return values


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    return ((name, value.strip("\"'")) for name, value in _ASSIGNMENT.findall(text))


def _expand(text: str, values: Mapping[str, str]) -> str:
    def replace(found: re.Match[str]) -> str:
        value = values.get(found[1] or found[2], "")
        if found[3] == ":-":
            return value or found[4]
        return found[4] if found[3] == ":+" and value else ("" if found[3] else value)

    return _VARIABLE.sub(replace, text)


def _images(file: str, stages: tuple[Stage, ...], target: str) -> dict[str, int]:
    """Images that the target needs, directly or by other stages."""
    found: dict[str, int] = {}
    waiting, seen = [_target(file, stages, target)], set[int]()
    while waiting:
        index = waiting.pop()
        if index in seen:
            continue
        seen.add(index)
        for name, line in _references(stages[index]):
            if (earlier := _find_stage(stages[:index], name)) is not None:
                waiting.append(earlier)
            elif not name:
                raise Refused(
                    _problem(file, line, "FROM an empty name", "pin image load FOLDER --build-arg NAME=IMAGE")
                )
            elif name != SCRATCH:
                found[name] = min(line, found.get(name, line))
    return found


def _references(stage: Stage) -> Iterator[tuple[str, int]]:
    yield stage.base, stage.instructions[0].line
    for instruction in stage.instructions[1:]:
        for name in instruction.values("from"):
            yield name, instruction.line
        for mount in instruction.flags:
            if mount.name == "mount" and "from" in (options := _mount(mount)):
                yield options["from"], instruction.line


def _target(file: str, stages: tuple[Stage, ...], target: str) -> int:
    if not target:
        return len(stages) - 1
    found = _find_stage(stages, target)
    if found is None:
        names = ", ".join(stage.name for stage in stages if stage.name) or "none has a name"
        raise Refused(_problem(file, 0, f"no stage '{target}'", f"stages: {names}"))
    return found


def _find_stage(stages: tuple[Stage, ...], name: str) -> int | None:
    """Index of the newest stage with the name, or of the stage with the number."""
    named = [n for n, stage in enumerate(stages) if stage.name and stage.name == name.lower()]
    if named:
        return named[-1]
    return int(name) if name.isascii() and name.isdigit() and int(name) < len(stages) else None


def _problem(file: str, line: int, what: str, next_: str = "") -> Problem:
    return Problem(DOCKERFILE_UNSUPPORTED, what, Where(file=file, line=line), next=next_)
