"""A corpus of workloads in the shape of public manifests: most come over, and what does not says why."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
import yaml

from pincompute.api.documents import read_documents
from pincompute.cli.yaml_writer import format_compact
from pincompute.planning.migration.native_documents import read_natives
from pincompute.planning.migration.related_objects import pod_template_of
from pincompute.planning.migration.survey import SurveyRow, survey_objects

FILES = sorted((Path(__file__).parent / "corpus").glob("*.yaml"))


def survey_file(file: Path) -> tuple[SurveyRow, ...]:
    natives = read_natives(read_documents(file.read_text(), file.name), "shop")
    assert not natives.problems
    assert not natives.ignored
    return survey_objects(natives.objects)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_file_names_its_origin_and_has_one_workload(file: Path) -> None:
    assert file.read_text().startswith("# Written anew in the shape of: ")
    (row,) = survey_file(file)
    assert row.imported is not None or row.problems[0].what
    assert row.outcome == "clean" or row.why


def test_nine_of_ten_are_imported_and_their_files_are_short() -> None:
    rows = [row for file in FILES for row in survey_file(file)]
    imported = [each.imported for each in rows if each.imported]
    assert len(rows) >= 100
    assert len(imported) >= 0.9 * len(rows)
    assert statistics.median(format_compact(each.document).count("\n") for each in imported) <= 22


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_import_drops_no_line_of_the_program(file: Path) -> None:
    """Each image, argument and mount path of the manifest is in the file, and no text of a Secret."""
    native, *_ = yaml.safe_load_all(file.read_text())
    (row,) = survey_file(file)
    if row.imported is None:
        return
    text = str(row.imported.document)
    for container in pod_template_of(native)["spec"]["containers"]:
        mounts = [each["mountPath"] for each in container.get("volumeMounts", ())]
        for word in (container["image"], *container.get("command", ()), *container.get("args", ()), *mounts):
            # The short form of storage and configuration omits the usual path.
            assert repr(word)[1:-1].rstrip("/") in text or word == "/data", word
