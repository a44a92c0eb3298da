"""The output of `pin project`."""

from __future__ import annotations

from datetime import UTC, datetime

from pincompute.api.membership import ProjectRole, ReviewMode
from pincompute.api.project_view import (
    ActiveOverride,
    PendingSubmission,
    PolicyView,
    ProjectView,
    QuotaConsumer,
    ResourceUsage,
    TierUsage,
    UnfinishedWorkload,
)
from pincompute.cli.project import MAX_LISTED, format_project

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
PROCESSORS = ResourceUsage(
    resource="processors", used="3", limit="40", remaining="37", used_share=3 / 40,
    largest_consumers=[
        QuotaConsumer(name="web", kind="PinterestService", usage="2"),
        QuotaConsumer(name="api", kind="PinterestService", usage="1"),
    ],
)  # fmt: skip
ADS = ProjectView(
    project="ads", owner="team-ads", contact="#ads", cost_centre="4711", review=ReviewMode.LANDED,
    members={ProjectRole.OWNER: ["ann"], ProjectRole.DEPLOYER: ["group ads", "program ci"]}, builders=["jenkins"],
    quota=[
        TierUsage(tier="on-demand", usages=[
            PROCESSORS,
            ResourceUsage(resource="pods", used="12", limit="10", remaining="0", used_share=1.2),
            ResourceUsage(resource="memory", used="2Gi"),
        ]),
        TierUsage(tier="preemptible"),
    ],
    workload_counts={"PinterestJobSet": 1, "PinterestService": 2},
    overrides=[ActiveOverride(name="web", kind="PinterestService", until="2026-01-31T12:00:00Z", by="ann",
                              because="INC-1", overdue=True)],
    unfinished=[UnfinishedWorkload(name="api", kind="PinterestService", reason="CrashLoop", message="it crashes",
                                   failed=True)],
    policies=[
        PolicyView(name="small", message="8 at most", platform_wide=True),
        PolicyView(name="two-replicas", message="two at least", errors=["at character 3 of the rule: unknown field"]),
    ],
    pending_submissions=[
        PendingSubmission(id="s-1", name="web", kind="PinterestService", verb="deploy", caller="ann", attempts=3,
                          accepted_at="2026-01-31T11:56:48Z", last_delivery_error="the cluster does not answer"),
        PendingSubmission(id="s-2", name="api", kind="PinterestService", verb="scale", caller="bob",
                          accepted_at="2026-01-31T11:59:59Z"),
    ],
)  # fmt: skip

OUTPUT = """\
ads  owner team-ads (#ads), accepts only reviewed and landed builds, cost centre 4711
  owner      ann
  deployer   group ads, program ci
  builders   jenkins
  policy     small (platform): 8 at most
  policy     two-replicas: two at least
             invalid, rejects every workload: at character 3 of the rule: unknown field

  on-demand    processors    ██░░░░░░░░░░░░░░░░░░  3 of 40 used, 37 left  largest: web 2, api 1
  on-demand    pods          ████████████████████  12 of 10 used, 0 left
  on-demand    memory                              2Gi used, unlimited
  preemptible  nothing used

  workloads  1 JobSet, 2 Service
  override   web  unreviewed until 2026-01-31T12:00:00Z (expired) by ann: INC-1
  pending    web  deploy by ann, accepted 3m12s ago: the cluster does not answer
  pending    api  scale by bob, accepted 1s ago
  unfinished api  it crashes  [CrashLoop]
"""


def test_draws_bars_on_a_terminal() -> None:
    assert format_project(ADS, NOW, bars=True) == OUTPUT


def test_draws_no_bars_in_a_pipe() -> None:
    output = format_project(ADS, NOW, bars=False)
    assert "█" not in output
    assert "3 of 40 used, 37 left" in output


def test_small_usage_fills_one_cell_and_long_lists_are_cut() -> None:
    usage = ResourceUsage(resource="pods", used="1", limit="10000", remaining="9999", used_share=1 / 10000)
    unfinished = [
        UnfinishedWorkload(name=f"w{each}", kind="", reason="Progressing", message="", failed=False)
        for each in range(50)
    ]
    view = ProjectView(project="ads", quota=[TierUsage(tier="reserved", usages=[usage])], unfinished=unfinished)
    output = format_project(view, NOW, bars=True)
    assert "█░░░░░░░░░░░░░░░░░░░" in output
    assert f"and {50 - MAX_LISTED} more        next: pin get --project ads" in output


def test_expiry_of_a_project_is_shown() -> None:
    end = "2026-01-31T12:00:00Z"
    soon, over = ProjectView(project="ads", expires=end), ProjectView(project="ads", expires=end, expired=True)
    assert f"  expires    {end}: its workloads are stopped then" in format_project(soon, NOW, bars=False)
    assert f"  expired    {end}: its workloads are stopped\n" in format_project(over, NOW, bars=False)
