from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from junitparser import JUnitXml
from lxml import etree
from support.report_language import compared, compared_in_full, make_report, make_results, streamed

from ci_eval.records.cases import Json, Status
from ci_eval.records.comparisons import CaseChange
from ci_eval.records.findings import Report, Verdict
from ci_eval.records.results import InvocationScore, Score, Tier, TrialResult
from ci_eval.records.trials import Failure, TrialKey
from ci_eval.reporters.junit import MANY, JUnit

SCHEMAS = Path(__file__).parents[2] / "schemas"
TEXT = (
    "greets pass 0.9 was 0.9 / refunds fail 0.2 was 0.95 / cancels fail 0.1 was 0.1 / "
    "tracks error / asks skip"
)


def written(report: Report, results: Sequence[TrialResult], **options: str) -> str:
    return "".join(JUnit.model_validate(options).render(report, streamed(results)))


def parsed(report: Report, results: Sequence[TrialResult], **options: str) -> etree._Element:
    return etree.fromstring(written(report, results, **options).encode())


def case(
    name: str = "a",
    *,
    agent: str = "support",
    evalset: str = "smoke",
    repeat: int = 0,
    status: Status = Status.PASSED,
    **more: object,
) -> TrialResult:
    key = TrialKey(agent=agent, evalset=evalset, case=name, repeat=repeat)
    return TrialResult.model_validate({"key": key, "status": status, **more})


@pytest.mark.parametrize("schema", ["junit-10.xsd", "windyroad-junit.xsd"])
@pytest.mark.parametrize("text", [TEXT, "greets pass 1.0", "greets error", "greets skip"])
def test_the_strict_profile_is_valid_everywhere(schema: str, text: str) -> None:
    document = parsed(make_report(text), make_results(text), profile="strict")
    etree.XMLSchema(etree.parse(SCHEMAS / schema)).assertValid(document)


def test_the_default_profile_says_where_a_case_is_and_what_it_scored() -> None:
    case = parsed(make_report(TEXT), make_results(TEXT)).find(".//testcase[@name='refunds']")
    assert case is not None
    assert (case.get("file"), case.get("line")) == ("evals/smoke.evalset.json", "20")
    score = case.find("properties/property")
    assert score is not None
    assert score.items() == [("name", "score.quality"), ("value", "0.2")]


def test_a_reader_gets_the_same_numbers() -> None:
    document = JUnitXml.fromstring(written(make_report(TEXT), make_results(TEXT)).encode())
    (suite,) = document
    stated = (suite.tests, suite.failures, suite.errors, suite.skipped, suite.time)
    suite.update_statistics()  # type: ignore[no-untyped-call]  # junitparser has none for it
    assert stated == (suite.tests, suite.failures, suite.errors, suite.skipped, suite.time)
    assert stated == (5, 2, 1, 1, 6.25)
    (failure,) = next(each for each in suite if each.name == "refunds").result
    assert failure.type == "ci_eval.Regression"
    assert failure.message == (
        "quality regressed from 0.950 to 0.200: 3 of 3 trials fail, 0 of 15 in the baseline"
    )
    assert "- I have refunded 20 euros" in failure.text


def test_each_evalset_with_each_agent_is_a_suite_even_where_results_alternate() -> None:
    places = [("a", "x"), ("b", "x"), ("a", "x"), ("a", "y"), ("b", "x")]
    results = [
        case(f"c{number}", agent=agent, evalset=evalset)
        for number, (agent, evalset) in enumerate(places)
    ]
    ordered = sorted(results, key=lambda result: (result.key.evalset, result.key.agent))
    report = make_report("greets pass 1.0")
    for document in (parsed(report, results), parsed(report, ordered)):
        found = {
            suite.get("name"): [each.get("name") for each in suite.iter("testcase")]
            for suite in document
        }
        assert found == {"shop.a.x": ["c0", "c2"], "shop.b.x": ["c1", "c4"], "shop.a.y": ["c3"]}
        assert [suite.get("id") for suite in document] == ["0", "1", "2"]
        assert [suite.get("tests") for suite in document] == ["2", "2", "1"]


def test_results_are_not_held() -> None:
    living = 0

    class Counted(TrialResult):
        def __del__(self) -> None:
            nonlocal living
            living -= 1

    def results() -> Iterator[TrialResult]:
        nonlocal living
        for number in range(5_000):
            living += 1
            yield Counted.model_validate(case(f"c{number}"), from_attributes=True)

    most = 0
    for _ in JUnit().render(make_report("greets pass 1.0"), results):
        most = max(most, living)
    assert most < 5


def test_repeats_are_test_cases_of_their_own() -> None:
    report = make_report("greets pass 1.0")
    report = report.model_copy(update={"meta": report.meta.model_copy(update={"repeats": 2})})
    document = parsed(report, [case(repeat=0), case(repeat=1)])
    assert [each.get("name") for each in document.iter("testcase")] == [
        "a [repeat 1]",
        "a [repeat 2]",
    ]


def test_names_stay_different_when_they_have_to_be_changed() -> None:
    names = [
        "a b",
        "a  b",
        "a\nb",
        "a\x00b",
        "a\x01b",
        "x" * 500 + "1",
        "x" * 500 + "2",
        "",
        "\ud800",
    ]
    document = parsed(make_report("greets pass 1.0"), [case(name) for name in names])
    found = [each.get("name") for each in document.iter("testcase")]
    assert found[0] == "a b"
    assert len(set(found)) == len(names)
    assert all(len(name or "") < 512 for name in found)


def test_a_failure_that_does_not_block_says_so() -> None:
    document = parsed(make_report(TEXT), make_results(TEXT))
    failure = document.find(".//testcase[@name='cancels']/failure")
    assert failure is not None
    assert failure.get("type") == "ci_eval.BelowThreshold"
    assert (
        failure.get("message")
        == "quality is 0.100, below 0.8 (does not block: only getting worse does)"
    )
    failure = parsed(make_report("a fail 0.1"), make_results("a fail 0.1")).find(".//failure")
    assert failure is not None
    assert failure.get("message") == "quality is 0.100, below 0.8"


def scored(value: float, status: Status = Status.PASSED, **more: object) -> Score:
    return Score.model_validate(
        {
            "criterion": "c",
            "name": "quality",
            "status": status,
            "value": value,
            "threshold": 0.5,
            **more,
        }
    )


def dropped(report: Report, *, mode: str = "regression") -> Report:
    comparison = report.comparison
    assert comparison
    change = comparison.changes[0].model_copy(update={"change": "dropped"})
    return report.model_copy(
        update={
            "comparison": comparison.model_copy(update={"changes": (change,)}),
            "verdict": report.verdict.model_copy(
                update={"mode": mode, "by_threshold": mode != "regression"}
            ),
        }
    )


def test_a_regression_above_the_threshold_is_a_failure_of_the_repeats_that_show_it() -> None:
    report = dropped(make_report("refunds fail 0.2 was 0.95"))
    results = [
        case("refunds", scores=(scored(0.6),)),
        case("refunds", repeat=1, scores=(scored(0.95),)),
        case("refunds", repeat=2, scores=(scored(0.99, better="lower"),)),
        case("refunds", repeat=3),
    ]
    failures = [each.find("failure") for each in parsed(report, results).iter("testcase")]
    assert [failure is not None for failure in failures] == [True, False, True, False]
    assert failures[0] is not None
    told = "quality regressed from 0.950 to 0.200 (this trial: 0.600): "
    assert failures[0].get("message", "").startswith(told)
    assert failures[0].text == "quality: 0.600, threshold >= 0.5, baseline 0.950"
    assert "ci_eval.Regression" not in written(dropped(report, mode="threshold"), results)


def test_a_suspected_trial_says_so_and_one_that_noise_fails_does_not() -> None:
    text = "a fail 0.2 was 0.9 maybe / b fail 0.2 was 0.9 noise"
    found = [
        failure.get("message")
        for failure in parsed(make_report(text), make_results(text)).iter("failure")
    ]
    assert found == [
        (
            "quality is 0.200, below 0.8; possible regression: "
            "3 of 3 trials fail, 0 of 15 in the baseline"
        ),
        "quality is 0.200, below 0.8 (does not block: only getting worse does)",
    ]


def test_the_comparison_is_in_the_properties_of_the_suite() -> None:
    report = compared_in_full(make_report("refunds fail 0.2 was 0.9"))
    suite = parsed(report, make_results("refunds fail 0.2 was 0.9")).find("testsuite/properties")
    assert suite is not None
    told = {each.get("name"): each.get("value") for each in suite}
    assert (
        told.items()
        >= {
            "baseline.commit": "fedcba9876543210fedcba9876543210fedcba98",
            "baseline.run": "run-1",
            "baseline.runs": "2",
            "baseline.distance": "3",
            "rounds": "2",
            "confirming": "4",
            "loosened.1": "gate.max_drop: 0.02 → 0.1",
            "change.quality": "regressed",
            "p_value.quality": "0.004",
            "level.quality": "0.005",
            "effect.tone": "-0.1",
            "interval.tone": "-0.25 to 0.05",
            "tier.tone": "warn",
        }.items()
    )
    assert "tier.quality" not in told


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_whatever_a_comparison_says_the_document_is_read(text: str) -> None:
    report = compared(
        compared_in_full(make_report("a pass 0.9 was 0.9")),
        loosened=(text,),
        baseline_runs=(text,),
        baseline_commit=text,
        baseline_branch=text,
    )
    document = parsed(report, make_results("a pass 0.9"))
    assert len(document.findall("testsuite/testcase")) == 1


def test_trials_that_were_drawn_again_have_names_of_their_own() -> None:
    results = [case("a"), case("a", repeat=1, round=1), case("a", repeat=2, confirms=True)]
    found = [*parsed(make_report("a pass 1.0"), results).iter("testcase")]
    assert [each.get("name") for each in found] == ["a", "a [repeat 2]", "a [repeat 3]"]
    assert [each.items() for each in found[1].iter("property")] == [
        [("name", "round"), ("value", "1")]
    ]
    assert [each.items() for each in found[2].iter("property")] == [
        [("name", "confirms"), ("value", "true")]
    ]


def test_what_has_no_number_is_no_regression() -> None:
    report = make_report("refunds fail 0.2 was 0.95")
    comparison = report.comparison
    assert comparison
    change: CaseChange = comparison.changes[0].model_copy(
        update={"change": "dropped", "baseline": None, "value": None}
    )
    report = report.model_copy(
        update={"comparison": comparison.model_copy(update={"changes": (change,)})}
    )
    document = written(report, [case("refunds", scores=(scored(0.6),))])
    assert "ci_eval.Regression" not in document


@pytest.mark.parametrize(
    ("outcome", "severity", "kind"),
    [("failed", "blocks", "failure"), ("incomplete", "incomplete", "error")],
)
def test_a_run_that_does_not_pass_has_a_test_case_that_says_so(
    outcome: str, severity: str, kind: str
) -> None:
    report = make_report("greets pass 1.0")
    reasons = [
        {"severity": severity, "message": "gone: <case> 'a'"},
        {"severity": "warns", "message": "else"},
    ]
    verdict = Verdict.model_validate({"outcome": outcome, "mode": "regression", "reasons": reasons})
    report = report.model_copy(update={"verdict": verdict})
    for schema in ("junit-10.xsd", "windyroad-junit.xsd"):
        document = parsed(report, make_results("greets pass 1.0"), profile="strict")
        etree.XMLSchema(etree.parse(SCHEMAS / schema)).assertValid(document)
    (found,) = document.iterfind(f"testsuite[2]/testcase/{kind}")
    assert (found.get("message"), found.text) == ("gone: <case> 'a'", "gone: <case> 'a'")
    (suite,) = document.iterfind(f"testsuite[@{kind}s='1']")
    assert suite.get("tests") == "1"

    failing = make_results("greets fail 0.1")
    assert len(parsed(report, failing).findall("testsuite")) == 1


def test_a_failure_that_is_exempt_does_not_stand_for_the_verdict() -> None:
    report = make_report("refunds fail 0.2 was 0.95")
    reasons = [{"severity": "blocks", "message": "gone: case 'a'"}]
    verdict = Verdict.model_validate(
        {"outcome": "failed", "mode": "regression", "reasons": reasons}
    )
    assert report.comparison
    change = report.comparison.changes[0].model_copy(update={"excused": "quarantined"})
    report = compared(report, changes=(change,)).model_copy(update={"verdict": verdict})

    document = parsed(report, make_results("refunds fail 0.2"))

    exempt, why = (each.get("message") for each in document.iterfind("*/testcase/failure"))
    assert str(exempt).endswith(" (quarantined: does not block)")
    assert why == "gone: case 'a'"


def test_an_error_says_what_could_not_be_measured() -> None:
    judge = Score(
        criterion="c", name="judged", status=Status.ERROR, threshold=0.5, reason="no answer"
    )
    results = [
        case("a", status=Status.ERROR, error=Failure(kind="crash", message="line 1\nline 2")),
        case("b", status=Status.ERROR, scores=(judge, scored(0.1, Status.FAILED, better="lower"))),
        case("c", status=Status.FAILED),
    ]
    crash, judged, bare = parsed(make_report("greets pass 1.0"), results).iter("error", "failure")
    assert (crash.get("type"), crash.get("message")) == ("ci_eval.crash", "line 1 line 2")
    assert crash.text == "crash: line 1\nline 2"
    assert judged.get("type") == "ci_eval.NotMeasured"
    assert judged.get("message") == "judged could not be measured: no answer"
    assert judged.text == (
        "judged: error, threshold >= 0.5\n  no answer\nquality: 0.100, threshold <= 0.5"
    )
    assert bare.get("message") == "no reason given"


@pytest.mark.parametrize(("tier", "failures"), [("block", 1), ("warn", 0), ("inform", 0)])
def test_only_criteria_that_can_block_fail_a_test(tier: Tier, failures: int) -> None:
    report = make_report("greets pass 1.0")
    facts = {
        name: each.model_copy(update={"tier": tier}) for name, each in report.meta.criteria.items()
    }
    report = report.model_copy(
        update={"meta": report.meta.model_copy(update={"criteria": facts}), "comparison": None}
    )

    assert len(parsed(report, make_results("greets fail 0.1")).findall(".//failure")) == failures


def test_several_criteria_are_counted() -> None:
    scores = (
        scored(0.1, Status.FAILED, better="lower"),
        scored(0.2, Status.FAILED, threshold=None),
    )
    failure = parsed(
        make_report("greets pass 1.0"), [case(status=Status.FAILED, scores=scores)]
    ).find(".//failure")
    assert failure is not None
    assert failure.get("message") == "quality is 0.100, above 0.5; 1 more criterion"


def test_a_failure_names_its_page_if_the_address_is_known() -> None:
    report, results = make_report("a/b fail 0.2"), make_results("a/b fail 0.2")
    assert "Report:" not in written(report, results)
    page = "https://ci.example/job/7/report.html"
    meta = report.meta.model_copy(update={"page_url": page})
    suite = parsed(report.model_copy(update={"meta": meta}), results).find("testsuite")
    assert f"Report: {page}#case=support%2Fsmoke%2Fa%252Fb" in suite.findtext("testcase/failure")
    assert suite.find("properties/property[@name='report']").get("value") == page


def test_a_retried_trial_says_so() -> None:
    assert '<property name="attempts" value="2"/>' in written(
        make_report("greets pass 1.0"), [case(attempts=2)]
    )


def test_what_is_unknown_is_left_out() -> None:
    report = make_report("greets pass 1.0")
    meta = report.meta.model_copy(update={"created": "yesterday", "commit": None, "suite": ""})
    document = parsed(
        report.model_copy(update={"meta": meta}), [case(evalset="unknown")], profile="strict"
    )
    etree.XMLSchema(etree.parse(SCHEMAS / "windyroad-junit.xsd")).assertValid(document)
    assert document[0].get("timestamp") == "1970-01-01T00:00:00"


@pytest.mark.slow
@pytest.mark.parametrize(("count", "expected"), [(MANY, True), (MANY + 1, False)])
def test_very_many_test_cases_carry_no_properties(count: int, expected: bool) -> None:
    results = [case(scores=(scored(0.9),))] * count
    assert ("score.quality" in written(make_report("greets pass 1.0"), results)) is expected


def test_bodies_are_bounded_one_by_one_and_together(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence: dict[str, Json] = {f"key{n}": f"{n} " * 100_000 for n in range(20)}
    part = InvocationScore(status=Status.FAILED, value=0.1, evidence=evidence)
    failed = [
        case(
            f"c{n}", status=Status.FAILED, scores=(scored(0.1, Status.FAILED, invocations=(part,)),)
        )
        for n in range(4)
    ]
    monkeypatch.setattr("ci_eval.reporters.junit.MAX_BODIES", 50_000)
    bodies = [each.text or "" for each in parsed(make_report("a fail 0.1"), failed).iter("failure")]
    assert bodies[0].endswith("\n... more in run.json")
    assert 1_000 < len(bodies[0]) < 30_000
    assert bodies[-1] == "See run.json for the evidence."


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(codec=None, exclude_categories=())), min_size=5, max_size=5))
@example(["", "", "", "", "\x1b"])
def test_any_text_is_valid(texts: list[str]) -> None:
    name, agent, evalset, reason, value = texts
    part = InvocationScore(
        status=Status.FAILED, value=0.1, evidence={"expected": value, reason: [value]}
    )
    results = [
        case(
            name,
            agent=agent,
            evalset=evalset,
            status=Status.FAILED,
            scores=(scored(0.1, Status.FAILED, name=value, reason=reason, invocations=(part,)),),
        ),
        case(
            f"{name}2",
            agent=agent,
            evalset=evalset,
            status=Status.ERROR,
            error=Failure(kind=reason, message=value),
        ),
    ]
    for schema in ("junit-10.xsd", "windyroad-junit.xsd"):
        document = parsed(make_report("a pass 1.0", suite=value), results, profile="strict")
        etree.XMLSchema(etree.parse(SCHEMAS / schema)).assertValid(document)


# --- What agents wrote, and what struck many trials -------------------------------------------

REPORT = make_report("greets pass 1.0")


def outputs(*results: TrialResult, **options: str) -> list[str | None]:
    return [
        each.text for each in parsed(REPORT, results, **options).iterfind(".//testcase/system-out")
    ]


def test_what_the_agent_wrote_stands_with_its_trial() -> None:
    results = [
        case("a", status=Status.FAILED, output="looking\nfound\n"),
        case("b"),
        case("c", status=Status.ERROR, output="lost"),
    ]
    assert outputs(*results) == ["looking\nfound", "lost"]


def test_what_it_wrote_is_harmless_and_bounded() -> None:
    hostile = "]]></system-out><error/>\x00\x1b[31mred\x1b[0m\r##[add-mask]e\n" + "x" * 100_000
    [found] = outputs(case(status=Status.FAILED, output=hostile))
    assert found
    first, second, rest = found.split("\n")
    assert first == "]]></system-out><error/>\ufffdred"
    assert second == "## [add-mask]e"
    assert len(rest) < 20_000


def test_the_strict_profile_has_no_place_for_it() -> None:
    assert outputs(case(status=Status.FAILED, output="looking"), profile="strict") == []


def refused(
    name: str, *, kind: str = "start", words: str = "", agent: str = "support"
) -> TrialResult:
    error = Failure(kind=kind, message=f"cannot load 'a:b': no key\n{words}")
    return case(name, agent=agent, status=Status.ERROR, error=error)


def test_an_agent_that_cannot_start_is_told_once_with_the_number_of_its_trials() -> None:
    results = [refused("a", words="at 10:01"), refused("b", words="at 10:02"), refused("c")]
    first, *others = parsed(REPORT, results).iter("error")
    assert first.get("message") == "cannot load 'a:b': no key at 10:01"
    assert first.text == (
        "start: cannot load 'a:b': no key\nat 10:01\n3 trials of this suite have this error."
    )
    assert [(each.get("message"), each.text) for each in others] == [("same error as a",) * 2] * 2


def test_other_agents_and_other_errors_are_told_for_themselves() -> None:
    results = [refused("a"), refused("a", agent="other")]
    results += [refused(name, kind="crash", agent="other") for name in "bc"]
    messages = [each.get("message") for each in parsed(REPORT, results).iter("error")]
    assert messages == ["cannot load 'a:b': no key"] * 4
