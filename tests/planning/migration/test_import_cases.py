"""Realistic objects of all kinds: the objects before the import, and the file with all reported differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pincompute.base.problem import Refused
from pincompute.planning.migration.managed_by import external_managers
from pincompute.planning.migration.native_import import import_native
from pincompute.planning.migration.related_objects import RelatedObjects

CASES = sorted((Path(__file__).parent / "cases").iterdir())


def related_objects(case: Path) -> RelatedObjects:
    deployment, *others = yaml.safe_load_all((case / "before.yaml").read_text())
    return RelatedObjects.of(deployment, others)


def import_report(case: Path) -> dict[str, Any]:
    try:
        result = import_native(related_objects(case))
    except Refused as refused:
        return {"refused": [each.text() for each in refused.problems]}
    report = {
        "document": result.document,
        "differences": list(result.differences),
        "blockers": [each.text() for each in result.blockers],
        "untouched": list(result.untouched),
        "adopted": [f"{each['kind']}/{each['metadata']['name']}" for each in result.adopted],
        "created": list(result.created),
        "managed": [each.text() for each in external_managers(result.adopted)],
    }
    return {name: value for name, value in report.items() if value}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_imports_case(case: Path, bless: bool) -> None:
    report = import_report(case)
    file = case / "wanted.yaml"
    if bless:
        file.write_text(yaml.safe_dump(report, sort_keys=False, width=110))
    assert report == yaml.safe_load(file.read_text())
