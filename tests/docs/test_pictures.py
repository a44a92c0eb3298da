"""The pictures of terminals show what their transcripts have, and the README shows every picture."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from pictures import COLUMNS, FOLDER, pictures, terminal_lines

PAGE = """\
Text
```console
$ pin get
NAME  REASON
web   Available
batch Progressing & <waiting>
$ pin why web
web@1: it has no image  [ImagePullFailed]
  next: pin image load
exit 1
$ pin get
project me has no workloads
```
$ not a command
"""


def shown_text(picture: str) -> list[str]:
    return ["".join(each.itertext()) for each in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]


def test_pictures_are_those_of_the_transcripts() -> None:
    drawn = pictures()
    assert {each.name for each in FOLDER.iterdir()} == drawn.keys()
    for name, text in drawn.items():
        assert (FOLDER / name).read_text() == text, f"{name} differs from its transcript: make pictures"
        assert shown_text(text)


def test_readme_shows_every_picture() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    assert [name for name in pictures() if f"](docs/pictures/{name})" not in readme] == []


def test_reasons_have_the_colour_of_their_severity() -> None:
    lines = terminal_lines(PAGE, ["pin get", "pin why"])
    colours = {each.text: each.colour for line in lines for each in line}
    assert ["".join(each.text for each in line) for line in lines] == PAGE.splitlines()[2:9]
    assert (
        len({colours[each] for each in ("Available", "Progressing", "ImagePullFailed", "web@1: it has no image  [")})
        == 4
    )
    assert colours["next: pin image load"] not in {colours["Available"], colours["ImagePullFailed"]}


def test_long_lines_are_broken_as_on_a_terminal() -> None:
    lines = terminal_lines(f"```console\n$ x\n{'y' * (COLUMNS + 1)}\n```\n", ["x"])
    assert [sum(len(each.text) for each in line) for line in lines] == [3, COLUMNS, 1]


def test_unknown_command_is_refused() -> None:
    with pytest.raises(LookupError, match="no command 'pin up'"):
        terminal_lines(PAGE, ["pin up"])
