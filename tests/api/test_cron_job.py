"""What a PinterestCronJob may say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from pincompute.api.admission import admit
from pincompute.api.cron_job import LINE, PinterestCronJob
from pincompute.api.documents import read
from pincompute.base.problem import Refused
from pincompute.objects.schedule import WORDS, NotASchedule, parse
from pincompute.planning.batch.runs import MOST

ROOT = Path(__file__).parents[2]


def admitted(name: str = "nightly", **spec: Any) -> PinterestCronJob:
    document = {
        "apiVersion": "pinterest.com/v1",
        "kind": "PinterestCronJob",
        "metadata": {"name": name},
        "spec": {"image": "nightly:1.0", "schedule": "30 3 * * *", **spec},
    }
    workload = admit(read(yaml.safe_dump(document))[0], "me")
    assert isinstance(workload, PinterestCronJob)
    return workload


@pytest.mark.parametrize("file", ["examples/cron-job.yaml", "examples/long/cron-job.yaml"])
def test_the_examples(file: str) -> None:
    admit(read((ROOT / file).read_text(), file)[0], "me")


def test_the_short_form_is_short() -> None:
    lines = (ROOT / "examples" / "cron-job.yaml").read_text().splitlines()
    assert len([each for each in lines if not each.startswith("#")]) <= 12


def test_names_fit_what_is_made_of_them() -> None:
    """`<name>-<minutes since 1970>` by Kubernetes, which takes 52 letters, and `<name>-now-<number>` by us."""
    assert PinterestCronJob.MAX_NAME <= 52
    assert PinterestCronJob.MAX_NAME + len(f"-now-{MOST}") <= 63


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"schedule": "0 0 31 2 *"}, 'write schedule: "0 0 28 2 *"'),
        ({"schedule": "0 0 3 * * *"}, 'write schedule: "0 3 * * *"'),
        ({"schedule": "@daily and more"}, 'write schedule: "@daily"'),
        ({"schedule": "TZ=Europe/Berlin 0 3 * * *"}, 'write schedule: "0 3 * * *"'),
        ({"schedule": ""}, "0 fields and not five"),
        ({"schedule": 5}, "schedule is 5"),
        ({"timeZone": "Europe/Berlim"}, "did you mean Europe/Berlin?"),
        ({"timeZone": "Berlin"}, "did you mean Europe/Berlin?"),
        ({"timeZone": "Nowhere/At-All"}, "such as Europe/Berlin"),
        ({"timezone": "UTC"}, "did you mean timeZone?"),
        ({"overlap": "Forbid"}, "expected forbid, allow, replace"),
        ({"keep": {"succeeded": 0}}, "succeeded is 0"),
        ({"retries": -1}, "retries is -1"),
        ({"startWithinSeconds": -1}, "startWithinSeconds is -1"),
        ({"template": {"spec": {"restartPolicy": "Always"}}}, "restartPolicy cannot be set"),
    ],
)
def test_what_cannot_be_is_refused_with_words(spec: dict[str, Any], told: str) -> None:
    with pytest.raises(Refused) as refused:
        admitted(**spec)
    assert told in refused.value.text()


def test_both_faults_of_a_document_are_told() -> None:
    with pytest.raises(Refused) as refused:
        admitted(schedule="61 * * * *", timeZone="Mars", overlap="never")
    assert len(refused.value.problems) == 3


lines = st.lists(
    st.from_regex(r"([*?]|[0-9]{1,2}(-[0-9]{1,2})?|jan|FEB|mon-fri)(/[0-9]{1,2})?(,[0-9]{1,2})?", fullmatch=True),
    min_size=5,
    max_size=5,
).map(" ".join)


@given(lines | st.sampled_from(list(WORDS)))
@example("07 003 09 jan SUN")
@example(" @daily ")
@example("0  3\t* * *")
def test_the_rule_of_the_cluster_takes_every_line_that_we_take(line: str) -> None:
    try:
        parse(line)
    except NotASchedule:
        return
    assert re.match(LINE, line, re.ASCII)


@pytest.mark.parametrize(
    "line",
    ["0 0 3 * * *", "* * * *", "@often", "TZ=UTC 0 3 * * *", "60 * * * *", "0 24 * * *", "0 0 32 * *", "0 0 * 13 *"],
)
def test_the_rule_of_the_cluster_refuses_what_is_plainly_wrong(line: str) -> None:
    assert not re.match(LINE, line, re.ASCII)
