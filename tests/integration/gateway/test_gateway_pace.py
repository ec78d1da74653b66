"""Limits of requests and tokens a minute, which agents, judges and simulated users share."""

import json
from collections.abc import Iterator

import pytest
from servers import openai
from servers.loopback import Reply, Request, as_json, serving
from servers.models import Models
from support.model_projects import PYTHON, ModelProject

from ci_eval.llm.rate_limit import Pace

pytestmark = pytest.mark.processes
JUDGED = (
    "judge: {provider: openai, model: gpt-4.1-mini, samples: 1, mode: off%s}\n"
    "criteria: {adk/final_response_match_v2: 0.5}\n"
)


class Judging(Models):
    """Answers judges, too."""

    def reply(self, request: Request) -> Reply:
        if "is_the_agent_response_valid" in json.dumps(request.body):
            verdict = json.dumps({"reasoning": "so", "is_the_agent_response_valid": "valid"})
            return as_json(openai.completion(verdict))
        return super().reply(request)


@pytest.fixture
def judging() -> Iterator[Judging]:
    found = Judging()
    with serving(found):
        yield found


@pytest.mark.parametrize(
    ("models", "judge"),
    [
        ("{mode: live, requests_per_minute: 3000}", ""),
        ("live", ", requests_per_minute: 3000"),
        ("{mode: live, requests_per_minute: 3000}", ", requests_per_minute: 6000"),
        ("{mode: live, requests_per_minute: 6000}", ", requests_per_minute: 3000"),
    ],
)
def test_agents_and_judges_of_a_provider_obey_one_limit(
    project: ModelProject,
    judging: Judging,
    monkeypatch: pytest.MonkeyPatch,
    models: str,
    judge: str,
):
    project.agent(PYTHON, models, cases=2)
    text = (project.folder / "ci-eval.yaml").read_text()
    project.config(text[: text.index("criteria:")] + JUDGED % judge)
    project.with_keys(judging)
    turns: list[Pace] = []
    wait = Pace.wait

    async def noted(pace: Pace, tokens: int) -> None:
        turns.append(pace)
        await wait(pace, tokens)

    monkeypatch.setattr(Pace, "wait", noted)

    assert project.run().code == 0, project.errors()
    assert len(judging.requests) == len(turns) == 4
    assert {(id(pace), pace.per_request_s) for pace in turns} == {(id(turns[0]), 60 / 3000)}


@pytest.mark.slow  # the second call waits longer than the limit of its trial
def test_waiting_counts_neither_as_latency_nor_towards_the_time_limit(project, models):
    project.agent(PYTHON, "{mode: live, requests_per_minute: 15}", cases=2)
    project.edit("criteria: {", "criteria: {ci/latency_s: {}, ")
    project.add("run: {concurrency: 2, timeout_s: 3}\n")
    project.with_keys(models)

    assert project.run().code == 0, project.errors()
    assert max(project.values("ci/latency_s")) < 3


def test_the_plan_says_when_a_quota_limits_the_run(project, models):
    project.agent(PYTHON, "{mode: record, requests_per_minute: 6000}", cases=3)
    project.with_keys(models)
    assert project.run("--repeats", "2").code == 0
    project.edit("requests_per_minute: 6000", "requests_per_minute: 2, tokens_per_minute: 10")
    quota = json.loads(project.ci_eval("plan", "--repeats", "2", "--json").out)["quotas"]
    said = project.ci_eval("plan", "--repeats", "2").out
    project.edit("mode: record", "mode: auto")
    rest = project.ci_eval("plan", "--repeats", "3").out
    replayed = project.ci_eval("plan", "--repeats", "2").out

    assert [(each["provider"], each["calls"]) for each in quota] == [("openai", 6)]
    assert quota[0]["seconds"] == pytest.approx(6 * quota[0]["input_tokens"])
    assert "openai: about 6 calls take at least" in said
    assert "at 2 requests a minute and 10 tokens a minute" in said
    assert "openai: about 3 calls take at least" in rest
    assert "a minute" not in replayed


def test_the_plan_names_no_provider_that_is_not_known(project, models):
    project.agent(PYTHON, "{mode: record, requests_per_minute: 2}", cases=3)
    project.with_keys(models)
    unknown = project.ci_eval("plan").out
    project.edit("record,", "record, providers: [openai],")
    known = project.ci_eval("plan").out

    assert "unknown provider: about 3 calls take at least" in unknown
    assert "openai: about 3 calls take at least" in known


def test_the_plan_of_shards_compares_the_quota_with_the_durations(project, models):
    project.agent(PYTHON, "{mode: record, requests_per_minute: 2}", cases=3)
    project.add("baseline: {store: file, path: base.json}\n")
    project.with_keys(models)
    project.edit("requests_per_minute: 2", "requests_per_minute: 6000")
    assert project.run("--baseline-save", "always").code == 0
    project.edit("requests_per_minute: 6000", "requests_per_minute: 2")

    said = project.ci_eval("plan", "--shards", "2").out

    assert "openai: about 3 calls take at least 1 min 30 s at 2 requests a minute" in said
    assert said.splitlines()[-1].endswith("the quota limits the run, not the CPU")
