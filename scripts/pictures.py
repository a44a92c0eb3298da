"""Draws sessions of the transcripts as terminals, to docs/pictures/*.svg, coloured by severity as on a terminal.

`make pictures` runs it, and a test compares: a picture shows what the tests have replayed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from pincompute.base.reasons import find_reason
from pincompute.base.reasons.reason import Severity

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
PICTURES = {
    "first-service": ("first-service.md", ("pin deploy hello --image", "pin get", "pin deploy misspelt")),
    "why": ("why.md", ("pin why wide", "pin why album")),
}
"""Page and commands of each picture, the latter by their beginnings."""
COLUMNS = 104
_MARGIN, _TOP, _LINE_HEIGHT, _CHAR_WIDTH = 16, 40, 19, 7.8
_BACKGROUND, _TEXT, _PROMPT, _COMMAND, _NEXT = "#1b1f27", "#d5d9e0", "#7d8796", "#ffffff", "#7cc5ff"
_BUTTONS = ("#ff5f57", "#febc2e", "#28c840")
_SEVERITIES = {Severity.OK: "#5fd787", Severity.INFO: "#e5c07b", Severity.ERROR: "#ff7b72"}
_EXIT = re.compile(r"exit \d+$")
"""A transcript's note of the exit code, which a terminal does not print."""
_MARKED = re.compile(r"(?P<next>next: .*)|(?P<reason>\b[A-Z][A-Za-z]+\b)")


class Span(NamedTuple):
    text: str
    colour: str = _TEXT


def draw(lines: Sequence[Sequence[Span]]) -> str:
    width, height = round(2 * _MARGIN + COLUMNS * _CHAR_WIDTH), _TOP + _LINE_HEIGHT * len(lines) + _MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"\n'
        f'     font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="{_BACKGROUND}"/>\n'
    )
    buttons = (
        f'<circle cx="{_MARGIN + 6 + 20 * index}" cy="18" r="6" fill="{colour}"/>\n'
        for index, colour in enumerate(_BUTTONS)
    )
    texts = (
        f'<text x="{_MARGIN}" y="{_TOP + _LINE_HEIGHT * index + 13}" xml:space="preserve">'
        + "".join(f'<tspan fill="{each.colour}">{escape(each.text, quote=False)}</tspan>' for each in spans)
        + "</text>\n"
        for index, spans in enumerate(lines)
        if spans
    )
    return f"{head}{''.join(buttons)}{''.join(texts)}</svg>\n"


def terminal_lines(page: str, commands: Sequence[str]) -> list[list[Span]]:
    """The lines of the first commands with these beginnings. Refuses one that the page does not have."""
    found: dict[str, list[str]] = {}
    for lines in sessions(page):
        for each in commands:
            if lines[0].startswith(f"$ {each}"):
                found.setdefault(each, lines)
    if missing := [each for each in commands if each not in found]:
        raise LookupError(f"no command {missing[0]!r} in the transcript")
    return [
        [*_spans(line)] for each in commands for text in found[each] for line in _wrap(text) if not _EXIT.match(text)
    ]


def sessions(page: str) -> Iterator[list[str]]:
    """Each command of a page, with the lines that it prints."""
    in_console = False
    current: list[str] = []
    for line in page.splitlines():
        starts = in_console and line.startswith("$ ")
        if current and (starts or line.startswith("```")):
            yield current
            current = list[str]()
        if line.startswith("```"):
            in_console = line == "```console"
        elif in_console:
            current.append(line)


def pictures() -> dict[str, str]:
    """Content by file name."""
    folder = ROOT / "docs" / "transcripts"
    return {
        f"{name}.svg": draw(terminal_lines((folder / page).read_text(), commands))
        for name, (page, commands) in PICTURES.items()
    }


def _wrap(line: str) -> Iterator[str]:
    """A terminal breaks lines at its width."""
    yield from (line[start : start + COLUMNS] for start in range(0, max(len(line), 1), COLUMNS))


def _spans(line: str) -> Iterator[Span]:
    if line.startswith("$ "):
        yield from (Span("$ ", _PROMPT), Span(line[2:], _COMMAND))
        return
    end = 0
    for found in _MARKED.finditer(line):
        reason = find_reason(found["reason"]) if found["reason"] else None
        colour = _SEVERITIES[reason.severity] if reason else _NEXT if found["next"] else _TEXT
        if found.start() > end:
            yield Span(line[end : found.start()])
        yield Span(found[0], colour)
        end = found.end()
    if line[end:]:
        yield Span(line[end:])


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in pictures().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
