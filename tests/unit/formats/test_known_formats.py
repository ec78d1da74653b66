"""Files of other formats are told by what they seem to be."""

from pathlib import Path

import pytest

from ci_eval.formats.known_formats import described, is_adk_result, not_json, recognised

ADK_TURN: dict[str, object] = {"user_content": {"parts": []}}
TRPC_TURN = {"userContent": {"role": "user", "content": "Hello"}}
RESULTS = "results of ADK; an agent `{recorded: FILE}` replays them"


def results(turn: object, key: str = "evalMetricResultPerInvocation") -> dict[str, object]:
    return {"evalSetResultId": "r", "evalCaseResults": [{key: [{"actualInvocation": turn}]}]}


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (
            {"eval_case_results": [{"response_candidate_results": []}]},
            "grades of agents-cli; name the trace that was graded under `{recorded: FILE}`",
        ),
        (
            results(TRPC_TURN),
            "results of trpc-agent-go, which are not read; name its evalset, and choose criteria",
        ),
        ({"golden_questions": []}, "golden questions of another tool; write its questions as"),
        ({"test_cases": []}, "test cases of another tool; write its questions as `cases:`"),
        ({"name": "x", "evaluators": [], "data": []}, "a dataset of Microsoft's AI agent"),
        ({"evaluators": [{"name": "x", "type": "builtin"}]}, "a list of evaluators, as of agent"),
        ({"uuid": "x", "agentSpans": []}, "a trace of DeepEval"),
        ({"version": 2, "eval": {}}, "a log of Inspect"),
        ({"prompt": "Hi"}, "a single case; put it into a list under `cases:`"),
        (results({"userContent": {"parts": []}}), RESULTS),
        ({"eval_set_result_id": "r"}, RESULTS),
        ({"_documentation": "x", "scenarios": []}, "ADK's conversation scenarios; "),
        ({"app_name": "a", "user_id": "u", "state": {}}, "the session input of ADK's"),
        ({"criteria": {}}, "ADK's eval config; name it under `criteria: {from: FILE}`"),
        ({"criterion": {}}, "ADK's eval config"),
        ({"id": "1", "app_name": "x", "user_id": "u", "events": []}, "a session of ADK"),
        ({"eval_id": "a", "invocations": []}, "a recording; an agent `{recorded: FILE}`"),
        ({"schema_version": 1, "meta": {}}, "a file that ci-eval itself writes"),
        ([{"metricName": "x"}], "metrics of trpc-agent-go; choose criteria of your own under"),
        ('{"eval_set_result_id": 1}', "JSON in a JSON string, as older versions of ADK write"),
    ],
)
def test_a_known_format_is_named(head: object, what: str) -> None:
    assert what in recognised(head)
    assert described(head) == recognised(head)


@pytest.mark.parametrize(
    ("head", "shape"),
    [
        (None, "an empty document"),
        ({}, "an empty document"),
        ([], "an empty document"),
        ("text", "'text'"),
        (5, "5"),
        ([1], "a list"),
        ([{"a": 1, "b": 2}], "a list that begins with an object with 'a', 'b'"),
        ({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}, "an object with 'a', 'b', 'c', 'd', 'e'"),
        ({"userContent": 1, "conversation": "x"}, "an object with 'userContent', 'conversation'"),
    ],
)
def test_any_other_is_described_by_its_shape(head: object, shape: str) -> None:
    assert recognised(head) == ""
    assert described(head) == shape


@pytest.mark.parametrize(
    "head",
    [
        {"eval_set_id": "s", "eval_cases": []},
        {"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "conversation": [ADK_TURN]}]},
        {"eval_set_id": "s", "eval_cases": [{"evalId": "a", "prompt": "kept by ADK"}]},
        {"criteria": "of others", "events": [], "eval_cases": [{"eval_id": "a"}]},
        {"eval_cases": [5]},
        {"evalSetId": "s", "evalCases": [{"evalId": "a", "conversation": [TRPC_TURN]}]},
        {"eval_cases": [{"eval_case_id": "a", "prompt": {}}]},
        {"eval_cases": {"eval_case_id": 1}},
        {"eval_cases": [{"conversation": [{"user_content": "content"}]}]},
        [{"query": "x"}],
        [{"name": "x", "data": []}],
    ],
)
def test_what_may_be_an_evalset_is_never_taken_for_another(head: object) -> None:
    assert recognised(head) == ""


@pytest.mark.parametrize(
    ("head", "is_result"),
    [
        (results(ADK_TURN), True),
        (results(TRPC_TURN), False),
        (results(None), True),
        (results(ADK_TURN, "eval_metric_result_per_invocation"), True),
        ({"eval_case_results": []}, True),
        ({"eval_case_results": [{"response_candidate_results": []}]}, False),
        ({"eval_cases": []}, False),
        ([], False),
    ],
)
def test_results_of_adk_are_told_from_those_of_others(head: object, *, is_result: bool) -> None:
    assert is_adk_result(head) is is_result


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n",
            "a Git LFS pointer whose file was not fetched",
        ),
        (b"../shared/a.json", "a symbolic link that was checked out as text"),
        (b"../shared/a.json\n", "a symbolic link that was checked out as text"),
        (b"../shared/a.yaml", ""),
        (b"a.json", ""),
        (b"x/a.json\ny/a.json", ""),
        (b"\xff\xfe", ""),
        (b"", ""),
    ],
)
def test_what_is_no_json_may_have_a_reason(tmp_path: Path, data: bytes, what: str) -> None:
    path = tmp_path / "b.json"
    path.write_bytes(data)
    assert not_json(path) == what
