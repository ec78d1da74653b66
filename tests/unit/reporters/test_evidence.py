import pytest

from ci_eval.records.cases import Json, Status
from ci_eval.records.results import InvocationScore, Score
from ci_eval.reporters._evidence import Exhibit, different_calls, exhibits_of, wrapped
from ci_eval.run_files.times import moment


def told(
    *evidence: dict[str, Json] | None, status: Status = Status.FAILED, lines: int = 40
) -> list[Exhibit]:
    score = Score(
        criterion="c",
        name="c",
        status=Status.FAILED,
        value=0.1,
        invocations=tuple(InvocationScore(status=status, value=0.1, evidence=e) for e in evidence),
    )
    return list(exhibits_of(score, max_lines=lines))


def calls(*names: str, **args: Json) -> list[Json]:
    return [{"name": name, "args": args} for name in names]


def diff(evidence: dict[str, Json]) -> tuple[str, ...]:
    (exhibit,) = told(evidence)
    assert exhibit.kind == "diff"
    return exhibit.lines


def test_tool_calls_are_compared_one_by_one() -> None:
    assert diff(
        {
            "expected_tool_calls": calls("find", "refund", "mail"),
            "actual_tool_calls": calls("find", "mail", "mail"),
        }
    ) == ("  find()", "- refund()", "  mail()", "+ mail()")


def test_calls_without_arguments_are_no_calls_with_none() -> None:
    assert diff(
        {
            "expected_tool_calls": [{"name": "find", "args": None}, {"name": None}],
            "actual_tool_calls": [{"name": "find", "args": {}}, {"name": "f", "args": [1]}],
        }
    ) == ("- find", "- None", "+ find()", "+ f([1])")


def test_an_argument_of_a_long_call_has_a_line_of_its_own() -> None:
    assert diff(
        {
            "expected_tool_calls": calls("f", a="x" * 60, b="y" * 60, c=1),
            "actual_tool_calls": calls("f", a="x" * 60, b="y" * 60, c=2),
        }
    ) == (
        "  …",
        '      a="' + "x" * 60 + '",',
        '      b="' + "y" * 60 + '",',
        "-     c=1,",
        "+     c=2,",
        "  )",
    )


def test_no_calls_at_all_are_shown_as_such() -> None:
    assert diff({"expected_tool_calls": [], "actual_tool_calls": calls("f")}) == (
        "- (no tool calls)",
        "+ f()",
    )


@pytest.mark.parametrize("odd", ["f(1)", [1, 2], {"name": "f"}])
def test_calls_of_an_unknown_shape_are_shown_as_they_are(odd: Json) -> None:
    lines = diff({"expected_tool_calls": odd, "actual_tool_calls": calls("f")})
    assert lines[0].startswith("- ")
    assert lines[-1] == "+ f()"


def test_texts_are_compared_line_by_line() -> None:
    assert diff({"expected": "one\ntwo", "actual": "one\nthree"}) == ("  one", "- two", "+ three")
    assert diff({"expected": "one", "actual": ""}) == ("- one", "+ (empty)")
    assert diff({"expected": "one"}) == ("- one",)


def test_a_response_without_an_expected_one_is_shown_as_text() -> None:
    assert told({"actual": {"a": 1}}) == [Exhibit("Actual response", "text", ('{"a": 1}',))]


def test_what_is_equal_is_not_shown() -> None:
    assert told({"expected": "one", "actual": "one"}) == []
    assert told({"expected_tool_calls": [], "actual_tool_calls": []}) == []


def test_a_difference_is_found_however_late() -> None:
    same = "word " * 200_000
    lines = diff({"expected": f"{same}old", "actual": f"{same}new"})
    assert len(lines) < 10
    assert any(line.startswith("- ") and line.endswith("old") for line in lines)
    assert any(line.startswith("+ ") and line.endswith("new") for line in lines)


def test_other_evidence_is_text_or_data() -> None:
    rationale, votes, nothing = told(
        {"rationale": "too short", "rubric_votes": ["yes", "no"], "label": None}
    )
    assert rationale == Exhibit("Rationale", "text", ("too short",))
    assert votes == Exhibit("Rubric votes", "data", ('["yes", "no"]',))
    assert nothing == Exhibit("Label", "data", ("null",))


def test_only_tool_calls_are_compared_as_such_whatever_else_is_called() -> None:
    (exhibit,) = told({"tool_calls_made": "+ find()"})
    assert (exhibit.title, different_calls(exhibit)) == ("Tool calls made", [])


def test_data_that_is_long_or_deep_is_shortened() -> None:
    deep: Json = "x"
    for _ in range(500):
        deep = [deep]
    (data,) = told(
        {"data": {"deep": deep, "many": list(range(1_000)), "long": "y" * 10_000}}, lines=300
    )
    text = "\n".join(data.lines)
    assert '"…"' in text
    assert "… 1,000 in all" in text
    assert "(10,000 characters" in text
    (wide,) = told({"wide": {f"k{n}": n for n in range(1_000)}}, lines=300)
    assert any("1,000 in all" in line for line in wide.lines)


def test_many_calls_and_arguments_are_counted() -> None:
    (exhibit,) = told(
        {
            "expected_tool_calls": [],
            "actual_tool_calls": [
                {"name": "f", "args": {f"{n}": "z" * 300 for n in range(60)}},
                *calls(*"g" * 59),
            ],
        },
        lines=300,
    )
    text = "\n".join(exhibit.lines)
    assert "… 60 in all" in text
    assert "… 60 tool calls in all" in text
    assert max(map(len, exhibit.lines)) < 210


def test_only_what_did_not_pass_is_shown_and_of_many_invocations_the_first() -> None:
    evidence: dict[str, Json] = {"rationale": "r"}
    assert told(evidence, None, status=Status.PASSED) == []
    titles = [exhibit.title for exhibit in told(None, evidence, evidence, evidence, evidence)]
    assert titles == [f"Rationale, invocation {n} of 5" for n in (2, 3, 4)]


def test_a_long_exhibit_is_cut_between_lines() -> None:
    (exhibit,) = told({"rationale": "\n".join("abcdefghij")}, lines=3)
    assert exhibit.lines == ("a", "b", "c", "  … more in run.json")


def test_a_very_long_text_says_how_much_is_left_out() -> None:
    assert wrapped("") == []
    assert wrapped("x " * 15_000)[-1] == "… 10,000 more characters"


def test_times_are_read_in_any_zone() -> None:
    assert str(moment("2026-03-04T05:06:07+02:00")) == "2026-03-04 03:06:07+00:00"
    assert str(moment("2026-03-04T05:06:07")) == "2026-03-04 05:06:07+00:00"
    assert moment("yesterday") is None


# --- Of the whole -----------------------------------------------------------------------------


def whole(evidence: dict[str, Json] | None, *parts: dict[str, Json], lines: int = 40) -> list[str]:
    """Return the titles of what is shown of a score with evidence of the whole."""
    score = Score(
        criterion="c",
        name="c",
        status=Status.FAILED,
        value=0.1,
        evidence=evidence,
        invocations=tuple(
            InvocationScore(status=Status.FAILED, value=0.1, evidence=part) for part in parts
        ),
    )
    return [exhibit.title for exhibit in exhibits_of(score, max_lines=lines)]


def test_evidence_of_the_whole_comes_before_that_of_invocations_and_has_no_place() -> None:
    assert whole({"missing": "x", "labels": [1]}) == ["Missing", "Labels"]
    assert whole({"missing": "x"}, {"rationale": "a"}, {"rationale": "b"}) == [
        "Missing",
        "Rationale, invocation 1 of 2",
        "Rationale, invocation 2 of 2",
    ]
    assert whole({"missing": "x"}, {"rationale": "a"}) == ["Missing", "Rationale"]
    assert whole(None, {"rationale": "a"}) == ["Rationale"]


def test_evidence_of_the_whole_is_compared_and_cut_like_any_other() -> None:
    score = Score(
        criterion="c",
        name="c",
        status=Status.FAILED,
        value=0.1,
        evidence={
            "expected_tool_calls": calls("find", "mail"),
            "actual_tool_calls": calls("find"),
            "expected": "same",
            "actual": "same",
            "missing": "\n".join("abcdefghij"),
        },
    )
    differ, missing = exhibits_of(score, max_lines=3)
    assert differ == Exhibit("Tool calls", "diff", ("  find()", "- mail()"), "tool calls")
    assert missing.lines == ("a", "b", "c", "  … more in run.json")
