"""The division of cases, limits and budgets among shards."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.project import GREETS

from ci_eval.config.load_config import load
from ci_eval.config.validated_config import Config
from ci_eval.llm.gateway.gateway_clients import gateway_options
from ci_eval.records.errors import UsageError
from ci_eval.records.results import Score, TrialResult
from ci_eval.records.trials import TrialKey
from ci_eval.run.shards import config_of, dealt, durations, noise_of
from ci_eval.run_files.score_table import Columns, Past
from ci_eval.run_files.shard_files import Shard
from ci_eval.runtime.context import RunContext

CONFIG = """\
agents:
  bot:
    python: "shop:answer"
    models: {max_calls: 83, max_cost_usd: 3, requests_per_minute: 60, tokens_per_minute: 600}
evalsets: {smoke: smoke.evalset.json}
criteria: {response_match_score: 0.5}
run: {concurrency: 10}
judge: {max_calls: 72, max_cost_usd: 2, requests_per_minute: 90, tokens_per_minute: 900}
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "ci-eval.yaml").write_text(CONFIG)
    evalset = {"eval_set_id": "smoke", "eval_cases": [GREETS]}
    (tmp_path / "smoke.evalset.json").write_text(json.dumps(evalset))
    context = RunContext({}, tmp_path, lambda: 0.0)
    return load(tmp_path / "ci-eval.yaml", shown="ci-eval.yaml", context=context)


@pytest.mark.parametrize("total", [1, 3, 7, 10])
def test_the_parts_of_all_shards_are_the_limits_of_the_suite(config: Config, total: int) -> None:
    parts = [config_of(config, Shard(number, total)) for number in range(1, total + 1)]
    judging = [each.judging.options for each in parts]
    assert sum(each.run.concurrency for each in parts) == 10
    assert sum(each.max_calls or 0 for each in judging) == 72
    assert sum(each.max_cost_usd or 0 for each in judging) == pytest.approx(2)
    assert sum(each.requests_per_minute or 0 for each in judging) == pytest.approx(90)
    assert sum(each.tokens_per_minute or 0 for each in judging) == pytest.approx(900)
    models = [gateway_options(each.agents["bot"]) for each in parts]
    names = ("max_calls", "max_cost_usd", "requests_per_minute", "tokens_per_minute")
    whole = [sum(getattr(each, name) for each in models) for name in names]
    assert whole == pytest.approx([83, 3, 60, 600])


def test_no_shard_is_left_without_a_call(config: Config) -> None:
    with pytest.raises(UsageError) as caught:
        config_of(config, Shard(1, 73))
    said = "`max_calls: 72` cannot be divided into 73 shards; use 72 or fewer"
    assert str(caught.value) == said


def test_no_shard_is_left_without_a_trial_at_once(config: Config) -> None:
    assert config_of(config, Shard(40, 40)).run.concurrency == 1


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=60), st.integers(1, 40))
def test_every_case_is_dealt_once_and_no_shard_is_much_longer(
    taken: list[float], total: int
) -> None:
    seconds = {("a", "e", str(number)): each for number, each in enumerate(taken)}
    shards = dealt(seconds, total)
    assert sorted(place for each in shards for place in each) == sorted(seconds)
    # Graham's bound for lists in any order; it is tighter for the longest first.
    longest = max(sum(seconds[place] for place in each) for each in shards)
    assert longest <= sum(taken) / total + max(taken) * (1 + 1e-9)


def past(**cases: tuple[float, ...]) -> Past:
    """Return a run whose cases took so long, each trial of them."""
    scores = tuple(
        Score(criterion="ci/c", name=name, status="passed", value=1.0) for name in ("one", "two")
    )
    results = (
        TrialResult(
            key=TrialKey(agent="bot", evalset="smoke", case=case, repeat=number),
            status="passed",
            scores=scores,
            duration_s=each,
        )
        for case, taken in cases.items()
        for number, each in enumerate(taken)
    )
    return Past(None, Columns.of(results))  # type: ignore[arg-type]  # only values count here


def test_each_run_gives_the_mean_of_a_case_once() -> None:
    runs = [past(c=(1, 3)), past(c=(100,)), past(c=(4, 4, 4))]
    assert durations(runs) == {("bot", "smoke", "c"): [2, 100, 4]}


def test_the_noise_is_that_of_the_usual_case() -> None:
    assert noise_of([[9, 11], [90, 110], [5, 500], [7]]) == pytest.approx(0.1 * 2**0.5)
    assert noise_of([[7], [8]]) == noise_of([]) == 0


def test_a_shard_with_a_long_case_gets_less_beside_it() -> None:
    seconds = {("a", "e", str(number)): 1.0 for number in range(90)} | {("a", "e", "long"): 10.0}

    def beside(total: int, noise: float) -> list[int]:
        shards = dealt(seconds, total, noise)
        return [len(each) - 1 for each in shards if ("a", "e", "long") in each]

    assert (beside(10, 0.0), beside(10, 0.3)) == ([0], [0])
    assert (beside(5, 0.0), beside(5, 0.3)) == ([10], [9])
    assert beside(2, 0.3) == [40]  # where both are as likely to be late
