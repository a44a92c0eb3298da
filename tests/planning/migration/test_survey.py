"""Import of many objects: one that cannot be imported stops no other, and hostile files reveal and break nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings, strategies as st

from pincompute.api.documents import MAX_FILE_BYTES, read_documents
from pincompute.base.problem import Refused
from pincompute.objects.content import Object
from pincompute.planning.migration.changes import Change, known_keywords, noticeable_changes, unaccepted_problems
from pincompute.planning.migration.native_documents import NativeObjects, read_natives
from pincompute.planning.migration.native_import import API_VERSIONS
from pincompute.planning.migration.survey import SurveyRow, summary_counts, survey_objects

POD: Object = {"containers": [{"name": "web", "image": "web:1"}]}


def native(kind: str = "Deployment", name: str = "web", **fields: Any) -> Object:
    template = {"metadata": {"labels": {"app": name}}, "spec": POD}
    spec: Object = {"template": template}
    if kind == "CronJob":
        spec = {"schedule": "@daily", "jobTemplate": {"spec": {"template": template}}}
    if kind in {"PyTorchJob", "TFJob"}:
        field = "pytorchReplicaSpecs" if kind == "PyTorchJob" else "tfReplicaSpecs"
        spec = {field: {"Worker": {"template": template}}}
    return {"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": {"name": name}, "spec": spec, **fields}


def natives_of(*objects: Object) -> NativeObjects:
    return read_natives(read_documents(yaml.safe_dump_all(objects)), "shop")


def survey(*objects: Object) -> tuple[SurveyRow, ...]:
    found = natives_of(*objects)
    assert not found.problems
    return survey_objects(found.objects)


def test_one_impossible_object_stops_no_other() -> None:
    hook = native("Job", "hook", metadata={"name": "hook", "annotations": {"helm.sh/hook": "pre-install"}})
    old = native(apiVersion="extensions/v1beta1", metadata={"name": "old"})
    rows = survey(hook, old, native())
    assert [each.outcome for each in rows] == ["impossible", "impossible", "changed"]
    assert "Helm hook" in rows[0].why
    assert "extensions/v1beta1" in rows[1].why
    assert rows[2].why == "memory-limit, requests"
    assert summary_counts(rows) == "0 clean, 1 changed, 2 impossible"


def test_second_object_of_a_name_needs_another() -> None:
    first, second = survey(native(), native("CronJob"))
    assert first.imported
    assert second.why == "the name web is already that of Deployment/web"


def test_job_of_an_imported_cron_job_comes_over_with_it() -> None:
    reference = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "web", "uid": "u-1", "controller": True}
    run = native("Job", "web-1", metadata={"name": "web-1", "ownerReferences": [reference]})
    rows = survey(native("CronJob", metadata={"name": "web", "uid": "u-1"}), run)
    assert [each.label for each in rows] == ["CronJob/web"]


def test_related_objects_of_another_namespace_are_not_taken() -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "other"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    (row,) = survey(native(), service)
    assert row.imported
    assert row.imported.document["spec"]["worker"] is True


def test_secrets_are_counted_and_not_read() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"key": "s3cret"}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [secret, native()]}
    found = natives_of(secret, listed)
    assert found.ignored == {"Secret": 2}
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"kind": "List", "items": [{"kind": "List", "items": []}]}, "a List inside a List"),
        ({"kind": "List", "items": {}}, "items of a List must be a list"),
        ({"kind": "PodList", "items": ["a"]}, "an item of a List must be a mapping"),
        (native(metadata={"name": "a\x1b[2Jb"}), "invalid name"),
        (native(metadata={"name": "../../etc/passwd"}), "invalid name"),
        (native(metadata={"name": "web", "namespace": "../up"}), "invalid name"),
        (native(metadata={}), "invalid name None"),
        (native(metadata="web"), "invalid name None"),
        (native(spec=[]), "the spec of Deployment/web must be a mapping"),
    ],
)
def test_rejects_malformed_objects(document: Object, message: str) -> None:
    text = msgspec.json.encode(document).decode()
    (problem,) = read_natives(read_documents(text), "shop").problems
    assert message in problem.what
    assert "\x1b" not in problem.text()


def test_rejects_the_same_object_twice() -> None:
    assert [each.what for each in natives_of(native(), native()).problems] == ["Deployment/web occurs twice in shop"]


def test_ignored_kinds_are_printable() -> None:
    document = {"kind": "\x1b[2J" + "x" * 1000, "metadata": {"name": "a"}}
    (label,) = read_natives(read_documents(msgspec.json.encode(document).decode()), "shop").ignored
    assert label.isprintable()
    assert len(label) < 100


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "x" * MAX_FILE_BYTES,
        "---\na: {b: c, d: e}\n" * 10_000,
        f"a: &a [{'x, ' * 50}]\nb: &b [{'*a, ' * 50}]\nc: [{'*b, ' * 50}]\n",
    ],
    ids=["large", "many documents", "aliases"],
)
def test_size_of_files_is_limited(text: str) -> None:
    with pytest.raises(Refused):
        read_documents(text)


FIELDS = ["spec", "template", "containers", "name", "image", "labels", "metadata", "env", "ports", "resources"]
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=8,
)


def places(value: Any) -> list[Any]:
    """All mappings and lists inside of a value."""
    inner = [*value.values()] if isinstance(value, dict) else [*value] if isinstance(value, list) else []
    return [*([value] if inner else []), *(place for each in inner for place in places(each))]


@settings(deadline=None)
@given(st.sampled_from(sorted(API_VERSIONS)), json, st.data())
def test_content_of_any_type_is_imported_or_refused(kind: str, value: Any, data: st.DataObject) -> None:
    wrong = msgspec.json.decode(msgspec.json.encode(native(kind)))
    place = data.draw(st.sampled_from(places(wrong["spec"])))
    key = data.draw(st.sampled_from([*place, *FIELDS] if isinstance(place, dict) else range(len(place))))
    place[key] = value
    (row,) = survey_objects([{**wrong, "metadata": {"name": "web", "namespace": "shop"}}])
    assert row.outcome in {"changed", "impossible", "clean"}


def test_expected_differences_need_no_consent() -> None:
    assert (
        noticeable_changes(
            [
                "serviceAccountName: default -> web",
                "Worker.serviceAccountName: default -> web",
                "terminationGracePeriodSeconds: 30 -> 33",
                'container web.lifecycle: none -> {"preStop":{}}',
                "rollout.maxUnavailable: 25% -> 0",
            ]
        )
        == ()
    )


@pytest.mark.parametrize(
    ("difference", "keyword"),
    [
        ("container web.resources.limits.memory: none -> 128Mi", "memory-limit"),
        ("Worker.container pytorch.resources.limits.memory: none -> 128Mi", "memory-limit"),
        ("container web.resources.limits.memory: 1Gi -> 128Mi", "other"),
        ("serviceAccountName: robot -> web", "service-account"),
        ('container web.lifecycle: {"preStop":{}} -> none', "other"),
        ("dnsPolicy: Default -> none", "other"),
    ],
)
def test_noticeable_change_has_a_keyword(difference: str, keyword: str) -> None:
    assert noticeable_changes([difference]) == (Change(keyword, difference),)
    assert keyword in known_keywords()


def test_acceptance_of_one_keyword_accepts_no_other() -> None:
    changes = noticeable_changes(
        ["serviceAccountName: robot -> web", "container web.resources.limits.memory: none -> 1"]
    )
    (problem,) = unaccepted_problems(changes, frozenset({"memory-limit"}), "shop/web")
    assert problem.note == "service-account: serviceAccountName: robot -> web"
    assert problem.next == "--accept memory-limit,service-account"
    assert not list(unaccepted_problems(changes, frozenset({"memory-limit", "service-account"}), "shop/web"))
    assert not list(unaccepted_problems(changes, frozenset({"all"}), "shop/web"))
