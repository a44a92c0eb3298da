"""Accept: within the quota and never over it, the same answer to the same key, and everything on record."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from books import CLUSTER, NOW, Books, cores, one, place, project, rendered, submission
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CLUSTER_REFUSED
from pincompute.planning.quotas.footprint import NOTHING, Footprint
from pincompute.submission import ledger, outbox, record
from pincompute.submission.accept import Proposal, accept, refuse
from pincompute.submission.database import Connection
from pincompute.submission.platform import Delivered, Seen
from pincompute.submission.record import Kept, State
from pincompute.submission.tables import audit

UPTO = {"PinterestService": 1_000}
BOUNDED = project(cpu=10, pods=8)


@pytest.fixture
def connection(record: Books) -> Iterator[Connection]:
    with record.begin() as opened:
        yield opened


def ask(connection: Connection, number: int, name: str, footprint: Footprint | None, key: str = "") -> Kept:
    return one(connection, submission(number, name, key), rendered(BOUNDED, footprint, name))


def shown(connection: Connection, name: str, footprint: Footprint | None, revision: int = 1) -> None:
    ledger.settle(connection, CLUSTER, [Seen(place(name), footprint, revision)])


def held(connection: Connection, tier: str = "on-demand") -> dict[str, int]:
    return {name: each.pods for (_, name), each in ledger.held(connection, CLUSTER, "ads", tier).items()}


def test_what_is_accepted_is_on_record_takes_and_is_on_its_way(connection: Connection) -> None:
    kept = ask(connection, 1, "web", cores(3))
    assert (kept.state, held(connection)) == (State.ACCEPTED, {"web": 3})
    assert [each.submission.id for each in outbox.waiting(connection, CLUSTER)] == ["s-1"]
    assert record.named(connection, "ads", "s-1") == kept
    assert [each.act for each in connection.execute(audit.select())] == ["deploy: accepted by the desk"]


def test_who_is_seen_and_still_on_its_way_holds_it_once(connection: Connection) -> None:
    ask(connection, 1, "web", cores(5))
    shown(connection, "web", cores(5))
    assert ask(connection, 2, "crawl", cores(3)).state is State.ACCEPTED
    assert ask(connection, 3, "more", cores(1)).state is State.REFUSED


def test_a_refusal_says_the_numbers_who_holds_them_and_whom_to_ask(connection: Connection) -> None:
    for number, (name, size) in enumerate({"web": 3, "crawl": 4, "tiny": 1}.items()):
        ask(connection, number, name, cores(size))
    kept = ask(connection, 9, "more", cores(3))
    refused = kept.decisions[0].refusal()
    assert refused.text() == (
        "ads/more: more does not fit into what ads may use for on-demand work  [QuotaTooSmall]\n"
        "  processors: 3 asked for, 10 allowed, 8 taken by others, 2 left\n"
        "  pods: 3 asked for, 8 allowed, 8 taken by others, 0 left\n"
        "  most of the processors are held by crawl 4, web 3, tiny 1\n"
        "  next: scale down or delete what is not needed, or ask team-ads (#ads-oncall) for a larger quota"
    )
    # It is on record, takes nothing, and goes nowhere.
    assert record.named(connection, "ads", "s-9") == kept
    assert "more" not in held(connection)
    assert "s-9" not in [each.submission.id for each in outbox.waiting(connection, CLUSTER)]


def test_a_tier_that_is_not_named_is_closed(connection: Connection) -> None:
    kept = ask(connection, 1, "web", cores(1, "reserved"))
    assert "the quota of ads has nothing for reserved work" in kept.decisions[0].refusal().text()


def test_what_weighs_too_much_as_objects_is_refused_with_its_weight(connection: Connection) -> None:
    """Kubernetes does not count that; its store is everybody's."""
    owner = project(bytes="1Mi")

    def weighing(number: int, name: str, kibibytes: int) -> Kept:
        asked = Footprint("on-demand", pods=1, bytes=kibibytes * 1024)
        return one(connection, submission(number, name), rendered(owner, asked, name))

    weighing(1, "web", 700)
    refused = weighing(2, "batch", 400).decisions[0].refusal()
    assert held(connection) == {"web": 1}
    assert "bytes of objects: 400Ki asked for, 1Mi allowed, 700Ki taken by others, 324Ki left" in refused.text()


def test_without_a_project_nothing_is_bounded(connection: Connection) -> None:
    assert one(connection, submission(1), rendered(None, cores(1_000_000))).state is State.ACCEPTED


def test_who_asks_for_less_is_not_refused_however_much_is_taken(connection: Connection) -> None:
    shown(connection, "web", cores(30))
    assert ask(connection, 1, "web", cores(20)).state is State.ACCEPTED
    assert ask(connection, 2, "web", cores(31)).state is State.REFUSED
    assert ask(connection, 3, "new", cores(1)).state is State.REFUSED
    assert ask(connection, 4, "new", cores(0)).state is State.ACCEPTED


def test_who_is_on_the_way_down_may_stay_as_they_are(connection: Connection) -> None:
    shown(connection, "web", cores(8))
    ask(connection, 1, "web", cores(2))
    shown(connection, "crawl", cores(4))
    assert ask(connection, 2, "web", cores(7)).state is State.ACCEPTED


def test_what_shrinks_is_free_for_others_when_it_has_shrunk(connection: Connection) -> None:
    shown(connection, "web", cores(8), revision=5)
    asked = submission(1)
    ask(connection, 1, "web", cores(2))
    assert held(connection) == {"web": 8}
    outbox.delivered(connection, asked, NOW, Delivered({}, written=7))
    shown(connection, "web", cores(8), revision=6)  # an older sight
    assert held(connection) == {"web": 8}
    shown(connection, "web", cores(2), revision=7)
    assert held(connection) == {"web": 2}
    assert ledger.unsettled(connection, CLUSTER) == []


def test_an_older_sight_does_not_undo_what_was_written(connection: Connection) -> None:
    shown(connection, "web", cores(2), revision=5)
    ask(connection, 1, "web", cores(8))
    outbox.delivered(connection, submission(1), NOW, Delivered({}, written=7))
    shown(connection, "web", cores(2), revision=6)
    assert held(connection) == {"web": 8}
    # Nor does that of a desk which takes the shift, and lags behind.
    ledger.restore(connection, CLUSTER, [Seen(place("web"), cores(2), 6)], {"PinterestService": 6})
    assert held(connection) == {"web": 8}


def test_what_another_desk_has_told_is_not_told_again(connection: Connection) -> None:
    ask(connection, 1, "web", cores(1))
    outbox.delivered(connection, submission(1), NOW, Delivered({}, written=7))
    outbox.delivered(connection, submission(1), NOW, Delivered({}, written=9))
    outbox.returned(connection, submission(1), NOW, Refused(Problem(CLUSTER_REFUSED, "no")))
    kept = record.named(connection, "ads", "s-1")
    assert kept is not None
    assert (kept.state, held(connection)) == (State.DELIVERED, {"web": 1})
    shown(connection, "web", cores(1), revision=7)
    assert ledger.unsettled(connection, CLUSTER) == []


def test_what_the_platform_refuses_is_free_again(connection: Connection) -> None:
    shown(connection, "web", cores(1))
    ask(connection, 1, "web", cores(5))
    outbox.returned(connection, submission(1), NOW, Refused(Problem(CLUSTER_REFUSED, "no such field")))
    kept = record.named(connection, "ads", "s-1")
    assert kept is not None
    assert (kept.state, held(connection), outbox.waiting(connection, CLUSTER)) == (State.REFUSED, {"web": 1}, [])
    assert kept.decisions[-1].refusal().problems[0].what == "no such field"


def test_what_is_gone_holds_nothing(connection: Connection) -> None:
    shown(connection, "web", cores(5))
    ask(connection, 1, "web", None)
    outbox.delivered(connection, submission(1), NOW, Delivered(None))
    assert held(connection) == {"web": 5}
    shown(connection, "web", None, revision=2)
    assert held(connection) == {}


def test_all_that_is_seen_takes_the_place_of_all_that_was_known(connection: Connection) -> None:
    shown(connection, "gone", cores(1))
    ask(connection, 1, "written", cores(1))
    outbox.delivered(connection, submission(1, "written"), NOW, Delivered({}, written=1_000))
    ask(connection, 2, "waits", cores(2))
    ledger.restore(connection, CLUSTER, [Seen(place("by-hand"), cores(3), 0), Seen(place("ended"), NOTHING, 0)], UPTO)
    assert held(connection) == {"waits": 2, "by-hand": 3}


def test_the_same_key_is_answered_the_same(connection: Connection) -> None:
    first = ask(connection, 1, "web", cores(3), key="once")
    assert ask(connection, 2, "web", cores(3), key="once") == first
    assert held(connection) == {"web": 3}
    refused = ask(connection, 3, "more", cores(30), key="twice")
    shown(connection, "web", None)
    assert ask(connection, 4, "more", cores(30), key="twice") == refused


def test_the_same_key_with_something_else_is_refused(connection: Connection) -> None:
    ask(connection, 1, "web", cores(1), key="once")
    with pytest.raises(Refused, match="was sent with something else"):
        one(connection, submission(2, key="once", document="another"), rendered(BOUNDED, cores(1)))


def test_what_is_wrong_by_itself_is_on_record(connection: Connection) -> None:
    told = Refused(Problem(CLUSTER_REFUSED, "not like this"), Problem(CLUSTER_REFUSED, "nor like that"))
    (kept,) = refuse(connection, [submission(1, key="once")], {"s-1": told})
    assert kept.decisions[0].refusal().text() == told.text()
    assert refuse(connection, [submission(2, key="once")], {"s-2": told}) == [kept]


def test_what_waits_is_what_a_change_begins_from(connection: Connection) -> None:
    assert outbox.pending(connection, CLUSTER, "ads", "web") is None


def test_what_it_was_deployed_as_is_found_however_often_it_was_changed_since(connection: Connection) -> None:
    assert record.deployed(connection, "ads", "web") is None
    vouched = record.Vouched("1.0", "c0ffee", "ci", "ann", "{}")
    accept(connection, Proposal(submission(1), rendered(BOUNDED, cores(1)), vouched))
    accept(connection, Proposal(submission(2), rendered(BOUNDED, cores(1)), vouched._replace(version="2.0")))
    accept(connection, Proposal(submission(3), rendered(BOUNDED, cores(100)), vouched._replace(version="3.0")))
    outbox.returned(connection, submission(2), NOW, Refused(Problem(CLUSTER_REFUSED, "no")))
    for number in range(4, 9):
        accept(connection, Proposal(submission(number)._replace(verb="scale"), rendered(BOUNDED, cores(1))))
    found = record.deployed(connection, "ads", "web")
    assert found is not None
    kept, vouched = found[0], found[1] or vouched
    assert (kept.id, kept.verb, vouched.version) == ("s-1", "deploy", "1.0")
    accept(connection, Proposal(submission(9)._replace(verb="break-glass"), rendered(BOUNDED, cores(1))))
    found = record.deployed(connection, "ads", "web")
    assert found is not None
    assert (found[0].id, found[1]) == ("s-9", None)
