"""A Problem's three renderings, compared letter by letter."""

from __future__ import annotations

import pytest

from pincompute.base.problem import Problem, Refused, Where, refuse_all
from pincompute.base.reasons import DOCUMENT_INVALID, PORT_IN_USE, REASONS

WHOLE = Problem(
    DOCUMENT_INVALID,
    "there is no field 'imag'",
    Where(file="hello.yaml", line=7, field="spec.imag"),
    note="the fields here are image, port",
    next="did you mean image?",
)


def test_text_names_the_place_first_and_what_to_type_last() -> None:
    assert WHOLE.text() == (
        "hello.yaml:7 spec.imag: there is no field 'imag'  [DocumentInvalid]\n"
        "  the fields here are image, port\n"
        "  next: did you mean image?"
    )


def test_a_problem_without_a_place_is_one_line() -> None:
    assert Problem(PORT_IN_USE, "port 8080 is taken").text() == "port 8080 is taken  [PortInUse]"


def test_every_line_of_a_note_is_indented() -> None:
    assert Problem(PORT_IN_USE, "taken", note="one\ntwo").text().splitlines()[1:] == ["  one", "  two"]


def test_json_leaves_out_what_is_empty() -> None:
    assert Problem(PORT_IN_USE, "taken").json() == {"reason": "PortInUse", "detail": "taken"}
    assert WHOLE.json()["where"] == {"file": "hello.yaml", "line": 7, "field": "spec.imag"}


def test_message_is_for_a_condition() -> None:
    assert WHOLE.message() == "there is no field 'imag': the fields here are image, port"


def test_problem_json_holds_them_all_and_takes_the_status_of_the_first() -> None:
    document = Refused(Problem(PORT_IN_USE, "one"), WHOLE).json()
    assert document["status"] == 409
    assert [error["detail"] for error in document["errors"]] == ["one", "there is no field 'imag'"]


def test_refuse_all_goes_on_when_there_is_nothing() -> None:
    refuse_all([])
    with pytest.raises(Refused) as refused:
        refuse_all(iter([WHOLE]))
    assert refused.value.problems == (WHOLE,)


def test_every_reason_is_camel_case_and_says_what_to_do() -> None:
    for code, reason in REASONS.items():
        assert code == reason.code
        assert code.isalnum()
        assert code[0].isupper()
        assert reason.means.endswith(".")
        assert reason.mend
