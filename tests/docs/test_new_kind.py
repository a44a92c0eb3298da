"""A new kind is declared in a few files; the rest follows from its declaration or is generated from it."""

from __future__ import annotations

import re
from pathlib import Path

import generate_docs
import pytest

from pincompute.api.kinds import WORKLOADS
from pincompute.api.workload import Workload
from pincompute.controller.resources import CUSTOM_RESOURCES, WORKLOAD_NATIVES
from pincompute.planning.kinds.planners import PLANNERS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "pincompute"
MAX_FILES = 6
OWN_FILES = 2
"""The module of the kind, and that of its planner."""
_GENERATED_LINE = re.compile(r"^.*# by make docs: .*$", re.MULTILINE)


def names_kind(text: str, kind: type[Workload]) -> bool:
    module = kind.__module__.rpartition(".")[2]
    return any(re.search(rf"\b{name}\b", text) for name in (kind.__name__, kind.plural(), module))


def files_that_list_the_kinds() -> list[str]:
    """Files under src that name all kinds of members outside of generated lines: a new kind would be added there."""
    kinds = [each for each in WORKLOADS.values() if not each.BY_ADMINISTRATORS]
    files = (each for suffix in ("py", "yaml") for each in SOURCE.rglob(f"*.{suffix}"))
    texts = {file: _GENERATED_LINE.sub("", file.read_text()) for file in files}
    return sorted(
        file.relative_to(SOURCE).as_posix()
        for file, text in texts.items()
        if all(names_kind(text, kind) for kind in kinds) and "manifests/parts/" not in file.as_posix()
    )


def test_new_kind_touches_at_most_six_files() -> None:
    """Parts are versions: an older one serves no new kind, and is not changed for it."""
    found = files_that_list_the_kinds()
    assert found == ["api/kinds.py", "api/sidecar.py", "planning/kinds/planners.py"]
    assert len(found) + OWN_FILES <= MAX_FILES


@pytest.mark.parametrize("kind", WORKLOADS.values(), ids=WORKLOADS)
def test_declaration_of_a_kind_is_complete(kind: type[Workload]) -> None:
    assert kind.KIND_NAME.startswith(("a ", "an "))
    assert kind.SCALABLE or kind.BY_ADMINISTRATORS or all(kind.NOT_SCALABLE) or kind.GOAL == "Succeeded"
    assert {*kind.STATUS_NATIVES} <= WORKLOAD_NATIVES.keys()
    assert kind.__name__ in CUSTOM_RESOURCES
    assert kind.__name__ in PLANNERS


def test_rights_follow_from_the_declaration_of_the_kinds() -> None:
    """Each list of all workloads in the manifests is generated: one by hand would lack the next kind."""
    plurals = [each.plural() for each in WORKLOADS.values() if not each.BY_ADMINISTRATORS]
    for file in (SOURCE / "engine" / "manifests").glob("*.yaml"):
        by_hand = _GENERATED_LINE.sub("", file.read_text())
        assert not all(each in by_hand for each in plurals), file.name
    text = "\n".join(generate_docs.manifests().values())
    assert len(_GENERATED_LINE.findall(text)) >= 10
    assert "pinterestdaemons" not in next(line for line in _GENERATED_LINE.findall(text) if "members" in line)
