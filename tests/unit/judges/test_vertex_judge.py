"""The judge vertex: what it needs, and what becomes of what its package says.

The package itself is asked in `tests/integration/judges/test_vertex.py`; here something of its
shape stands in its place.
"""

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from google.auth.exceptions import DefaultCredentialsError, TransportError
from pydantic import ValidationError

from ci_eval.judges.vertex_judge import Vertex, read_result
from ci_eval.records.errors import JudgeError
from ci_eval.records.questions import Answer, Question
from ci_eval.runtime.context import RunContext

ENV = {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "us-central1"}
KEY = "AQ.the-key-of-this-test"
TALK = {"metric": "multi_turn_task_success_v1", "agents": {}, "turns": []}
PACKAGE = "the package google-cloud-aiplatform (pip install 'ci-eval[vertex]')"
AT_ALL = "GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION (or GOOGLE_API_KEY)"

Evaluate = Callable[[], Any]


class Package(ModuleType):
    """What stands in the place of google-cloud-aiplatform."""

    def __init__(self, evaluate: Evaluate) -> None:
        super().__init__("agentplatform")
        self.made: list[dict[str, Any]] = []
        self.metrics: list[str] = []
        self.closed = 0
        self.types = SimpleNamespace(
            RubricMetric=self,
            EvalCase=SimpleNamespace,
            EvaluationDataset=SimpleNamespace,
            evals=SimpleNamespace(AgentData=SimpleNamespace(model_validate=lambda data: data)),
        )
        self.Client = self._client
        self._evaluate = evaluate

    def __getattr__(self, name: str) -> Any:
        if not name.isupper():
            raise AttributeError(name)
        return lambda version: f"{name} {version}"

    def _client(self, **options: Any) -> Any:
        async def aclose() -> None:
            self.closed += 1

        def evaluate(dataset: Any, metrics: list[str]) -> Any:
            self.metrics += metrics
            return self._evaluate()

        self.made.append(options)
        return SimpleNamespace(
            evals=SimpleNamespace(evaluate=evaluate), aio=SimpleNamespace(aclose=aclose)
        )


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Evaluate], Package]]:
    """Let the package be there, or something like it."""

    def install(evaluate: Evaluate) -> Package:
        package = Package(evaluate)
        monkeypatch.setitem(sys.modules, "agentplatform", package)
        monkeypatch.setattr("ci_eval.judges.vertex_judge.find_spec", lambda name: name)
        monkeypatch.setenv("TQDM_DISABLE", "1")
        return package

    return install


Install = Callable[[Evaluate], Package]


def result(score: Any = None, **more: Any) -> Any:
    """Return an `EvaluationResult` of one metric."""
    nothing = {"explanation": None, "error_message": None, "rubric_verdicts": None}
    metric = SimpleNamespace(**{**nothing, **more})
    candidate = SimpleNamespace(metric_results={"m": metric})
    return SimpleNamespace(
        summary_metrics=[SimpleNamespace(mean_score=score)],
        eval_case_results=[SimpleNamespace(response_candidate_results=[candidate])],
    )


def ask(
    judge: Vertex | None = None, env: dict[str, str] | None = None, text: str | None = None
) -> Answer:
    question = Question("adk/x", "", json.dumps(TALK) if text is None else text, {})
    context = RunContext(env=ENV if env is None else env, root=Path(), now=lambda: 0.0)

    async def asked() -> Answer:
        async with (judge or Vertex(model="adk/x")).start(context) as client:
            return await client.answer(question)

    return asyncio.run(asked())


def failure(install: Install, error: Any, **more: Any) -> JudgeError:
    """Return the error for what the package passes on, or raises."""

    def evaluate() -> Any:
        if isinstance(error, str):
            return result(error_message=error)
        raise error

    install(evaluate)
    with pytest.raises(JudgeError) as caught:
        ask(**more)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    return caught.value


# --- What it needs ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "env", "missing"),
    [
        ({}, {}, AT_ALL),
        ({}, {"GOOGLE_API_KEY": " "}, AT_ALL),
        ({}, {"GOOGLE_CLOUD_PROJECT": "p"}, "GOOGLE_CLOUD_LOCATION"),
        ({}, {"GOOGLE_CLOUD_LOCATION": "l"}, "GOOGLE_CLOUD_PROJECT"),
        ({}, ENV, ""),
        ({}, {"GOOGLE_API_KEY": "k"}, ""),
        ({"project": "p"}, {"GOOGLE_API_KEY": "k"}, "GOOGLE_CLOUD_LOCATION"),
        ({"project": "p", "location": "l"}, {}, ""),
    ],
)
def test_the_variable_that_is_missing_is_named(
    installed: Install, fields: dict[str, Any], env: dict[str, str], missing: str
) -> None:
    installed(result)
    assert Vertex.model_validate(fields).missing(env) == missing


@pytest.mark.parametrize("absent", ["pandas", "tqdm", "agentplatform vertexai"])
def test_without_the_package_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, absent: str
) -> None:
    monkeypatch.setattr(
        "ci_eval.judges.vertex_judge.find_spec",
        lambda name: None if name in absent.split() else name,
    )
    assert Vertex().missing(ENV) == PACKAGE
    assert Vertex().missing({}) == f"{PACKAGE}, and {AT_ALL}"
    with pytest.raises(JudgeError, match=r"'vertex' cannot be called: it needs the package"):
        ask()


def test_it_takes_no_settings_of_models() -> None:
    with pytest.raises(ValidationError, match="the evaluation service has no settings"):
        Vertex.model_validate({"settings": {"temperature": 0}})


def test_no_model_is_one_of_its() -> None:
    assert not Vertex().serves("gemini-2.5-flash")


# --- How it is reached --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "env", "options"),
    [
        ({}, ENV, {"project": "p", "location": "us-central1"}),
        ({}, {"GOOGLE_API_KEY": KEY}, {"api_key": KEY}),
        ({}, {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_API_KEY": KEY}, {"api_key": KEY}),
        ({}, {**ENV, "GOOGLE_API_KEY": KEY}, {"project": "p", "location": "us-central1"}),
        (
            {"project": "q", "location": "eu"},
            {**ENV, "GOOGLE_API_KEY": KEY},
            {"project": "q", "location": "eu"},
        ),
    ],
)
def test_the_client_is_told_who_asks(
    installed: Install, fields: dict[str, Any], env: dict[str, str], options: dict[str, str]
) -> None:
    package = installed(lambda: result(1.0))
    ask(Vertex(model="adk/x", **fields), env)
    assert package.made == [{**options, "http_options": {"timeout": 300_000}}]
    assert package.closed == 1


def test_it_can_be_reached_elsewhere(installed: Install) -> None:
    package = installed(lambda: result(1.0))
    ask(env={**ENV, "GOOGLE_VERTEX_BASE_URL": "https://a.example"})
    ask(
        Vertex(base_url="https://b.example"), {**ENV, "GOOGLE_VERTEX_BASE_URL": "https://a.example"}
    )
    found = [each["http_options"]["base_url"] for each in package.made]
    assert found == ["https://a.example", "https://b.example"]


def test_a_metric_is_asked_for_in_its_version(installed: Install) -> None:
    package = installed(lambda: result(1.0))
    found = ask()
    assert package.metrics == ["MULTI_TURN_TASK_SUCCESS v1"]
    assert found.model == "multi_turn_task_success_v1"


def test_calls_do_not_wait_for_each_other(installed: Install) -> None:
    together = threading.Barrier(40, timeout=120)  # more than asyncio has threads

    def evaluate() -> Any:
        together.wait()
        return result(1.0)

    package = installed(evaluate)

    async def asked() -> list[Answer]:
        question = Question("adk/x", "", json.dumps(TALK), {})
        context = RunContext(env=ENV, root=Path(), now=lambda: 0.0)
        async with Vertex(model="adk/x").start(context) as client:
            return await asyncio.gather(*(client.answer(question) for _ in range(40)))

    assert len(asyncio.run(asked())) == 40
    assert len(package.made) == 1


@pytest.mark.parametrize("text", ["Is it so?", "[]", "{}", '{"metric": 1}', '{"metric": "x"}'])
def test_what_is_no_measurement_is_refused(installed: Install, text: str) -> None:
    package = installed(lambda: result(1.0))
    with pytest.raises(JudgeError, match="service cannot answer questions of adk/x"):
        ask(text=text)
    assert package.made == []


# --- What it answers ----------------------------------------------------------------------------


def test_what_the_service_found_is_the_answer(installed: Install) -> None:
    described = SimpleNamespace(property=SimpleNamespace(description="It pays."))
    verdicts = [
        SimpleNamespace(
            evaluated_rubric=SimpleNamespace(content=described, rubric_id="r1"),
            verdict=True,
            reasoning="It did.",
        ),
        SimpleNamespace(
            evaluated_rubric=SimpleNamespace(content=None, rubric_id="r2"),
            verdict=None,
            reasoning=None,
        ),
        SimpleNamespace(evaluated_rubric=None, verdict=False, reasoning="Never."),
    ]
    installed(lambda: result(0.5, explanation="Half.", rubric_verdicts=verdicts))
    assert json.loads(ask().text) == {
        "score": 0.5,
        "explanation": "Half.",
        "error": "",
        "rubrics": [
            {"id": "It pays.", "reasoning": "It did.", "verdict": True},
            {"id": "r2", "reasoning": "", "verdict": False},
            {"id": "rubric_2", "reasoning": "Never.", "verdict": False},
        ],
    }


@pytest.mark.parametrize("score", [None, float("nan"), float("inf"), True, "1"])
def test_what_is_no_number_is_no_score(score: Any) -> None:
    assert read_result(result(score))["score"] is None


def test_a_result_that_holds_nothing_has_no_score() -> None:
    empty = SimpleNamespace(summary_metrics=None, eval_case_results=None)
    assert read_result(empty) == {"score": None, "explanation": "", "error": "", "rubrics": []}


def test_a_score_stands_whatever_else_is_said(installed: Install) -> None:
    installed(lambda: result(1.0, error_message="429 RESOURCE_EXHAUSTED"))
    assert json.loads(ask().text)["score"] == 1.0


@pytest.mark.parametrize(
    "said", ["Error in metric result: code=3 message='Too long.'", "Metric results missing in API"]
)
def test_what_the_service_says_without_a_score_is_an_answer(installed: Install, said: str) -> None:
    installed(lambda: result(error_message=said))
    assert json.loads(ask().text) == {
        "score": None,
        "explanation": "",
        "error": said,
        "rubrics": [],
    }


# --- What goes wrong ----------------------------------------------------------------------------


def refused(code: int, status: str, message: str) -> str:
    """Return how the package passes on an error of the service."""
    from google.genai.errors import APIError

    return str(APIError(code, {"error": {"code": code, "status": status, "message": message}}))


@pytest.mark.parametrize(
    ("error", "passing", "throttled"),
    [
        ((429, "RESOURCE_EXHAUSTED", "Later."), True, True),
        ((503, "UNAVAILABLE", "Later."), True, False),
        ((400, "INVALID_ARGUMENT", "No."), False, False),
        ("Error in metric result: code=8 message='Judges are busy.'", True, True),
        ("Error in metric result: code=14 message='Away.'", True, False),
        ("[Errno -2] Name or service not known", True, False),
        ("The read operation timed out", True, False),
    ],
)
def test_it_is_asked_again_where_that_helps(
    installed: Install, error: str | tuple[int, str, str], *, passing: bool, throttled: bool
) -> None:
    found = failure(installed, error if isinstance(error, str) else refused(*error))
    assert (found.passing, found.throttled) == (passing, throttled)


def test_who_is_refused_is_told_with_which_key(installed: Install) -> None:
    error = refused(403, "PERMISSION_DENIED", f"{KEY} may not.")
    assert "Application Default Credentials" in str(failure(installed, error))
    found = str(failure(installed, error, env={"GOOGLE_API_KEY": KEY}))
    assert found.endswith("the key comes from GOOGLE_API_KEY")
    assert KEY not in found


def caused(error: Exception, cause: Exception) -> Exception:
    """Return `error` as the package raises it: because of `cause`."""
    error.__cause__ = OSError(f"Error checking for metric file: {cause}")
    error.__cause__.__cause__ = cause
    return error


class NotFoundError(Exception):
    """As google-api-core has it."""

    code = 404


def test_credentials_that_are_not_there_are_told(installed: Install) -> None:
    absent = DefaultCredentialsError("Your default credentials were not found.")
    for error in (absent, caused(ValueError("no metric"), absent)):
        found = failure(installed, error)
        assert "no Google Cloud credentials: Your default credentials" in str(found)
        assert not found.passing
    assert failure(installed, TransportError("away", retryable=True)).passing


def test_a_metric_that_cannot_be_found_says_why(installed: Install) -> None:
    gone = caused(ValueError("Metric 'COHERENCE' could not be resolved"), NotFoundError("gone"))
    assert str(failure(installed, gone)).startswith("'vertex' gave no answer: 404: gone")
    found = failure(installed, ValueError("Prompt is required but missing"))
    assert str(found) == "'vertex' cannot be called: Prompt is required but missing"


def test_a_key_that_cannot_be_sent_is_not_shown(installed: Install) -> None:
    installed(lambda: result(1.0))
    with pytest.raises(JudgeError, match="GOOGLE_API_KEY has a space") as caught:
        ask(env={"GOOGLE_API_KEY": "two words"})
    assert "two words" not in str(caught.value)
