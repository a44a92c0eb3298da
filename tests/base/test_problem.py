"""The three renderings of a Problem, and the registry of reasons."""

from __future__ import annotations

import pytest

from pincompute.base.problem import Problem, Refused, RulePart, Where, refuse_all
from pincompute.base.reasons import DOCUMENT_INVALID, PORT_IN_USE, REASONS, TIMED_OUT, find_reason
from pincompute.base.reasons.reason import FORMER_CODES, NO_ACTION

COMPLETE = Problem(
    DOCUMENT_INVALID,
    "there is no field 'imag'",
    Where(file="hello.yaml", line=7, field="spec.imag"),
    note="the fields here are image, port",
    next="did you mean image?",
)


def test_text_starts_with_the_location_and_ends_with_the_next_command() -> None:
    assert COMPLETE.text() == (
        "hello.yaml:7 spec.imag: there is no field 'imag'  [DocumentInvalid]\n"
        "  the fields here are image, port\n"
        "  next: did you mean image?"
    )


def test_text_without_location_is_one_line() -> None:
    assert Problem(PORT_IN_USE, "port 8080 is taken").text() == "port 8080 is taken  [PortInUse]"


def test_text_indents_every_line_of_the_note() -> None:
    assert Problem(PORT_IN_USE, "taken", note="one\ntwo").text().splitlines()[1:] == ["  one", "  two"]


def test_json_omits_empty_fields() -> None:
    assert Problem(PORT_IN_USE, "taken").json() == {"reason": "PortInUse", "detail": "taken"}
    assert COMPLETE.json()["where"] == {"file": "hello.yaml", "line": 7, "field": "spec.imag"}


def test_message_joins_what_and_note() -> None:
    assert COMPLETE.message() == "there is no field 'imag': the fields here are image, port"


def test_document_holds_all_problems_and_the_status_of_the_first() -> None:
    document = Refused(Problem(PORT_IN_USE, "one"), COMPLETE).json()
    assert document["status"] == 409
    assert [error["detail"] for error in document["errors"]] == ["one", "there is no field 'imag'"]


def test_refuse_all_raises_only_if_there_are_problems() -> None:
    refuse_all([])
    with pytest.raises(Refused) as refused:
        refuse_all(iter([COMPLETE]))
    assert refused.value.problems == (COMPLETE,)


def test_every_reason_has_a_camel_case_code_a_meaning_and_a_remedy() -> None:
    for code, reason in REASONS.items():
        assert code == reason.code
        assert code.isalnum()
        assert code[0].isupper()
        assert reason.meaning.endswith(".")
        assert reason.remedy


def test_reasons_without_an_error_need_no_action_or_offer_a_choice() -> None:
    for reason in REASONS.values():
        assert reason.is_problem == (reason.http_status >= 400), reason.code
        assert not reason.is_problem or reason.remedy != NO_ACTION, reason.code


def test_finds_a_reason_by_the_code_of_the_former_version() -> None:
    assert find_reason("NotInTime") is TIMED_OUT
    assert find_reason("NoSuchReason") is None
    assert set(FORMER_CODES.values()) <= REASONS.keys()
    assert REASONS.keys().isdisjoint(FORMER_CODES)


def test_reads_a_rule_that_the_former_version_recorded() -> None:
    recorded = {"reason": "PolicyDenied", "detail": "d", "because": {"says": "a > 1", "is": "1", "decided": True}}
    assert Problem.from_json(recorded).rule == RulePart("a > 1", "1")


def test_rule_reads_back_from_json() -> None:
    problem = COMPLETE._replace(rule=RulePart("a && b", "", True, (RulePart("a", "false"), RulePart("b", "", False))))
    assert Problem.from_json(problem.json()) == problem
