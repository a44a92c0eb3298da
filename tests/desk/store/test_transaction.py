"""Accepting within the quota, answering a repeated key as before, and recording everything."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from pincompute.api.project import Quota, TierQuota
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CLUSTER_REFUSED
from pincompute.desk.store import ledger, outbox, record
from pincompute.desk.store.database import Connection
from pincompute.desk.store.record import SubmissionRecord, SubmissionState
from pincompute.desk.store.tables import audit
from pincompute.desk.transaction import Proposal, preview_quota, record_acceptance, record_refusals
from pincompute.planning.footprint import EMPTY_FOOTPRINT, Footprint, WorkloadKey
from pincompute.platforms.protocol import Delivery, ObservedUsage
from record_fixtures import (
    CLUSTER,
    NOW,
    RecordStore,
    accept_one,
    cores_footprint,
    new_submission,
    project_with_quota,
    rendered_workload,
    workload_key,
)

UPTO = {"PinterestService": 1_000}
BOUNDED = project_with_quota(cpu=10, pods=8)


@pytest.fixture
def connection(record: RecordStore) -> Iterator[Connection]:
    with record.begin() as opened:
        yield opened


def submit_footprint(
    connection: Connection, number: int, name: str, footprint: Footprint | None, key: str = ""
) -> SubmissionRecord:
    return accept_one(connection, new_submission(number, name, key), rendered_workload(BOUNDED, footprint, name))


def shown(connection: Connection, name: str, footprint: Footprint | None, revision: int = 1) -> None:
    ledger.apply_observed(connection, CLUSTER, [ObservedUsage(workload_key(name), footprint, revision)])


def held(connection: Connection, tier: str = "on-demand") -> dict[str, int]:
    return {name: each.pods for (_, name), each in ledger.held_by_workload(connection, CLUSTER, "ads", tier).items()}


def test_acceptance_is_recorded_reserved_and_queued(connection: Connection) -> None:
    kept = submit_footprint(connection, 1, "web", cores_footprint(3))
    assert (kept.state, held(connection)) == (SubmissionState.ACCEPTED, {"web": 3})
    assert [each.submission.id for each in outbox.undelivered_entries(connection, CLUSTER)] == ["s-1"]
    assert record.find_by_id(connection, "ads", "s-1") == kept
    assert [each.act for each in connection.execute(audit.select())] == ["deploy: accepted by the desk"]


def test_observed_and_undelivered_state_count_once(connection: Connection) -> None:
    submit_footprint(connection, 1, "web", cores_footprint(5))
    shown(connection, "web", cores_footprint(5))
    assert submit_footprint(connection, 2, "crawl", cores_footprint(3)).state is SubmissionState.ACCEPTED
    assert submit_footprint(connection, 3, "more", cores_footprint(1)).state is SubmissionState.REFUSED


def test_quota_refusal_has_numbers_holders_and_contact(connection: Connection) -> None:
    for number, (name, size) in enumerate({"web": 3, "crawl": 4, "tiny": 1}.items()):
        submit_footprint(connection, number, name, cores_footprint(size))
    kept = submit_footprint(connection, 9, "more", cores_footprint(3))
    refused = kept.decisions[0].refusal()
    assert refused.text() == (
        "ads/more: more exceeds the on-demand quota of project ads  [QuotaTooSmall]\n"
        "  CPU: 3 requested, 10 allowed, 8 used by other workloads, 2 left\n"
        "  pods: 3 requested, 8 allowed, 8 used by other workloads, 0 left\n"
        "  largest users of CPU: crawl 4, web 3, tiny 1\n"
        "  next: scale down or delete other workloads, or ask team-ads (#ads-oncall), the owner of the"
        " project, for a larger quota"
    )
    # It is recorded, reserves nothing and is not queued.
    assert record.find_by_id(connection, "ads", "s-9") == kept
    assert "more" not in held(connection)
    assert "s-9" not in [each.submission.id for each in outbox.undelivered_entries(connection, CLUSTER)]


def test_tier_without_quota_is_closed(connection: Connection) -> None:
    kept = submit_footprint(connection, 1, "web", cores_footprint(1, "reserved"))
    assert "project ads has no quota for tier reserved" in kept.decisions[0].refusal().text()


def test_object_size_is_limited(connection: Connection) -> None:
    """Kubernetes has no quota for it, and all projects share its database."""
    owner = project_with_quota(bytes="1Mi")

    def weighing(number: int, name: str, kibibytes: int) -> SubmissionRecord:
        asked = Footprint("on-demand", pods=1, bytes=kibibytes * 1024)
        return accept_one(connection, new_submission(number, name), rendered_workload(owner, asked, name))

    weighing(1, "web", 700)
    refused = weighing(2, "batch", 400).decisions[0].refusal()
    assert held(connection) == {"web": 1}
    assert "object bytes: 400Ki requested, 1Mi allowed, 700Ki used by other workloads, 324Ki left" in refused.text()


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ({"services": 2}, {"services": 2}, "Services: 2 requested, 3 allowed, 2 used by"),
        # One is that of the namespace.
        ({"config_maps": 1}, {"config_maps": 2}, "ConfigMaps: 2 requested, 2 allowed, 1 used by"),
        ({"claims": 1}, {"claims": 4}, "PersistentVolumeClaims: 4 requested, which never fits: the whole quota is 3"),
        ({"storage": 600}, {"storage": 500}, "storage: 500 requested, 1000 allowed, 600 used by"),
    ],
)  # fmt: skip
def test_objects_and_storage_are_counted_over_all_tiers(
    connection: Connection, first: dict[str, int], second: dict[str, int], text: str
) -> None:
    spec = Quota(on_demand=TierQuota(), reserved=TierQuota(), objects=3, storage="1000")
    project = project_with_quota()
    project = msgspec.structs.replace(project, spec=msgspec.structs.replace(project.spec, quota=spec))

    def submit(number: int, name: str, tier: str, amounts: dict[str, int]) -> SubmissionRecord:
        rendered = rendered_workload(project, Footprint(tier, **amounts), name)
        (preview,) = preview_quota(connection, CLUSTER, [rendered])
        decided = accept_one(connection, new_submission(number, name), rendered)
        refused = decided.decisions[0].refusal().problems if decided.state is SubmissionState.REFUSED else (None,)
        assert (preview.problem,) == refused
        return decided

    assert submit(1, "web", "on-demand", first).state is SubmissionState.ACCEPTED
    refusal = submit(2, "batch", "reserved", second).decisions[0].refusal()
    field = "storage" if "storage" in first else "objects"
    assert refusal.problems[0].what == f"batch exceeds the {field} quota of project ads"
    assert text in refusal.text()
    # A workload that does not need more of it passes, also in another tier.
    assert submit(3, "web", "reserved", first).state is SubmissionState.ACCEPTED


def test_without_a_project_quota_is_unlimited(connection: Connection) -> None:
    assert (
        accept_one(connection, new_submission(1), rendered_workload(None, cores_footprint(1_000_000))).state
        is SubmissionState.ACCEPTED
    )


def test_shrinking_is_accepted_above_the_quota(connection: Connection) -> None:
    shown(connection, "web", cores_footprint(30))
    assert submit_footprint(connection, 1, "web", cores_footprint(20)).state is SubmissionState.ACCEPTED
    assert submit_footprint(connection, 2, "web", cores_footprint(31)).state is SubmissionState.REFUSED
    assert submit_footprint(connection, 3, "new", cores_footprint(1)).state is SubmissionState.REFUSED
    assert submit_footprint(connection, 4, "new", cores_footprint(0)).state is SubmissionState.ACCEPTED


def test_workload_being_scaled_down_may_keep_its_size(connection: Connection) -> None:
    shown(connection, "web", cores_footprint(8))
    submit_footprint(connection, 1, "web", cores_footprint(2))
    shown(connection, "crawl", cores_footprint(4))
    assert submit_footprint(connection, 2, "web", cores_footprint(7)).state is SubmissionState.ACCEPTED


def test_quota_is_free_after_the_shrunk_state_is_observed(connection: Connection) -> None:
    shown(connection, "web", cores_footprint(8), revision=5)
    asked = new_submission(1)
    submit_footprint(connection, 1, "web", cores_footprint(2))
    assert held(connection) == {"web": 8}
    outbox.record_delivery(connection, asked, NOW, Delivery({}, written_revision=7))
    shown(connection, "web", cores_footprint(8), revision=6)  # an older observation
    assert held(connection) == {"web": 8}
    shown(connection, "web", cores_footprint(2), revision=7)
    assert held(connection) == {"web": 2}
    assert ledger.unobserved_writes(connection, CLUSTER) == []


def test_older_observation_does_not_end_a_reservation(connection: Connection) -> None:
    shown(connection, "web", cores_footprint(2), revision=5)
    submit_footprint(connection, 1, "web", cores_footprint(8))
    outbox.record_delivery(connection, new_submission(1), NOW, Delivery({}, written_revision=7))
    shown(connection, "web", cores_footprint(2), revision=6)
    assert held(connection) == {"web": 8}
    # Nor does a resync by a new leader whose cache is behind.
    ledger.resync(
        connection, CLUSTER, [ObservedUsage(workload_key("web"), cores_footprint(2), 6)], {"PinterestService": 6}
    )
    assert held(connection) == {"web": 8}


def test_entry_is_completed_once(connection: Connection) -> None:
    submit_footprint(connection, 1, "web", cores_footprint(1))
    outbox.record_delivery(connection, new_submission(1), NOW, Delivery({}, written_revision=7))
    outbox.record_delivery(connection, new_submission(1), NOW, Delivery({}, written_revision=9))
    outbox.record_rejection(connection, new_submission(1), NOW, Refused(Problem(CLUSTER_REFUSED, "no")))
    kept = record.find_by_id(connection, "ads", "s-1")
    assert kept is not None
    assert (kept.state, held(connection)) == (SubmissionState.DELIVERED, {"web": 1})
    shown(connection, "web", cores_footprint(1), revision=7)
    assert ledger.unobserved_writes(connection, CLUSTER) == []


def test_rejection_by_the_platform_frees_quota(connection: Connection) -> None:
    shown(connection, "web", cores_footprint(1))
    submit_footprint(connection, 1, "web", cores_footprint(5))
    outbox.record_rejection(connection, new_submission(1), NOW, Refused(Problem(CLUSTER_REFUSED, "no such field")))
    kept = record.find_by_id(connection, "ads", "s-1")
    assert kept is not None
    assert (kept.state, held(connection), outbox.undelivered_entries(connection, CLUSTER)) == (
        SubmissionState.REFUSED,
        {"web": 1},
        [],
    )
    assert kept.decisions[-1].refusal().problems[0].what == "no such field"


def test_deleted_workload_holds_nothing(connection: Connection) -> None:
    shown(connection, "web", cores_footprint(5))
    submit_footprint(connection, 1, "web", None)
    outbox.record_delivery(connection, new_submission(1), NOW, Delivery(None))
    assert held(connection) == {"web": 5}
    shown(connection, "web", None, revision=2)
    assert held(connection) == {}


def test_resync_replaces_observed_state(connection: Connection) -> None:
    shown(connection, "gone", cores_footprint(1))
    submit_footprint(connection, 1, "written", cores_footprint(1))
    outbox.record_delivery(connection, new_submission(1, "written"), NOW, Delivery({}, written_revision=1_000))
    submit_footprint(connection, 2, "waits", cores_footprint(2))
    ledger.resync(
        connection,
        CLUSTER,
        [
            ObservedUsage(workload_key("by-hand"), cores_footprint(3), 0),
            ObservedUsage(workload_key("ended"), EMPTY_FOOTPRINT, 0),
        ],
        UPTO,
    )
    assert held(connection) == {"waits": 2, "by-hand": 3}


def test_repeated_idempotency_key_returns_the_same_record(connection: Connection) -> None:
    first = submit_footprint(connection, 1, "web", cores_footprint(3), key="once")
    assert submit_footprint(connection, 2, "web", cores_footprint(3), key="once") == first
    assert held(connection) == {"web": 3}
    refused = submit_footprint(connection, 3, "more", cores_footprint(30), key="twice")
    shown(connection, "web", None)
    assert submit_footprint(connection, 4, "more", cores_footprint(30), key="twice") == refused


def test_reused_idempotency_key_is_refused(connection: Connection) -> None:
    submit_footprint(connection, 1, "web", cores_footprint(1), key="once")
    with pytest.raises(Refused, match="was already used for a different request"):
        accept_one(
            connection,
            new_submission(2, key="once", document="another"),
            rendered_workload(BOUNDED, cores_footprint(1)),
        )


def test_refusals_are_recorded(connection: Connection) -> None:
    told = Refused(Problem(CLUSTER_REFUSED, "not like this"), Problem(CLUSTER_REFUSED, "nor like that"))
    (kept,) = record_refusals(connection, [new_submission(1, key="once")], {"s-1": told})
    assert kept.decisions[0].refusal().text() == told.text()
    assert record_refusals(connection, [new_submission(2, key="once")], {"s-2": told}) == [kept]


def test_no_pending_workload_without_submissions(connection: Connection) -> None:
    assert outbox.pending_resource(connection, CLUSTER, WorkloadKey("ads", "", "web")) is None


def test_last_deployment_is_found_behind_later_changes(connection: Connection) -> None:
    assert record.last_deployment(connection, "ads", "web") is None
    vouched = record.VerifiedBuild("1.0", "c0ffee", "ci", "ann", "{}")
    record_acceptance(connection, Proposal(new_submission(1), rendered_workload(BOUNDED, cores_footprint(1)), vouched))
    record_acceptance(
        connection,
        Proposal(new_submission(2), rendered_workload(BOUNDED, cores_footprint(1)), vouched._replace(version="2.0")),
    )
    record_acceptance(
        connection,
        Proposal(new_submission(3), rendered_workload(BOUNDED, cores_footprint(100)), vouched._replace(version="3.0")),
    )
    outbox.record_rejection(connection, new_submission(2), NOW, Refused(Problem(CLUSTER_REFUSED, "no")))
    for number in range(4, 9):
        record_acceptance(
            connection,
            Proposal(new_submission(number)._replace(verb="scale"), rendered_workload(BOUNDED, cores_footprint(1))),
        )
    found = record.last_deployment(connection, "ads", "web")
    assert found is not None
    kept, vouched = found[0], found[1] or vouched
    assert (kept.id, kept.verb, vouched.version) == ("s-1", "deploy", "1.0")
    record_acceptance(
        connection,
        Proposal(new_submission(9)._replace(verb="break-glass"), rendered_workload(BOUNDED, cores_footprint(1))),
    )
    found = record.last_deployment(connection, "ads", "web")
    assert found is not None
    assert (found[0].id, found[1]) == ("s-9", None)
    back = new_submission(10)._replace(verb="rollback")
    record_acceptance(connection, Proposal(back, rendered_workload(BOUNDED, cores_footprint(1)), vouched))
    found = record.last_deployment(connection, "ads", "web")
    assert found is not None
    assert (found[0].id, found[1]) == ("s-10", vouched)
