"""Label selectors of Kubernetes, and expressions about the labels of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pincompute.objects.content import Object


def selector_matches(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects these labels. An empty selector selects everything."""
    required = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in required.items()) and all(
        expression_matches(each, labels) for each in selector.get("matchExpressions") or ()
    )


def expression_matches(expression: Object, labels: Mapping[str, str]) -> bool:
    """Whether one of the `matchExpressions` is true. `Gt` and `Lt` occur in expressions about nodes only."""
    value, values = labels.get(expression["key"]), expression.get("values", [])
    operators: dict[str, Callable[[], bool]] = {
        "In": lambda: value in values,
        "NotIn": lambda: value not in values,
        "Exists": lambda: value is not None,
        "DoesNotExist": lambda: value is None,
        "Gt": lambda: value is not None and value.isdigit() and int(value) > int(values[0]),
        "Lt": lambda: value is not None and value.isdigit() and int(value) < int(values[0]),
    }
    return operators[expression["operator"]]()
