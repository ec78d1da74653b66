"""Google's Vertex AI evaluation service, through google-cloud-aiplatform."""

import asyncio
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from math import isfinite
from typing import Any, NamedTuple

from pydantic import Field, field_validator

from ci_eval.llm.providers.model_connection import Connection, sendable
from ci_eval.llm.providers.model_failures import Failures
from ci_eval.plugins.points import Judge, JudgeClient, judge
from ci_eval.records.cases import Json
from ci_eval.records.errors import JudgeError
from ci_eval.records.questions import Answer, Question
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import Address, address
from ci_eval.text.json_text import is_number, parse_json

_PACKAGE = "the package google-cloud-aiplatform (pip install 'ci-eval[vertex]')"
_MODULES = ("agentplatform", "vertexai")
"""Modules with the client: since version 2 of the package, and before."""
_NEEDED = ("pandas", "tqdm")
"""Packages that the evaluation needs, but google-cloud-aiplatform does not install."""
_TIMEOUT_MS = 300_000
"""Timeout of one request; without it, the run would wait for a thread that cannot be stopped."""
_MOST_THREADS = 1000
"""Maximum number of concurrent calls; threads are only started as needed."""
_REFUSED = re.compile(r"(\d{3})\b")
"""Start of a service error; the package passes on only its text."""
_SAID = re.compile(r"Error in metric result|Metric results missing")
"""Start of the message if the service answered without a score."""
_RPC_CODE = re.compile(r"\bcode=(\d{1,2})\b")
_STATUSES = {4: 504, 8: 429, 10: 409, 13: 500, 14: 503}
"""The google.rpc.Code values for retryable errors, as HTTP status codes per its documentation."""


@judge("vertex")
class Vertex(Judge):
    """Google's Vertex AI evaluation service, for the ADK criteria that only it can measure.

    These criteria use it automatically; it need not be configured.  It needs its package, `pip
    install 'ci-eval[vertex]'`, and Application Default Credentials, with the variables
    `GOOGLE_CLOUD_PROJECT` and `GOOGLE_CLOUD_LOCATION`; the options below take precedence.
    Without project and location, the key in `GOOGLE_API_KEY` is sent, although the package (as of
    version 2.7) looks for Application Default Credentials even then.  ADK prefers that key, which
    may be meant for the Gemini API.

    If the service is busy, the package makes up to five attempts, which count as one call.  The
    requests were compared with ADK 2.13.0's on a substitute server, but not tested with the service
    itself.
    """

    extra = "vertex"

    base_url: Address | None = None
    """Base URL of a proxy or a gateway (default: `GOOGLE_VERTEX_BASE_URL`, or else Google)."""
    project: str | None = Field(default=None, min_length=1)
    """Google Cloud project (default: `GOOGLE_CLOUD_PROJECT`)."""
    location: str | None = Field(default=None, min_length=1)
    """Region (default: `GOOGLE_CLOUD_LOCATION`)."""

    @field_validator("settings")
    @classmethod
    def _no_settings(cls, settings: Mapping[str, Json]) -> Mapping[str, Json]:
        if settings:
            raise ValueError("the evaluation service has no settings")
        return settings

    def missing(self, env: Mapping[str, str]) -> str:
        """Return the missing variables and packages."""
        access = _Access.of(self, env)
        found = [] if _module() else [_PACKAGE]
        if not (access.key or access.project or access.location):
            found.append("GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION (or GOOGLE_API_KEY)")
        elif not access.key:
            found += [] if access.project else ["GOOGLE_CLOUD_PROJECT"]
            found += [] if access.location else ["GOOGLE_CLOUD_LOCATION"]
        return ", and ".join(found)

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[JudgeClient]:
        """Connect at the first question; leaving the context closes the connection."""
        client = _Client(self, context)
        async with client.connection:
            yield client


def _module() -> str:
    """Return the module of the client; empty if something is not installed."""
    if not all(map(find_spec, _NEEDED)):
        return ""
    return next((name for name in _MODULES if find_spec(name)), "")


class _Access(NamedTuple):
    """Access to the service, independent of `os.environ`."""

    key: str
    project: str
    location: str
    base_url: str

    @classmethod
    def of(cls, judge: Vertex, env: Mapping[str, str]) -> "_Access":
        project = judge.project or env.get("GOOGLE_CLOUD_PROJECT", "")
        location = judge.location or env.get("GOOGLE_CLOUD_LOCATION", "")
        by_project = judge.project or (project and location)
        return cls(
            key="" if by_project else env.get("GOOGLE_API_KEY", "").strip(),
            project=project,
            location=location,
            base_url=judge.base_url or env.get("GOOGLE_VERTEX_BASE_URL", ""),
        )

    @property
    def credentials(self) -> str:
        if self.key:
            return "the key comes from GOOGLE_API_KEY"
        return "the key comes from Application Default Credentials"

    def client(self, package: Any) -> Any:
        options: dict[str, Any] = {"timeout": _TIMEOUT_MS}
        if self.base_url:
            options["base_url"] = address(self.base_url)
        if self.key:
            key = sendable(self.key, "GOOGLE_API_KEY")
            return package.Client(api_key=key, http_options=options)
        return package.Client(project=self.project, location=self.location, http_options=options)


class _Connected(NamedTuple):
    client: Any
    types: Any
    threads: ThreadPoolExecutor


class _Client:
    """A client of the package, run in threads: its asynchronous variant cannot evaluate."""

    def __init__(self, judge: Vertex, context: RunContext) -> None:
        self._access = _Access.of(judge, context.env)
        self._failures = Failures("vertex", self._access.credentials, self._access.key)
        self.connection = Connection(self._connect, _close)

    async def answer(self, question: Question) -> Answer:
        """Make one call."""
        try:
            asked = parse_json(question.text)
            metric, version = asked.pop("metric").rsplit("_", 1)
        except (ValueError, LookupError, TypeError, AttributeError):
            why = f"the evaluation service cannot answer questions of {question.about}"
            raise self._failures.unasked(why) from None
        connected = await self.connection.client()
        # A pool of its own: waiting for a free thread would count as a slow answer.
        measure = partial(self._measure, connected, metric, version, asked)
        found = await asyncio.get_running_loop().run_in_executor(connected.threads, measure)
        return Answer(text=json.dumps(found), model=f"{metric}_{version}")

    def _connect(self) -> _Connected:
        name = _module()
        if not name:
            raise self._failures.unasked(f"it needs {_PACKAGE}")
        # The package shows progress, and logs tracebacks of errors that it also returns.
        os.environ.setdefault("TQDM_DISABLE", "1")  # noqa: TID251  # tqdm reads it when imported
        logging.getLogger(name).addHandler(logging.NullHandler())
        package = import_module(name)
        from google.auth.exceptions import GoogleAuthError

        try:
            client = self._access.client(package)
            _ = client.evals  # imported on first access, which takes a while
        except GoogleAuthError as exc:
            raise self._failures.unauthorised(exc) from exc
        except ValueError as exc:
            raise self._failures.unasked(exc) from exc
        return _Connected(client, package.types, ThreadPoolExecutor(_MOST_THREADS))

    def _measure(
        self, connected: _Connected, metric: str, version: str, asked: Mapping[str, Json]
    ) -> dict[str, Json]:
        """Return the service's result."""
        from google.auth.exceptions import GoogleAuthError

        types = connected.types
        try:
            result = connected.client.evals.evaluate(
                dataset=_dataset(types, asked),
                metrics=[getattr(types.RubricMetric, metric.upper())(version=version)],
            )
        except GoogleAuthError as exc:
            raise self._failures.unauthorised(exc) from exc
        except ValueError as exc:
            raise self._unprepared(exc) from exc
        found = read_result(result)
        if found["score"] is None and found["error"]:
            self._check(str(found["error"]))
        return found

    def _check(self, error: str) -> None:
        """Check that `error` is an answer of the service itself.

        Raises:
            JudgeError: the service did not answer.

        """
        if _SAID.match(error):
            code = _RPC_CODE.search(error)
            status = _STATUSES.get(int(code[1])) if code else None
            if status:
                raise self._failures.refused(status, error)
            return
        refused = _REFUSED.match(error)
        if refused:
            raise self._failures.refused(int(refused[1]), error[refused.end() :].strip())
        raise self._failures.unreached(ConnectionError(error))

    def _unprepared(self, exc: ValueError) -> JudgeError:
        """Return the error for an unknown metric, or data that the metric does not accept."""
        from google.auth.exceptions import GoogleAuthError

        cause: BaseException = exc
        while (deeper := cause.__cause__ or cause.__context__) is not None:
            cause = deeper
        if isinstance(cause, GoogleAuthError):
            return self._failures.unauthorised(cause)
        code = getattr(cause, "code", None)
        if isinstance(code, int):
            return self._failures.refused(int(code), str(cause))
        return self._failures.unasked(cause)


def _dataset(types: Any, asked: Mapping[str, Json]) -> Any:
    """Return a dataset with the only case, `asked`, built as in ADK."""
    if "turns" in asked:
        data = types.evals.AgentData.model_validate(asked)
        return types.EvaluationDataset(eval_cases=[types.EvalCase(agent_data=data)])
    frame = import_module("pandas").DataFrame([asked])
    return types.EvaluationDataset(eval_dataset_df=frame)


def read_result(result: Any) -> dict[str, Json]:
    """Return the score of the only metric and case in an `EvaluationResult`."""
    measured = [
        each
        for case in result.eval_case_results or ()
        for candidate in case.response_candidate_results or ()
        for each in (candidate.metric_results or {}).values()
    ]
    return {
        "score": _number(result.summary_metrics[0].mean_score if result.summary_metrics else None),
        "explanation": "\n".join(each.explanation for each in measured if each.explanation),
        "error": "\n".join(each.error_message for each in measured if each.error_message),
        "rubrics": [
            _rubric(number, verdict)
            for each in measured
            for number, verdict in enumerate(each.rubric_verdicts or ())
        ],
    }


def _number(value: Any) -> float | None:
    return float(value) if is_number(value) and isfinite(value) else None


def _rubric(number: int, verdict: Any) -> dict[str, Json]:
    """Return one verdict; the service omits a `verdict` that is false."""
    rubric = verdict.evaluated_rubric
    described = rubric and rubric.content and rubric.content.property
    name = (described and described.description) or (rubric and rubric.rubric_id)
    return {
        "id": name or f"rubric_{number}",
        "reasoning": verdict.reasoning or "",
        "verdict": bool(verdict.verdict),
    }


async def _close(connected: _Connected) -> None:
    connected.threads.shutdown(wait=False, cancel_futures=True)
    await connected.client.aio.aclose()
