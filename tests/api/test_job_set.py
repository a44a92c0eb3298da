"""Validation of PinterestJobSet."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from pincompute.api.documents import read_documents
from pincompute.api.job_set import PinterestJobSet
from pincompute.api.validation import parse_resource
from pincompute.base.problem import Refused
from pincompute.objects.number_sets import scaled_value


def job_set_document(name: str = "resize", **spec: Any) -> str:
    whole = {"image": "resize:1", **({} if "items" in spec else {"tasks": 5}), **spec}
    fields = {name: value for name, value in whole.items() if value is not None}
    return yaml.safe_dump(
        {"apiVersion": "pinterest.com/v1", "kind": "PinterestJobSet", "metadata": {"name": name}, "spec": fields}
    )


def errors_of(**spec: Any) -> str:
    with pytest.raises(Refused) as refused:
        parse_resource(read_documents(job_set_document(**spec))[0], "me")
    return refused.value.text()


def scratch_claim(**more: Any) -> dict[str, Any]:
    return {"name": "scratch", "path": "/scratch", "size": "1Gi", **more}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"tasks": None}, "tasks or items is required"),
        ({"tasks": 5, "items": ["a"]}, "tasks and items cannot be used together"),
        ({"tasks": 0}, "tasks is 0"),
        ({"tasks": 10_001}, "tasks is 10001"),
        ({"items": []}, "items is []"),
        ({"items": ["a"] * 10_001}, "items"),
        ({"items": ["a" * 50_000] * 10}, "of the 10 tasks have 500,000 bytes together, the maximum is 450,000"),
        ({"tasks": 9_000, "taskConfiguration": {"a": "x", "b": "z"}}, "27,000 files together, the maximum is 20,000"),
        ({"taskConfiguration": {"number": "1"}}, "the file 'number' is written by the platform"),
        ({"taskConfiguration": {"a/b": "1"}}, "invalid file name 'a/b'"),
        ({"taskConfiguration": {"..": "1"}}, "invalid file name '..'"),
        ({"taskConfiguration": {"a" * 201: "1"}}, "has 201 characters, the maximum is 200"),
        ({"parallelism": 6}, "parallelism is 6, but there are only 5 tasks"),
        ({"retryExitCodes": [75, 0]}, "expected a number >= 1"),
        ({"retryExitCodes": [256]}, "expected a number <= 255"),
        ({"enough": 6}, "enough is 6, but there are only 5 tasks"),
        ({"enough": "101%"}, "enough is 101%, but there are only 5 tasks"),
        ({"enough": "most"}, "enough is 'most': expected a number or percentage"),
        ({"maxFailed": "9" * 5_000}, "maxFailed has 5,000 characters, the maximum is 8"),
        ({"enough": 0}, "enough is 0: the job set would succeed without running"),
        ({"maxFailed": 6}, "maxFailed is 6, but there are only 5 tasks"),
        ({"deadlineSeconds": 60, "taskDeadlineSeconds": 61}, "taskDeadlineSeconds is 61, but deadlineSeconds only 60"),
        (
            {"taskDeadlineSeconds": 9, "template": {"spec": {"activeDeadlineSeconds": 8}}},
            "taskDeadlineSeconds and the template's activeDeadlineSeconds cannot be used together",
        ),
        ({"keepSeconds": 59}, "expected a number >= 60"),
        ({"attempts": [{"tasks": "4-5"}]}, "there is no task 5"),
        ({"attempts": [{"tasks": "3-1"}]}, "the range '3-1' is reversed"),
        ({"attempts": [{"tasks": "0-999999,0-999999"}]}, "the set has more than 10,000 numbers"),
        (
            {"tasks": 100, "claims": [scratch_claim(retained=True)], "command": ["a" * 10_000]},
            "the Jobs of 100 tasks with retained claims have 1,0",
        ),
        ({"template": {"spec": {"overhead": {"cpu": "much"}}}}, "expected a quantity such as 2"),
        ({"attempts": [{"tasks": "some"}]}, "tasks is 'some'"),
        ({"attempts": [{"tasks": "1", "reason": "OutOfMemory"}]}, "task numbers and reason cannot be used together"),
        ({"attempts": [{"reason": "OutOfMemry"}]}, "did you mean OutOfMemory?"),
        ({"claims": [scratch_claim(), scratch_claim(path="/b")]}, "duplicate claim name 'scratch'"),
        ({"claims": [scratch_claim(), scratch_claim(name="b")]}, "two claims have the path /scratch"),
        ({"tasks": 101, "claims": [scratch_claim(retained=True)]}, "is retained for 101 tasks, the maximum is 100"),
    ],
)
def test_rejects_invalid_job_set_spec(spec: dict[str, Any], message: str) -> None:
    assert message in errors_of(**spec)


def test_reports_all_errors_at_once() -> None:
    text = errors_of(parallelism=6, enough=7, maxFailed=8, attempts=[{"tasks": "9"}])
    assert text.count("[DocumentInvalid]") == 4


def test_rejects_name_over_maximum_length() -> None:
    assert parse_resource(read_documents(job_set_document(name="a" * PinterestJobSet.MAX_NAME_LENGTH))[0], "me")
    with pytest.raises(Refused):
        parse_resource(read_documents(job_set_document(name="a" * (PinterestJobSet.MAX_NAME_LENGTH + 1)))[0], "me")


@pytest.mark.parametrize(
    ("share", "whole", "number"), [(3, 5, 3), ("60%", 5, 3), ("50%", 5, 3), ("1%", 5, 1), ("0%", 5, 0)]
)
def test_percentage_is_rounded_up(share: int | str, whole: int, number: int) -> None:
    assert scaled_value(share, whole, up=True) == number


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"arguments": ["--part", "$(PIN_TASK)"]}, True),
        ({"command": ["sh", "-c", "run $PIN_TASK"]}, True),
        ({"command": ["sh", "-c", "run ${PIN_TASK}"]}, True),
        ({"environment": {"PART": "part-$(PIN_TASK)"}}, True),
        ({"command": ["sh", "-c", "run $PIN_TASKS $PIN_TASK_PATH/number"]}, False),
        ({}, False),
    ],
)
def test_finds_uses_of_the_task_variable(fields: dict[str, Any], expected: bool) -> None:
    document = job_set_document(**fields, attempts=[{"tasks": "1"}])
    found: Any = parse_resource(read_documents(document)[0], "me")
    assert found.spec.uses_task_variable == expected
