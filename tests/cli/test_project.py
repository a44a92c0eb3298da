"""A project as a person sees it."""

from __future__ import annotations

from datetime import UTC, datetime

from pincompute.api.membership import Review, Role
from pincompute.api.tenancy import Held, Holder, Kept, OnItsWay, Tenancy, TierUse, Unreviewed, Waiting
from pincompute.cli.project import SHOWN, portrait

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
ADS = Tenancy(
    project="ads", owner="team-ads", contact="#ads", cost_centre="4711", review=Review.LANDED,
    members={Role.OWNER: ["ann"], Role.DEPLOYER: ["group ads", "program ci"]}, builders=["jenkins"],
    quota=[
        TierUse(tier="on-demand", held=[
            Held(thing="processors", used="3", limit="40", left="37", share=3 / 40, most=[
                Holder(name="web", kind="PinterestService", holds="2"),
                Holder(name="api", kind="PinterestService", holds="1"),
            ]),
            Held(thing="pods", used="12", limit="10", left="0", share=1.2),
            Held(thing="memory", used="2Gi"),
        ]),
        TierUse(tier="preemptible"),
    ],
    kinds={"PinterestJobSet": 1, "PinterestService": 2},
    glass=[Unreviewed(name="web", kind="PinterestService", until="2026-01-31T12:00:00Z", by="ann",
                      because="INC-1", overdue=True)],
    waiting=[Waiting(name="api", kind="PinterestService", reason="CrashLoop", message="it crashes", failed=True)],
    policies=[
        Kept(name="small", message="8 at most", of_platform=True),
        Kept(name="two-copies", message="two at least", slips=["at character 3 of the rule: what is that?"]),
    ],
    on_their_way=[
        OnItsWay(id="s-1", name="web", kind="PinterestService", verb="deploy", at="2026-01-31T11:56:48Z", who="ann",
                 attempts=3, waits="the cluster does not answer"),
        OnItsWay(id="s-2", name="api", kind="PinterestService", verb="scale", at="2026-01-31T11:59:59Z", who="bob"),
    ],
)  # fmt: skip

PICTURE = """\
ads  of team-ads (#ads), takes only what was reviewed and landed; 4711 pays
  owner      ann
  deployer   group ads, program ci
  builders   jenkins
  policy     small of the platform: 8 at most
  policy     two-copies: two at least
             lets nothing in: at character 3 of the rule: what is that?

  on-demand    processors    ██░░░░░░░░░░░░░░░░░░  3 of 40 used, 37 left  most by web 2, api 1
  on-demand    pods          ████████████████████  12 of 10 used, 0 left
  on-demand    memory                              2Gi used, not bounded
  preemptible  nothing used

  runs       1 JobSet, 2 Service
  glass      web is not reviewed, until 2026-01-31T12:00:00Z, which is over: ann: INC-1
  on its way web  deploy by ann, accepted 3m12s ago: the cluster does not answer
  on its way api  scale by bob, accepted 1s ago
  waiting    api  it crashes  [CrashLoop]
"""


def test_a_terminal_gets_bars() -> None:
    assert portrait(ADS, NOW, bars=True) == PICTURE


def test_a_pipe_gets_none() -> None:
    told = portrait(ADS, NOW, bars=False)
    assert "█" not in told
    assert "3 of 40 used, 37 left" in told


def test_who_uses_little_uses_something_and_who_waits_is_counted() -> None:
    little = Held(thing="pods", used="1", limit="10000", left="9999", share=1 / 10000)
    waiting = [Waiting(name=f"w{each}", kind="", reason="Progressing", message="", failed=False) for each in range(50)]
    quota = [TierUse(tier="reserved", held=[little])]
    told = portrait(Tenancy(project="ads", quota=quota, waiting=waiting), NOW, bars=True)
    assert "█░░░░░░░░░░░░░░░░░░░" in told
    assert f"and {50 - SHOWN} more        next: pin get --project ads" in told
