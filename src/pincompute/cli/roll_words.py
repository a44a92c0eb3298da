"""What is said of a roll in more than one place."""

from __future__ import annotations

from pincompute.planning.runtimes.roll import RollPlan


def head(planned: RollPlan) -> str:
    after = f" after {planned.before}" if planned.before else ""
    return f"Runtime {planned.number}{after}: {', '.join(planned.parts) or 'the same parts'}"


def lasting(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    words = ((hours, "h"), (minutes, "min"), (rest, "s"))
    return " ".join(f"{each} {unit}" for each, unit in words if each) or "0 s"
