"""Jobs of one template become the tasks of one job set, and each task starts the program of its Job."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pincompute.api.job_set import MAX_TASKS
from pincompute.base.problem import Refused
from pincompute.objects.content import Object
from pincompute.planning.migration.job_import import import_job
from pincompute.planning.migration.related_objects import RelatedObjects
from pincompute.planning.migration.sibling_jobs import merge_siblings, sibling_groups, sibling_key
from pincompute.planning.migration.survey import SurveyRow, summary_counts, survey_objects


def templated_job(name: str, command: Sequence[str] = (), **container: Any) -> Object:
    """A Job as an API server stores it; `container` are further fields of its container."""
    main = {"name": "main", "image": "work:1", **({"command": [*command]} if command else {}), **container}
    template = {
        "metadata": {"labels": {"job-name": name, "app": "work"}},
        "spec": {"restartPolicy": "Never", "containers": [main]},
    }
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def environment(**variables: str) -> list[Object]:
    return [{"name": name, "value": value} for name, value in variables.items()]


def imported_spec(row: SurveyRow) -> Object:
    assert row.imported, row.why
    spec: Object = row.imported.document["spec"]
    return spec


def test_hundreds_of_jobs_become_one_job_set_in_the_order_of_their_names() -> None:
    jobs = [templated_job(f"resize-{number}", ["resize", f"--in=day-{number}.csv"]) for number in range(1, 301)]
    (row,) = survey_objects(jobs[::-1])
    assert row.label == "300 Jobs resize-1 … resize-300"
    assert row.imported
    assert row.imported.workload.metadata.name == "resize"
    spec = imported_spec(row)
    assert spec["items"] == [str(number) for number in range(1, 301)]
    assert spec["command"] == [
        "sh",
        "-c",
        'IFS= read -r item_in < /etc/task/item; exec resize --in=day-"$item_in".csv',
    ]
    assert "shell" in row.why
    assert summary_counts([row]) == "0 clean, 1 changed, 0 impossible"
    assert survey_objects(jobs) == (row,)


def test_numbers_of_tasks_need_neither_shell_nor_items() -> None:
    (row,) = survey_objects([templated_job(f"shard-{number}", args=["--shard", str(number)]) for number in range(11)])
    assert imported_spec(row)["arguments"] == ["--shard", "$(PIN_TASK)"]
    assert imported_spec(row)["tasks"] == 11
    assert "items" not in imported_spec(row)
    assert "shell" not in row.why


def test_a_shell_that_the_jobs_start_needs_no_consent() -> None:
    jobs = [templated_job(f"item-{name}", ["bash", "-c", f"echo {name} && sleep 5"]) for name in ("a", "b", "c")]
    (row,) = survey_objects(jobs)
    assert imported_spec(row)["command"][0] == "bash"
    assert imported_spec(row)["items"] == ["a", "b", "c"]
    assert "shell" not in row.why


def test_variables_and_words_with_equal_values_share_one_item() -> None:
    jobs = [
        templated_job(f"load-{city}", ["load", "--from", f"s3://in/{city}"], env=environment(CITY=city, LEVEL="info"))
        for city in ("bern", "rome", "oslo")
    ]
    (row,) = survey_objects(jobs)
    spec = imported_spec(row)
    assert spec["items"] == ["bern", "oslo", "rome"]
    assert spec["environment"] == {"LEVEL": "info"}
    assert 'read -r CITY < /etc/task/item; export CITY; exec load --from s3://in/"$CITY"' in spec["command"][2]


def test_a_script_differs_in_single_words() -> None:
    jobs = [
        templated_job(f"report-{number}", ["sh", "-c", f"report --day  {day} --to s3://{city}/{day}.csv"])
        for number, (city, day) in enumerate([("bern", "mon"), ("rome", "tue"), ("bern", "tue")])
    ]
    (row,) = survey_objects(jobs)
    spec = imported_spec(row)
    assert spec["items"] == ["mon bern", "tue rome", "tue bern"]
    assert spec["command"][2] == (
        "IFS=' ' read -r item_day item < /etc/task/item; "
        'exec sh -c \'report --day  \'"$item_day"\' --to s3://\'"$item"/"$item_day".csv'
    )


def test_labels_that_differ_are_dropped_with_consent() -> None:
    jobs = [templated_job(f"work-{number}", ["work", f"n{number}"]) for number in range(3)]
    for job in jobs:
        name = job["metadata"]["name"]
        job["spec"]["template"]["metadata"]["labels"] |= {"instance": name, "part": f"part-of-{name}"}
    (row,) = survey_objects(jobs)
    assert imported_spec(row)["template"]["metadata"]["labels"] == {"app": "work", "instance": "work"}
    assert "labels" in row.why


def test_deadline_of_each_job_is_one_of_each_task() -> None:
    jobs = [templated_job(f"work-{number}", ["work", str(number)]) for number in range(3)]
    for job in jobs:
        job["spec"] |= {"activeDeadlineSeconds": 600, "backoffLimit": 0}
    (row,) = survey_objects(jobs)
    spec = imported_spec(row)
    assert spec["template"]["spec"]["activeDeadlineSeconds"] == 600
    assert "deadlineSeconds" not in spec
    assert spec["retries"] == 0
    assert "deadline" in row.why


@pytest.mark.parametrize(
    "jobs",
    [
        [templated_job(f"work-{number}", ["work", str(number)], image=f"work:{number}") for number in range(3)],
        [templated_job(f"work-{number}", [f"work-{number}"]) for number in range(3)],
        [templated_job(f"work-{number}", ["sh", "-c", f"step{number} all"]) for number in range(3)],
        [templated_job(f"work-{number}", ["work", *"x" * number]) for number in range(3)],
        [templated_job(f"work-{number}", ["work"], env=environment(**{f"A{number}": ""})) for number in range(3)],
        [templated_job(f"migrate-{word}", ["migrate", word]) for word in ("up", "down")],
    ],
    ids=["image", "program", "script", "number of words", "names of variables", "only two"],
)
def test_other_differences_are_no_siblings(jobs: list[Object]) -> None:
    rows = survey_objects(jobs)
    assert [each.label for each in rows] == [f"Job/{each['metadata']['name']}" for each in jobs]
    assert not any(each.apart for each in rows)


@pytest.mark.parametrize(
    "change",
    [
        {"completions": 2},
        {"parallelism": 2},
        {"maxFailedIndexes": 0},
        {"successPolicy": {"rules": []}},
    ],
    ids=str,
)
def test_jobs_of_several_tasks_stay_apart(change: Object) -> None:
    jobs = [templated_job(f"work-{number}", ["work", f"n{number}"]) for number in range(3)]
    for job in jobs:
        job["spec"] |= change
    assert len(survey_objects(jobs)) == 3


def test_runs_of_a_cron_job_and_hooks_are_not_merged() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "u", "controller": True}
    runs = [templated_job(f"nightly-{number}", ["work", f"n{number}"]) for number in range(3)]
    hooks = [templated_job(f"hook-{number}", ["work", f"n{number}"]) for number in range(3)]
    for run, hook in zip(runs, hooks, strict=True):
        run["metadata"]["ownerReferences"] = [owner]
        hook["metadata"]["annotations"] = {"helm.sh/hook": "pre-install"}
    assert [each.outcome for each in survey_objects([*runs, *hooks])] == ["impossible"] * 6


@pytest.mark.parametrize(
    ("jobs", "cause"),
    [
        ([templated_job(f"work-{n}", args=["--in", f"n{n}"]) for n in range(3)], "have no command"),
        ([templated_job(f"w-{n}", ["w"], env=environment(A=f"{n}\nx")) for n in range(3)], "a text of several lines"),
        ([templated_job(f"w-{n}", ["w", f"$(A{n})"], env=environment(A0="")) for n in range(3)], "a text with $"),
        ([templated_job(f"w-{n}", ["w"], env=environment(PORT=f"80{n}")) for n in range(3)], "variable PORT"),
        ([templated_job(f"w-{n}", ["w"], env=environment(UID=f"x{n}")) for n in range(3)], "cannot set"),
        ([templated_job(f"w-{n}", ["w"], env=environment(**{"a-b": f"x{n}"})) for n in range(3)], "cannot set"),
        (
            [templated_job(f"w-{n}", ["w", "$(A)"], env=environment(A=f"x{n}")) for n in range(3)],
            "another value refers",
        ),
        (
            [templated_job(f"w-{n}", ["w", "$(A)", f"x{n}"], env=environment(A="'; rm -rf /; '")) for n in range(3)],
            "a command that refers to variables",
        ),
        (
            [templated_job(f"w-{n}", ["w", f"x{n}"], env=environment(A=f"{n} ,|;")) for n in range(3)],
            "every separator",
        ),
        (
            [
                templated_job(f"w-{n}", ["w", f"x{n}"], volumeMounts=[{"name": "a", "mountPath": "/etc/task"}])
                for n in range(3)
            ],
            "files of their own in /etc/task",
        ),
        ([templated_job(f"w-{n}", ["w", f"{n}x" * 5_000]) for n in range(50)], "bytes together"),
        (
            [templated_job(f"w-{n}", ["w", *(f"{letter}{n}" * 9_000 for letter in "abcd")]) for n in range(3)],
            "more than 65,536 characters",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_no_item_can_express_stays_apart_with_the_cause(jobs: list[Object], cause: str) -> None:
    rows = survey_objects(jobs)
    assert len(rows) == len(jobs)
    assert all("apart: " in each.why and cause in each.why for each in rows), rows[0].why


ODD_VALUES: tuple[Any, ...] = (None, [], {}, 7, "x", [None], ["x"], {"a": None}, [{"name": 7}])


@pytest.mark.parametrize("field", ["command", "args", "env", "envFrom", "volumeMounts", "name", "image"])
def test_fields_of_any_type_are_imported_or_refused(field: str) -> None:
    """No API server has checked a file."""
    for value in ODD_VALUES:
        jobs = [templated_job(f"w-{number}", ["w", f"x{number}"]) for number in range(3)]
        for job in jobs:
            job["spec"]["template"]["spec"]["containers"][0][field] = value
        assert {each.outcome for each in survey_objects(jobs)} <= {"clean", "changed", "impossible"}


@pytest.mark.parametrize(
    "field", ["completions", "parallelism", "backoffLimit", "activeDeadlineSeconds", "suspend", "podFailurePolicy"]
)
def test_settings_of_any_type_are_imported_or_refused(field: str) -> None:
    for value in ODD_VALUES:
        jobs = [templated_job(f"w-{number}", ["w", f"x{number}"]) for number in range(3)]
        for job in jobs:
            job["spec"][field] = value
        assert {each.outcome for each in survey_objects(jobs)} <= {"clean", "changed", "impossible"}


def test_number_of_tasks_is_bounded() -> None:
    merged = merge_siblings([templated_job(f"w-{number}", ["w", f"x{number}"]) for number in range(MAX_TASKS + 1)], "w")
    with pytest.raises(Refused, match="items"):
        import_job(RelatedObjects.of(merged.native, ()), "w", merged.items)


def test_names_do_not_collide() -> None:
    first = [templated_job(f"work-{number}", ["work", f"n{number}"]) for number in range(3)]
    second = [templated_job(f"work-b{number}", ["work", f"n{number}"], image="work:2") for number in range(3)]
    single = templated_job("work", ["work"])
    rows = survey_objects([*first, single, *second])
    assert [each.imported.workload.metadata.name for each in rows if each.imported] == ["work-2", "work", "work-3"]


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (("resize-0001", "resize-0002", "resize-0010"), "resize"),
        (("apple-load", "berry-load", "cherry-load"), "load"),
        (("apple", "berry", "cherry"), "apple"),
        (("x" * 60 + "-1", "x" * 60 + "-2", "x" * 60 + "-3"), "x" * 45),
    ],
)
def test_job_set_is_named_after_what_the_names_share(names: Sequence[str], wanted: str) -> None:
    (row,) = survey_objects([templated_job(name, ["work", name]) for name in names])
    assert row.imported
    assert row.imported.workload.metadata.name == wanted


texts = st.text(st.characters(codec="ascii", exclude_characters="\n\0$;"), max_size=8)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(texts, texts, texts), min_size=3, max_size=4),
    st.tuples(texts, texts),
    st.sampled_from(["sh", "bash"]),
)
def test_each_task_starts_the_words_of_its_job(
    rows: list[tuple[str, str, str]], fixed: tuple[str, str], program: str
) -> None:
    """The shell runs the merged command as the kubelet would start it, with the variables of the Job."""
    show = 'printf "%s\\0" "$FIRST" "$THIRD" "$@"'
    start = [program, "-c", show, "program"]
    jobs = [
        templated_job(
            f"work-{number}",
            [*start, fixed[0], first, f"--to={second}{fixed[1]}", third],
            env=environment(FIRST=first, THIRD=third),
        )
        for number, (first, second, third) in enumerate(rows)
    ]
    (group,) = sibling_groups(jobs, sibling_key)
    merged = merge_siblings(group, "work")
    (container,) = merged.native["spec"]["template"]["spec"]["containers"]
    for number, (job, row) in enumerate(zip(group, rows, strict=True)):
        item = merged.items[number] if merged.items else ""
        words = [each.replace("$(PIN_TASK)", str(number)) for each in container["command"] + container.get("args", [])]
        done = run_with_item(words, item, container.get("env", []), number)
        before = job["spec"]["template"]["spec"]["containers"][0]["command"]
        assert done.split("\0")[:-1] == [row[0], row[2], *before[len(start) :]]


def run_with_item(words: list[str], item: str, variables: list[Object], number: int) -> str:
    """Runs the words with another file in place of the item of the task."""
    values = {each["name"]: str(each.get("value", "")).replace("$(PIN_TASK)", str(number)) for each in variables}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "item"
        file.write_text(item)
        command = [each.replace("/etc/task/item", str(file)) for each in words]
        environ = {"PATH": "/usr/bin:/bin", **values}
        return subprocess.run(command, env=environ, check=True, capture_output=True, timeout=60).stdout.decode()
