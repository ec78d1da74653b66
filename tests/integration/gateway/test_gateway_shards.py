"""Shards that record calls of models: of agents and of judges."""

import json
from pathlib import Path

import pytest
from servers import openai
from servers.loopback import Reply, Request, as_json, serving
from servers.models import Models
from support.commands import Ended
from support.git_suites import Suite
from support.model_projects import PYTHON

pytestmark = pytest.mark.processes
CONFIG = """\
name: shop
agents:
  bot: {python: "bot:answer", models: {mode: auto, cassette: models.jsonl}}
  other: {python: "bot:answer", models: {mode: auto, cassette: models.jsonl}}
evalsets: {smoke: evals/smoke.csv}
criteria: {response_match_score: 0.1, adk/final_response_match_v2: 0.1}
judge: {provider: openai, model: gpt-4.1-mini, samples: 1, cassette: judge.jsonl}
"""
RECORD = ("--models", "record", "--judge-mode", "record", "--repeats", "2")
REPLAY = ("--models", "replay", "--judge-mode", "replay", "--repeats", "2")


class Steady(Models):
    """Says the same to the same question, in `round` 1, 2 …; and judges."""

    round = 1

    def reply(self, request: Request) -> Reply:
        if "is_the_agent_response_valid" in json.dumps(request.body):
            verdict = {"reasoning": "so", "is_the_agent_response_valid": "valid"}
            return as_json(openai.completion(json.dumps(verdict)))
        return super().reply(request)

    def said(self, text: str) -> str:
        return f"{text}, round {self.round}"


@pytest.fixture
def models():
    found = Steady()
    with serving(found):
        yield found


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    suite = Suite(tmp_path / "shop")
    rows = "".join(f"c{n},question {n},question {n}\n" for n in range(3))
    ignored = "shards\nmerged\nci-eval-report\n.ci-eval\n__pycache__\n"
    files = {"bot.py": PYTHON, "ci-eval.yaml": CONFIG, ".gitignore": ignored}
    suite.commit("agent", **{**files, "evals/smoke.csv": f"id,prompt,expected\n{rows}"})
    return suite


def contents(suite: Suite) -> tuple[str, list[str]]:
    """Return both cassettes; the lines of judges are in the order of their answers."""
    judge = (suite.folder / "judge.jsonl").read_text().splitlines()
    return (suite.folder / "models.jsonl").read_text(), sorted(judge)


def remove(suite: Suite) -> None:
    for name in ("models.jsonl", "judge.jsonl"):
        (suite.folder / name).unlink(missing_ok=True)


def in_shards(suite: Suite, models: Models, *args: str) -> list[str]:
    folders = [f"shards/{number}" for number in (1, 2)]
    for number, folder in enumerate(folders, 1):
        shard = ("--shard", f"{number}/2", "--out", folder)
        ended = suite.ci_eval("run", *shard, *args, **models.environment())
        assert ended.code == 0, ended.err
    return folders


@pytest.mark.slow
def test_shards_record_the_cassettes_of_a_whole_run(suite: Suite, models: Steady):
    assert suite.ci_eval("run", *RECORD, **models.environment()).code == 0
    whole = contents(suite)
    remove(suite)

    folders = in_shards(suite, models, *RECORD)
    assert not (suite.folder / "models.jsonl").exists()
    merged = suite.ci_eval("merge", *folders, "--out", "merged", *RECORD, **models.environment())

    assert merged.code == 0, merged.err
    assert "added the recordings of 2 shards to models.jsonl" in merged.err
    assert contents(suite) == whole
    assert suite.ci_eval("run", *REPLAY).code == 0
    assert (
        json.loads((suite.folder / "merged/report.json").read_text())["meta"]["modified"] is False
    )


@pytest.mark.slow
def test_what_shards_record_anew_replaces_what_was_recorded(suite: Suite, models: Steady):
    suite.ci_eval("run", *RECORD, **models.environment())
    suite.commit("cassettes")
    models.round = 2

    folders = in_shards(suite, models, *RECORD)
    assert "round 2" not in contents(suite)[0]
    suite.ci_eval("merge", *folders, "--out", "merged", *RECORD, **models.environment())

    merged = contents(suite)
    assert "round 1" not in merged[0]
    suite.ci_eval("run", *RECORD, **models.environment())
    assert contents(suite)[0] == merged[0]


@pytest.mark.slow
def test_shards_add_only_what_is_not_recorded(suite: Suite, models: Steady):
    suite.ci_eval("run", *RECORD, "--case", "c[01]", **models.environment())
    first, asked = contents(suite), len(models.requests)

    folders = in_shards(suite, models, "--repeats", "2")
    added = len(models.requests) - asked
    suite.ci_eval("merge", *folders, "--out", "merged", "--repeats", "2", **models.environment())

    # One case, two agents, two repeats; a shard judges equal answers once.
    assert 2 * 2 + 1 <= added <= 2 * 2 + 2
    assert set(first[0].splitlines()) < set(contents(suite)[0].splitlines())
    assert suite.ci_eval("run", *REPLAY).code == 0


@pytest.mark.slow
def test_what_shards_recorded_is_checked(suite, models):
    in_shards(suite, models, *RECORD)
    models.round = 2
    folders = in_shards(suite, models, *RECORD)  # forgets what was in its folders

    def merge() -> Ended:
        args = ("merge", *folders, "--out", "merged", *RECORD)
        return suite.ci_eval(*args, **models.environment())

    assert merge().code == 0
    assert "round 1" not in contents(suite)[0]

    own = [*(suite.folder / folders[0] / "cassettes").iterdir()]
    name = next(each.name for each in own if "model cassette" in each.read_text())
    first, second = (suite.folder / each / "cassettes" / name for each in folders)
    text = second.read_text()
    for cut in ("", text[:-2], "".join(text.splitlines(keepends=True)[:-1])):
        second.write_text(cut)
        ended = merge()
        said = "shard 2/2 (shards/2) cannot be merged: its cassettes lack calls that it recorded"
        assert (ended.code, said in ended.err) == (4, True)
    second.write_text(text + first.read_text().splitlines()[-1] + "\n")
    ended = merge()
    assert ended.code == 4
    assert "shard 2/2 (shards/2) cannot be merged: like shard 1/2 (shards/1)," in ended.err
    assert "(shards/1), it recorded calls of " in ended.err

    for wrong in ("not a cassette\n", '{"ci-eval model cassette":9}\n'):
        second.write_text(wrong * text.count("\n"))
        ended = merge()
        assert (ended.code, "Traceback" in ended.err) == (4, False)
        assert f"shards/2/cassettes/{name} is" in ended.err
