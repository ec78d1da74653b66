"""Google's Vertex AI evaluation service, through its package google-cloud-aiplatform."""

import asyncio
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from math import isfinite
from typing import Any, ClassVar, NamedTuple

from pydantic import Field, field_validator

from ci_eval.llm.providers.connection import Connection, sendable
from ci_eval.llm.providers.failures import Failures
from ci_eval.plugins.points import Judge, JudgeClient, judge
from ci_eval.records.errors import JudgeError
from ci_eval.records.model import Json
from ci_eval.records.questions import Answer, Question
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import Address, address
from ci_eval.text.json_text import parse_json

_PACKAGE = "the package google-cloud-aiplatform (pip install 'ci-eval[vertex]')"
_MODULES = ("agentplatform", "vertexai")
"""Where the package has its client: since its version 2, and before."""
_NEEDED = ("pandas", "tqdm")
"""What the package measures with, and does not install by itself."""
_TIMEOUT_MS = 300_000
"""What one request may take: its thread cannot be stopped, and the run would wait for it."""
_MOST_THREADS = 1000
"""As many as calls may be under way; there are no more than are needed at once."""
_REFUSED = re.compile(r"(\d{3})\b")
"""How an error of the service begins, of which the package passes on the text alone."""
_SAID = re.compile(r"Error in metric result|Metric results missing")
"""How it begins where the service answered, without a score."""
_RPC_CODE = re.compile(r"\bcode=(\d{1,2})\b")
_STATUSES = {4: 504, 8: 429, 10: 409, 13: 500, 14: 503}
"""The codes of google.rpc.Code that say: later; as those of HTTP, as its documentation has it."""


@judge("vertex")
class Vertex(Judge):
    """Google's Vertex AI evaluation service, for the criteria of ADK's that it alone measures.

    Nobody has to name it: those criteria ask it by themselves.  It needs its package, `pip
    install 'ci-eval[vertex]'`, and Application Default Credentials, with the variables
    `GOOGLE_CLOUD_PROJECT` and `GOOGLE_CLOUD_LOCATION`; what is set here comes before them.
    Without both, the key in `GOOGLE_API_KEY` is sent, though the package (as of its version 2.7)
    looks for Application Default Credentials even then.  ADK takes that key first, which the
    Gemini API may be meant for.

    The package tries by itself up to five times where the service is busy, which counts as one
    call.  What it sends was compared with what it sends for ADK 2.13.0, at a server that stood
    for the service; the service itself was not tried.
    """

    extra: ClassVar[str] = "vertex"

    base_url: Address | None = None
    """Where requests go: a proxy or a gateway; left out, `GOOGLE_VERTEX_BASE_URL`, else Google."""
    project: str | None = Field(default=None, min_length=1)
    """The project of Google Cloud; left out, `GOOGLE_CLOUD_PROJECT`."""
    location: str | None = Field(default=None, min_length=1)
    """The region; left out, `GOOGLE_CLOUD_LOCATION`."""

    @field_validator("settings")
    @classmethod
    def _no_settings(cls, settings: Mapping[str, Json]) -> Mapping[str, Json]:
        if settings:
            raise ValueError("the evaluation service takes none")
        return settings

    def missing(self, env: Mapping[str, str]) -> str:
        """Say which variable is missing, or that the package is."""
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
        """Connect at the first question, and close the connection at the end."""
        client = _Client(self, context)
        async with client.connection:
            yield client


def _module() -> str:
    """Return where the client is; nothing where something is not installed."""
    if not all(map(find_spec, _NEEDED)):
        return ""
    return next((name for name in _MODULES if find_spec(name)), "")


class _Access(NamedTuple):
    """How the service is reached, whatever else `os.environ` says."""

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
    """A client of the package, in threads: its asynchronous one cannot evaluate."""

    def __init__(self, judge: Vertex, context: RunContext) -> None:
        self._access = _Access.of(judge, context.env)
        self._failures = Failures("vertex", self._access.credentials, self._access.key)
        self.connection = Connection(self._connect, _close)

    async def answer(self, question: Question) -> Answer:
        """Ask once."""
        try:
            asked = parse_json(question.text)
            metric, version = asked.pop("metric").rsplit("_", 1)
        except (ValueError, LookupError, TypeError, AttributeError):
            why = f"the evaluation service measures, and cannot answer {question.about}"
            raise self._failures.unasked(why) from None
        connected = await self.connection.client()
        # Threads of its own: to wait for one would be taken for a slow answer.
        found = await asyncio.get_running_loop().run_in_executor(
            connected.threads, self._measure, connected, metric, version, asked
        )
        return Answer(text=json.dumps(found), model=f"{metric}_{version}")

    def _connect(self) -> _Connected:
        name = _module()
        if not name:
            raise self._failures.unasked(f"it needs {_PACKAGE}")
        # The package shows progress and logs tracebacks of what it passes on as a result.
        os.environ.setdefault("TQDM_DISABLE", "1")  # noqa: TID251  # tqdm reads it when imported
        logging.getLogger(name).addHandler(logging.NullHandler())
        package = import_module(name)
        from google.auth.exceptions import GoogleAuthError

        try:
            client = self._access.client(package)
            _ = client.evals  # imported here, which takes a while
        except GoogleAuthError as exc:
            raise self._unauthorised(exc) from exc
        except ValueError as exc:
            raise self._failures.unasked(exc) from exc
        return _Connected(client, package.types, ThreadPoolExecutor(_MOST_THREADS))

    def _measure(
        self, connected: _Connected, metric: str, version: str, asked: Mapping[str, Json]
    ) -> dict[str, Json]:
        """Return what the service says of what is asked."""
        from google.auth.exceptions import GoogleAuthError

        types = connected.types
        try:
            result = connected.client.evals.evaluate(
                dataset=_dataset(types, asked),
                metrics=[getattr(types.RubricMetric, metric.upper())(version=version)],
            )
        except GoogleAuthError as exc:
            raise self._unauthorised(exc) from exc
        except ValueError as exc:
            raise self._unprepared(exc) from exc
        found = read_result(result)
        if found["score"] is None and found["error"]:
            self._check(str(found["error"]))
        return found

    def _check(self, error: str) -> None:
        """Pass if `error` is what the service itself says.

        Raises:
            JudgeError: it says that there was no answer.

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
        """Return the error for a metric that could not be found, or data that it does not take."""
        from google.auth.exceptions import GoogleAuthError

        cause: BaseException = exc
        while (deeper := cause.__cause__ or cause.__context__) is not None:
            cause = deeper
        if isinstance(cause, GoogleAuthError):
            return self._unauthorised(cause)
        code = getattr(cause, "code", None)
        if isinstance(code, int):
            return self._failures.refused(int(code), str(cause))
        return self._failures.unasked(cause)

    def _unauthorised(self, exc: Exception) -> JudgeError:
        """Return the error for credentials that could not be had."""
        if getattr(exc, "retryable", False):
            return self._failures.unreached(exc)
        return self._failures.unasked(f"no Google Cloud credentials: {exc}")


def _dataset(types: Any, asked: Mapping[str, Json]) -> Any:
    """Return the one case of `asked`, built as ADK builds it."""
    if "turns" in asked:
        data = types.evals.AgentData.model_validate(asked)
        return types.EvaluationDataset(eval_cases=[types.EvalCase(agent_data=data)])
    frame = import_module("pandas").DataFrame([asked])
    return types.EvaluationDataset(eval_dataset_df=frame)


def read_result(result: Any) -> dict[str, Json]:
    """Return the score of the one metric and the one case in an `EvaluationResult`."""
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
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return float(value)


def _rubric(number: int, verdict: Any) -> dict[str, Json]:
    """Return one verdict; the service leaves out a `verdict` that is no."""
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
