"""A job set that makes no sense is told so, each fault with what is allowed."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from pincompute.api.admission import admit
from pincompute.api.documents import read
from pincompute.api.job_set import PinterestJobSet
from pincompute.base.problem import Refused
from pincompute.objects.numbers import share_of


def document(name: str = "resize", **spec: Any) -> str:
    whole = {"image": "resize:1", **({} if "items" in spec else {"tasks": 5}), **spec}
    said = {name: value for name, value in whole.items() if value is not None}
    return yaml.safe_dump(
        {"apiVersion": "pinterest.com/v1", "kind": "PinterestJobSet", "metadata": {"name": name}, "spec": said}
    )


def faults(**spec: Any) -> str:
    with pytest.raises(Refused) as refused:
        admit(read(document(**spec))[0], "me")
    return refused.value.text()


def scratch(**more: Any) -> dict[str, Any]:
    return {"name": "scratch", "path": "/scratch", "size": "1Gi", **more}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"tasks": None}, "neither tasks nor items are given"),
        ({"tasks": 5, "items": ["a"]}, "tasks and items both say how many there are"),
        ({"tasks": 0}, "tasks is 0"),
        ({"tasks": 10_001}, "tasks is 10001"),
        ({"items": []}, "items is []"),
        ({"items": ["a"] * 10_001}, "items"),
        ({"items": ["a" * 50_000] * 10}, "the 10 tasks are told has 500,000 bytes together, 450,000 is the most"),
        ({"tasks": 9_000, "taskConfiguration": {"a": "x", "b": "z"}}, "27,000 files together, 20,000 is the most"),
        ({"taskConfiguration": {"number": "1"}}, "the file 'number' of a task is ours to write"),
        ({"taskConfiguration": {"a/b": "1"}}, "no file can be called 'a/b'"),
        ({"taskConfiguration": {"..": "1"}}, "no file can be called '..'"),
        ({"taskConfiguration": {"a" * 201: "1"}}, "has 201 letters, 200 are the most"),
        ({"parallelism": 6}, "parallelism is 6, and there are 5 tasks"),
        ({"retryExitCodes": [75, 0]}, "expected a number >= 1"),
        ({"retryExitCodes": [256]}, "expected a number <= 255"),
        ({"enough": 6}, "enough is 6, and there are 5 tasks"),
        ({"enough": "101%"}, "enough is 101%, and there are 5 tasks"),
        ({"enough": 0}, "enough is 0: it would have succeeded before it began"),
        ({"maxFailed": 6}, "maxFailed is 6, and there are 5 tasks"),
        ({"deadlineSeconds": 60, "taskDeadlineSeconds": 61}, "a task may take 61 seconds, and all together only 60"),
        (
            {"taskDeadlineSeconds": 9, "template": {"spec": {"activeDeadlineSeconds": 8}}},
            "how long a task may take stands here and in the template's",
        ),
        ({"keepSeconds": 59}, "expected a number >= 60"),
        ({"attempts": [{"tasks": "4-5"}]}, "there is no task 5"),
        ({"attempts": [{"tasks": "3-1"}]}, "'3-1' runs backwards"),
        ({"attempts": [{"tasks": "some"}]}, "tasks is 'some'"),
        ({"attempts": [{"tasks": "1", "reason": "OutOfMemory"}]}, "chosen by their number and by a reason"),
        ({"attempts": [{"reason": "OutOfMemry"}]}, "did you mean OutOfMemory?"),
        ({"claims": [scratch(), scratch(path="/b")]}, "two claims are called 'scratch'"),
        ({"claims": [scratch(), scratch(name="b")]}, "two claims are seen at /scratch"),
        ({"tasks": 101, "claims": [scratch(retained=True)]}, "would be kept for 101 tasks, 100 is the most"),
    ],
)
def test_bad_input_is_told(spec: dict[str, Any], told: str) -> None:
    assert told in faults(**spec)


def test_all_faults_are_told_at_once() -> None:
    text = faults(parallelism=6, enough=7, maxFailed=8, attempts=[{"tasks": "9"}])
    assert text.count("[DocumentInvalid]") == 4


def test_a_name_leaves_room_for_what_its_jobs_and_pods_are_called() -> None:
    assert admit(read(document(name="a" * PinterestJobSet.MAX_NAME))[0], "me")
    with pytest.raises(Refused):
        admit(read(document(name="a" * (PinterestJobSet.MAX_NAME + 1)))[0], "me")


@pytest.mark.parametrize(
    ("share", "whole", "number"), [(3, 5, 3), ("60%", 5, 3), ("50%", 5, 3), ("1%", 5, 1), ("0%", 5, 0)]
)
def test_a_part_of_all_is_rounded_up(share: int | str, whole: int, number: int) -> None:
    assert share_of(share, whole, up=True) == number


def test_a_program_that_is_handed_its_number_by_a_variable_cannot_run_again() -> None:
    told = faults(arguments=["--part", "$(PIN_TASK)"], attempts=[{"tasks": "1"}])
    assert "spec.arguments.1: $(PIN_TASK) is not known to a task that runs again" in told
    assert "next: let the program read /etc/task/number" in told
    admit(read(document(arguments=["--part", "$(PIN_TASK)"]))[0], "me")
