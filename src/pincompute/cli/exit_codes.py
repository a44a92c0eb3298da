"""Exit codes of `pin`, as of other programs: 0 for success, 1 for failure, and these."""

from __future__ import annotations

from pincompute.base.problem import Refused
from pincompute.base.reasons import TIMED_OUT, USAGE

FAILED = 1
WRONG_USAGE = 2
"""The command was called with wrong arguments, as click and most other programs report it."""
OUT_OF_TIME = 124
"""The time to wait is up, and the workload may still reach its goal; as of timeout(1)."""
INTERRUPTED = 130
"""128 plus the number of SIGINT, as shells report it."""


def exit_code(error: Exception) -> int:
    reasons = {each.reason for each in error.problems} if isinstance(error, Refused) else set()
    if TIMED_OUT in reasons:
        return OUT_OF_TIME
    return WRONG_USAGE if reasons == {USAGE} else FAILED
