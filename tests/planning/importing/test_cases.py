"""Deployments as one meets them: what was there, and the file that says it, with all that would be otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pincompute.base.problem import Refused
from pincompute.planning.importing import Found, imported
from pincompute.planning.importing.whose import holders

CASES = sorted((Path(__file__).parent / "cases").iterdir())


def found(case: Path) -> Found:
    deployment, *others = yaml.safe_load_all((case / "before.yaml").read_text())
    return Found.of(deployment, others)


def answer(case: Path) -> dict[str, Any]:
    seen = found(case)
    try:
        done = imported(seen)
    except Refused as refused:
        return {"refused": [each.text() for each in refused.problems]}
    whole = {
        "document": done.document,
        "differs": list(done.differs),
        "lost": [each.text() for each in done.lost],
        "beside": list(done.beside),
        "taken": [f"{each['kind']}/{each['metadata']['name']}" for each in done.taken],
        "new": list(done.new),
        "held": [each.text() for each in holders(done.taken)],
    }
    return {name: value for name, value in whole.items() if value}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Path, bless: bool) -> None:
    told = answer(case)
    file = case / "wanted.yaml"
    if bless:
        file.write_text(yaml.safe_dump(told, sort_keys=False, width=110))
    assert told == yaml.safe_load(file.read_text())
