"""A metric that was written for ADK scores here as in ADK, and learns the same.

Runs where CI_EVAL_ADK_PYTHON names a Python that has google-adk with its `eval` extra.
"""

import asyncio
import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.agent_sessions import Place
from support.project import REFUNDS, Project, content

from ci_eval.config.eval_config import read_eval_config
from ci_eval.criteria.adk_custom_metric import CustomMetric
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace, Trial, TrialKey
from ci_eval.run.score import score

ADK = os.environ.get("CI_EVAL_ADK_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not ADK, reason="CI_EVAL_ADK_PYTHON names no Python with google-adk"
)

METRICS = '''
import json
from google.adk.evaluation.eval_metrics import EvalStatus
from google.adk.evaluation.eval_rubrics import RubricScore
from google.adk.evaluation.evaluator import EvaluationResult, Evaluator, PerInvocationResult


def judged(value, threshold, actual, values, rubrics=None):
    status = lambda each: EvalStatus.PASSED if each >= threshold else EvalStatus.FAILED
    parts = [
        PerInvocationResult(actual_invocation=turn, score=each, eval_status=status(each))
        for turn, each in zip(actual, values)
    ]
    return EvaluationResult(
        overall_score=value,
        overall_eval_status=status(value),
        per_invocation_results=parts,
        overall_rubric_scores=rubrics,
    )


def note(metric, actual, expected, scenario):
    """Note what it is called with."""
    dump = lambda each: None if each is None else each.model_dump(mode="json", exclude_none=True)
    with open("seen.json", "w") as file:
        json.dump(
            {
                "metric": metric.metric_name,
                "threshold": metric.threshold,
                "criterion": dump(metric.criterion),
                "path": metric.custom_function_path,
                "actual": [dump(each) for each in actual],
                "expected": expected and [dump(each) for each in expected],
                "scenario": dump(scenario),
            },
            file,
        )


def words(metric, actual, expected, scenario):
    """Measure the share of turns whose response has the words of the criterion."""
    note(metric, actual, expected, scenario)
    wanted = metric.criterion.words
    said = [" ".join(part.text or "" for part in turn.final_response.parts) for turn in actual]
    values = [float(all(word in text for word in wanted)) for text in said]
    rubrics = [RubricScore(rubric_id="kind", score=values[0], rationale="It says so.")]
    value = sum(values) / len(values)
    return judged(value, metric.criterion.threshold, actual, values, rubrics)


async def words_async(metric, actual, expected, scenario):
    return words(metric, actual, expected, scenario)


class Words(Evaluator):
    def __init__(self, eval_metric):
        assert eval_metric.threshold == eval_metric.criterion.threshold
        self.metric = eval_metric

    def evaluate_invocations(self, actual_invocations, expected_invocations=None,
                             conversation_scenario=None):
        return words(self.metric, actual_invocations, expected_invocations, conversation_scenario)


class WordsAsync(Words):
    async def evaluate_invocations(self, actual_invocations, expected_invocations=None,
                                   conversation_scenario=None):
        return words(self.metric, actual_invocations, expected_invocations, conversation_scenario)
'''


def rubric(name: str) -> dict[str, Any]:
    return {"rubric_id": name, "rubric_content": {"text_property": f"It is {name}."}}


def asked(text: str, response: str, **more: Any) -> dict[str, Any]:
    return {
        "user_content": content(text, "user"),
        "final_response": content(response, "model"),
        **more,
    }


EXPECTED = [
    asked("Refund 7", "Order 7 is refunded.", rubrics=[rubric("brief")]),
    asked("Thanks", "You are welcome."),
]
CALL = {"id": "1", "name": "refund", "args": {"order": 7, "note": None, "why": {"x": None}}}
EVENTS = [
    {
        "author": "shop",
        "content": {"role": "model", "parts": [{"function_call": CALL}]},
        "usage_metadata": {"prompt_token_count": 5, "candidates_token_count": 2},
        "model_version": "m-1",
    },
    {"author": "shop"},
]
ACTUAL = [
    asked(
        "Refund 7",
        "Order 7 is refunded, dear.",
        intermediate_data={"invocation_events": EVENTS},
        invocation_id="i-1",
        creation_timestamp=12.5,
        duration=1.25,
        app_details={"agent_details": {"shop": {"name": "shop", "instructions": "Be kind."}}},
    ),
    asked("Thanks", "Bye.", intermediate_data={"tool_uses": [{"name": "wave"}]}),
]
WRITTEN = {"eval_id": "refunds", "conversation": EXPECTED, "rubrics": [rubric("kind")]}
PLAYED = {
    "eval_id": "refunds",
    "conversation_scenario": {"starting_prompt": "Hi", "conversation_plan": "Ask for 7."},
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.write("shop_metrics.py", METRICS)
    return place


def seen(place: Place) -> Any:
    return json.loads((place.root / "seen.json").read_text())


def scored(
    place: Place, metric: CustomMetric, case: dict[str, Any], actual: Any = ACTUAL, times: int = 1
) -> list[Score]:
    key = TrialKey(agent="bot", evalset="e", case="refunds")
    trace = Trace.model_validate({"key": key, "invocations": actual})
    trial = Trial(key, EvalCase.model_validate(case), "f")

    async def main() -> list[Score]:
        async with metric.start(place.context) as scorer:
            results = await asyncio.gather(
                *(score(trial, trace, {"mine": metric}, {"mine": scorer}) for _ in range(times))
            )
        return [result.scores[0] for result in results]

    return asyncio.run(main())


def of_config(place: Place, config: dict[str, Any]) -> CustomMetric:
    path = place.root / "test_config.json"
    path.write_text(json.dumps(config))
    file = read_eval_config(path, shown=path.name, dialect=None, interpreter=ADK)
    assert file.problems == []
    [metric] = file.criteria.values()
    assert isinstance(metric, CustomMetric)
    return metric


CODES = ("words", "words_async", "Words", "WordsAsync")
CASES = {"written": WRITTEN, "scenario": PLAYED}
ALL = list(itertools.product(CODES, CASES, (0.5, 0.75)))


def config_of(code: str, threshold: float) -> dict[str, Any]:
    return {
        "criteria": {"mine": {"threshold": threshold, "words": ["dear"], "aB": {"c": None}}},
        "custom_metrics": {"mine": {"code_config": {"name": f"shop_metrics.{code}"}}},
    }


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, float], Any]:
    """What ADK makes of every combination, and what the metric saw there."""
    folder = tmp_path_factory.mktemp("adk")
    Place(folder).write("shop_metrics.py", METRICS)
    given = [
        {
            "config": config_of(code, threshold),
            "case": CASES[case],
            "actual": ACTUAL,
            "evaluator": f"shop_metrics.{code}" if code[0].isupper() else None,
        }
        for code, case, threshold in ALL
    ]
    done = subprocess.run(
        [ADK, Path(__file__).with_name("adk_evaluates.py")],
        input=json.dumps(given),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(ALL, json.loads((folder / "adk.json").read_text()), strict=True))


@pytest.mark.parametrize(("code", "case", "threshold"), ALL)
def test_it_learns_what_adk_tells_it_and_its_score_is_adks(
    place: Place, theirs: Any, code: str, case: str, threshold: float
) -> None:
    there = theirs[code, case, threshold]
    ours_alone = [{**each, "cost_usd": 0.01, "nodes": ["a"]} for each in ACTUAL]

    [ours] = scored(place, of_config(place, config_of(code, threshold)), CASES[case], ours_alone)

    assert ours.reason == ""
    assert seen(place) == there["seen"]
    assert (ours.value, ours.status.upper()) == (there["score"], there["status"])
    assert [(each.value, each.status.upper()) for each in ours.invocations] == [
        (each["score"], each["status"]) for each in there["invocations"]
    ]
    # By hand: one of two turns says "dear".
    assert (ours.value, ours.status) == (0.5, "passed" if threshold == 0.5 else "failed")
    rubrics = [{"rubric_id": "kind", "score": 1.0, "rationale": "It says so."}]
    assert ours.evidence == ({"status": "FAILED", "rubrics": rubrics} if threshold > 0.5 else None)


def test_it_sees_the_rubrics_of_the_case_and_a_threshold_only_where_adk_shows_one(
    theirs: Any,
) -> None:
    first = theirs["words", "written", 0.5]["seen"]["actual"][0]
    assert [each["rubric_id"] for each in first["rubrics"]] == ["kind", "brief"]
    assert theirs["words", "written", 0.5]["seen"]["threshold"] is None
    assert theirs["Words", "written", 0.5]["seen"]["threshold"] == 0.5


def code_of(place: Place, body: str, **options: Any) -> CustomMetric:
    """Write the metric `own.check` and return its criterion."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    place.write(
        "own.py", f"from shop_metrics import *\ndef check(metric, actual, *rest):\n{lines}\n"
    )
    options = {"threshold": 0.5, "timeout_s": 600, **options}
    return CustomMetric.model_validate({"code": "own.check", "interpreter": ADK, **options})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return {}['order']", "KeyError: 'order' (own.py:3)"),
        ("return 0.5", "own.check returned float: 0.5; expected an EvaluationResult"),
        ("return None", "own.check returned None; expected an EvaluationResult"),
        ("return EvaluationResult()", "own.check returned NOT_EVALUATED, so nothing was measured"),
        (
            "return judged(1.0, 0.5, actual, [1.0])",
            "own.check returned 1 results for 2 invocations",
        ),
        (
            "return EvaluationResult(overall_score=float('nan'))",
            "own.check returned dict: {'score': nan",
        ),
    ],
)
def test_what_it_does_wrong_is_an_error_of_the_score(place: Place, body: str, said: str) -> None:
    [found] = scored(place, code_of(place, body), WRITTEN)
    assert (found.status, found.value) == (Status.ERROR, None)
    assert found.reason.startswith(said)


def test_one_with_too_few_parameters_is_said_to_be_that(place: Place) -> None:
    place.write("own.py", "def check(metric, actual, expected):\n    pass\n")
    metric = CustomMetric.model_validate({"code": "own.check", "interpreter": ADK})
    [found] = scored(place, metric, WRITTEN)
    assert found.reason == "TypeError: check() takes 3 positional arguments but 4 were given"


def test_one_that_returns_a_promise_is_awaited(place: Place) -> None:
    body = "async def later():\n    return judged(1.0, 0.5, actual, [1.0, 1.0])\nreturn later()"
    [found] = scored(place, code_of(place, body), WRITTEN)
    assert (found.status, found.value) == (Status.PASSED, 1.0)


def test_without_a_threshold_it_still_has_its_options(place: Place) -> None:
    body = "return judged(len(metric.criterion.words), 2, actual, [1, 1])"
    info = {"metric_value_info": {}}
    metric = code_of(place, body, threshold=None, criterion={"words": ["a", "b"]}, metric_info=info)
    [found] = scored(place, metric, WRITTEN)
    assert (found.status, found.value, found.informational) == (Status.PASSED, 2.0, True)
    assert found.evidence == {"status": "PASSED"}


def test_what_google_genai_has_no_name_for_does_not_keep_it_from_scoring(place: Place) -> None:
    usage = {"promptTokenCount": 5, "our_own_count": 1}
    events = [{"author": "shop", "usage_metadata": usage}]
    actual = [asked("Hi", "Hello", intermediate_data={"invocation_events": events})]
    case = {"eval_id": "refunds", "conversation": actual}
    [found] = scored(place, code_of(place, "return judged(1.0, 0.5, actual, [1.0])"), case, actual)
    assert (found.status, found.reason) == (Status.PASSED, "")


@pytest.mark.parametrize("form", ["def", "async def"])
def test_trials_are_scored_in_one_process(place: Place, form: str) -> None:
    place.write(
        "own.py",
        f"""
        import os
        from shop_metrics import *
        {form} check(metric, actual, *rest):
            open(str(os.getpid()) + ".pid", "w").close()
            return judged(1.0, 0.5, actual, [1.0, 1.0])
        """,
    )
    metric = CustomMetric(code="own.check", interpreter=ADK, threshold=0.5)
    found = scored(place, metric, WRITTEN, times=4)
    assert [each.status for each in found] == [Status.PASSED] * 4
    assert len(list(place.root.glob("*.pid"))) == 1


def test_a_configuration_runs_the_metrics_of_an_eval_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path, capsys)
    Place(tmp_path).write("shop_metrics.py", METRICS)
    Place(tmp_path).write("bot.py", "def answer(message): return 'Order 7 is refunded, dear.'")
    project.evalset(REFUNDS)
    (tmp_path / "test_config.json").write_text(
        json.dumps(
            {
                "criteria": {"kind_words": {"threshold": 1, "words": ["dear"]}},
                "custom_metrics": {"kind_words": {"code_config": {"name": "shop_metrics.words"}}},
            }
        )
    )
    project.config(
        "version: 1\n"
        f"agents: {{bot: {{python: 'bot:answer', interpreter: '{ADK}'}}}}\n"
        "evalsets: {smoke: smoke.evalset.json}\n"
        "criteria: {from: test_config.json}\n"
    )
    assert project.ci_eval("validate", "ci-eval.yaml").code == 0
    ended = project.ci_eval("run")
    assert (ended.code, project.scores()) == (0, {"refunds": {"kind_words": 1.0}})
    facts = project.run_json()["meta"]["criteria"]["kind_words"]
    assert (facts["criterion"], facts["interval"]) == ("adk/custom_metric", [0.0, 1.0])
