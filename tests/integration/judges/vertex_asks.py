"""Asks the Vertex AI evaluation service; run by its path, under a Python that has its package.

Reads `{"url", "questions"}` from standard input, has the judge `vertex` answer each question, and
writes its answers, or its errors, to the file `answers.json`.  With `"adk"`, which holds a case
and what was observed, google-adk's own evaluators are asked first, over `adk_url`.
"""

# all of it is about packages of Google

import asyncio
import functools
import importlib
import json
import os
import sys
import time
from pathlib import Path

import agentplatform
import google.auth
from google.auth.credentials import AnonymousCredentials
from servers.vertex import TOKEN

from ci_eval.judges.vertex_judge import Vertex
from ci_eval.records.errors import JudgeError
from ci_eval.records.questions import Question
from ci_eval.runtime.context import RunContext

ENV = {"GOOGLE_CLOUD_PROJECT": "shop-1", "GOOGLE_CLOUD_LOCATION": "us-central1"}
EVALUATORS = {
    "safety_v1": "safety_evaluator.SafetyEvaluatorV1",
    "response_evaluation_score": "response_evaluator.ResponseEvaluator",
    "multi_turn_task_success_v1": (
        "multi_turn_task_success_evaluator.MultiTurnTaskSuccessV1Evaluator"
    ),
    "multi_turn_trajectory_quality_v1": (
        "multi_turn_trajectory_quality_evaluator.MultiTurnTrajectoryQualityV1Evaluator"
    ),
    "multi_turn_tool_use_quality_v1": (
        "multi_turn_tool_use_quality_evaluator.MultiTurnToolUseQualityV1Evaluator"
    ),
}


class Credentials(AnonymousCredentials):
    """Those that the stand-in takes."""

    def refresh(self, request):
        self.token = TOKEN


def evaluate(name, case, actual):
    from google.adk.evaluation.eval_case import EvalCase, Invocation
    from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric

    module, _, attribute = EVALUATORS[name].partition(".")
    evaluator = getattr(importlib.import_module(f"google.adk.evaluation.{module}"), attribute)
    metric = EvalMetric(metric_name=name, threshold=1, criterion=BaseCriterion(threshold=1))
    observed = [Invocation.model_validate(each) for each in actual]
    expected = EvalCase.model_validate(case).conversation
    return evaluator(eval_metric=metric).evaluate_invocations(observed, expected).overall_score


def evaluate_all(case, actual, url):
    client = agentplatform.Client
    agentplatform.Client = functools.partial(client, http_options={"base_url": url})
    scores = {name: evaluate(name, case, actual) for name in EVALUATORS}
    agentplatform.Client = client
    return scores


async def answer_all(questions, url):
    answers = []
    context = RunContext(env=ENV, root=Path(), now=time.time)
    async with Vertex(model="vertex", base_url=url).start(context) as client:
        for question in questions:
            try:
                answers.append((await client.answer(Question(**question))).model_dump())
            except JudgeError as exc:
                answers.append(
                    {"error": str(exc), "passing": exc.passing, "throttled": exc.throttled}
                )
    return answers


if __name__ == "__main__":
    google.auth.default = lambda *_args, **_more: (Credentials(), "shop-1")
    given = json.load(sys.stdin)
    told = {}
    if "adk" in given:
        os.environ.update(ENV)
        told["adk"] = evaluate_all(*given["adk"], given["adk_url"])
    told["answers"] = asyncio.run(answer_all(given["questions"], given["url"]))
    Path("answers.json").write_text(json.dumps(told))
