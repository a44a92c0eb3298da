"""Validation of PinterestCronJob."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, strategies as st

from pincompute.api.cron_job import SCHEDULE_PATTERN, PinterestCronJob
from pincompute.api.documents import read_documents
from pincompute.api.validation import parse_resource
from pincompute.base.problem import Refused
from pincompute.objects.cron_schedule import NAMED_SCHEDULES, InvalidSchedule, parse_schedule
from pincompute.planning.batch.runs import MAX_MANUAL_RUN_NUMBER

ROOT = Path(__file__).parents[2]


def parsed_cron_job(name: str = "nightly", **spec: Any) -> PinterestCronJob:
    document = {
        "apiVersion": "pinterest.com/v1",
        "kind": "PinterestCronJob",
        "metadata": {"name": name},
        "spec": {"image": "nightly:1.0", "schedule": "30 3 * * *", **spec},
    }
    workload = parse_resource(read_documents(yaml.safe_dump(document))[0], "me")
    assert isinstance(workload, PinterestCronJob)
    return workload


@pytest.mark.parametrize("file", ["examples/cron-job.yaml", "examples/long/cron-job.yaml"])
def test_accepts_examples(file: str) -> None:
    parse_resource(read_documents((ROOT / file).read_text(), file)[0], "me")


def test_example_is_short() -> None:
    schedules = (ROOT / "examples" / "cron-job.yaml").read_text().splitlines()
    assert len([each for each in schedules if not each.startswith("#")]) <= 12


def test_job_names_fit_limits() -> None:
    """Kubernetes appends the minutes since the epoch and allows 52 characters; a manual run appends `-now-NUMBER`."""
    assert PinterestCronJob.MAX_NAME_LENGTH <= 52
    assert PinterestCronJob.MAX_NAME_LENGTH + len(f"-now-{MAX_MANUAL_RUN_NUMBER}") <= 63


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"schedule": "0 0 31 2 *"}, 'write schedule: "0 0 28 2 *"'),
        ({"schedule": "0 0 3 * * *"}, 'write schedule: "0 3 * * *"'),
        ({"schedule": "@daily and more"}, 'write schedule: "@daily"'),
        ({"schedule": "TZ=Europe/Berlin 0 3 * * *"}, 'write schedule: "0 3 * * *"'),
        ({"schedule": ""}, "0 fields instead of five"),
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
def test_rejects_invalid_cron_job_spec(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused) as refused:
        parsed_cron_job(**spec)
    assert message in refused.value.text()


def test_reports_all_errors() -> None:
    with pytest.raises(Refused) as refused:
        parsed_cron_job(schedule="61 * * * *", timeZone="Mars", overlap="never")
    assert len(refused.value.problems) == 3


schedules = st.lists(
    st.from_regex(r"([*?]|[0-9]{1,2}(-[0-9]{1,2})?|jan|FEB|mon-fri)(/[0-9]{1,2})?(,[0-9]{1,2})?", fullmatch=True),
    min_size=5,
    max_size=5,
).map(" ".join)


@given(schedules | st.sampled_from(list(NAMED_SCHEDULES)))
@example("07 003 09 jan SUN")
@example(" @daily ")
@example("0  3\t* * *")
def test_cel_rule_accepts_every_valid_schedule(schedule: str) -> None:
    try:
        parse_schedule(schedule)
    except InvalidSchedule:
        return
    assert re.match(SCHEDULE_PATTERN, schedule, re.ASCII)


@pytest.mark.parametrize(
    "schedule",
    ["0 0 3 * * *", "* * * *", "@often", "TZ=UTC 0 3 * * *", "60 * * * *", "0 24 * * *", "0 0 32 * *", "0 0 * 13 *"],
)
def test_cel_rule_rejects_invalid_schedule(schedule: str) -> None:
    assert not re.match(SCHEDULE_PATTERN, schedule, re.ASCII)
