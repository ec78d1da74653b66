"""What the simulations of the gate draw, and how they count: their claims rest on it."""

import importlib
import math
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np  # noqa: TID253  # the draws are its arrays
import pytest
from support.slow_imports import Later

from ci_eval.records.cases import Status
from ci_eval.records.results import Score, TrialResult
from ci_eval.records.trials import TrialKey
from ci_eval.run import rerun
from ci_eval.run.rerun import Redraw, Redraws
from ci_eval.run_files.run_file import read_run
from ci_eval.run_files.score_table import Columns

stats = Later("scipy.stats")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
BOTH_OF_HALVES = 1 / 4 + math.asin(0.5) / (2 * math.pi)
"""How often two normal variables with a correlation of one half are both below their median."""


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.fixture
def populations() -> ModuleType:
    return importlib.import_module("populations")


@pytest.fixture
def pull_requests() -> ModuleType:
    return importlib.import_module("pull_requests")


@pytest.fixture
def peers() -> ModuleType:
    return importlib.import_module("peers")


@pytest.fixture
def gate() -> ModuleType:
    return importlib.import_module("gate")


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- Populations ------------------------------------------------------------------------------


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
def test_chances_are_beta_under_each_criterion_and_go_together_in_a_case(populations, correlation):
    chances = populations.beta(rng(), 20_000, correlation)

    assert chances.shape == (populations.CRITERIA, 20_000)
    for each in chances:
        assert stats.kstest(each, stats.beta(8, 2).cdf).pvalue > 0.001
    found = np.corrcoef(chances)[np.triu_indices(populations.CRITERIA, 1)]
    assert np.allclose(found, correlation, atol=0.05)


@pytest.mark.parametrize("rate", [1 / 300, 1 / 1000])
def test_a_nearly_steady_agent_fails_one_trial_in_so_many(populations, rate):
    chances = populations.flaking(rate)(rng(), 5, 0.5)
    observed = populations.Observer(chances, 1, 0.5).observe(rng(), 100_000)

    assert (1 - observed).mean(axis=(0, 2)) == pytest.approx(rate, rel=0.2)


def test_what_never_or_always_passes_is_observed_so(populations):
    chances = np.tile([0.0, 1.0], (populations.CRITERIA, 1))
    observed = populations.Observer(chances, 1, 0.5).observe(rng(), 50)

    assert (observed == chances).all()


def test_the_outcomes_of_one_trial_go_together_and_those_of_two_do_not(populations):
    chances = np.full((populations.CRITERIA, 40_000), 0.5)
    one, other = populations.Observer(chances, 1, 0.5).observe(rng(), 2)

    assert one.mean(axis=1) == pytest.approx(0.5, abs=0.01)
    assert (one[0] * one[1]).mean() == pytest.approx(BOTH_OF_HALVES, abs=0.01)
    assert (one[0] * other[0]).mean() == pytest.approx(1 / 4, abs=0.01)


def test_the_trials_of_one_run_may_go_together_and_those_of_two_runs_do_not(populations):
    chances = np.full((populations.CRITERIA, 40_000), 0.5)
    observer = populations.Observer(chances, 1, 0.0, within=0.5)
    draws = rng()
    (one, other), (later,) = observer.observe(draws, 2), observer.observe(draws, 1)

    assert (one[0] * other[0]).mean() == pytest.approx(BOTH_OF_HALVES, abs=0.01)
    assert (one[0] * later[0]).mean() == pytest.approx(1 / 4, abs=0.01)


def test_marks_are_binomial(populations):
    chances = np.full((populations.CRITERIA, 40_000), 0.8)
    observed = populations.Observer(chances, 4, 0.5).observe(rng(), 1)

    shares = [(observed == mark / 4).mean() for mark in range(5)]
    assert sum(shares) == pytest.approx(1)
    assert shares == pytest.approx(stats.binom(4, 0.8).pmf(range(5)), abs=0.01)


def test_a_change_takes_from_each_case_what_it_says(populations):
    chances = np.array([[0.9, 0.04, 0.5]] * populations.CRITERIA)

    def lost(change: str) -> list[list[float]]:
        before, after = populations.CHANGES[change](chances)
        return (before - after).tolist()

    nothing = [0.0, 0.0, 0.0]
    assert lost("unchanged") == [nothing] * 4
    ten, *others = lost("10 points in one criterion")
    assert ten == pytest.approx([0.1, 0.04, 0.1])
    assert others == [nothing] * 3
    assert np.allclose(lost("5 points in all four"), [0.05, 0.04, 0.05])
    assert lost("a solid case breaks") == [[1.0, 0.0, 0.0], *[nothing] * 3]


# --- One pull request -------------------------------------------------------------------------


def test_the_gate_is_given_what_it_would_make_of_results(pull_requests):
    values = np.array([[[1, 0, 1]] * 4, [[0.5, 1, 1]] * 4])
    made = pull_requests.columns_of(values, pull_requests.Scene())
    real = Columns.of(
        TrialResult(
            key=TrialKey(agent="a", evalset="e", case=str(case), repeat=repeat),
            status=Status.PASSED,
            scores=tuple(
                Score(criterion="ci/c", name=f"c{number}", status=Status.PASSED, value=value)
                for number, value in enumerate(row)
            ),
            case_fingerprint="same",
        )
        for repeat, trial in enumerate(values)
        for case, row in enumerate(trial.T.tolist())
    )

    def units(columns: Columns) -> dict[object, object]:
        return {
            key: {case: cell.units for case, cell in column.items()}
            for key, column in columns.groups.items()
        }

    assert units(made) == units(real)
    assert units(made)["a", "e", "c3"]["0"] == ((1.0, 0.5),)
    assert made.evalsets["e"].numbers == real.evalsets["e"].numbers
    assert made.evalsets["e"].contents == real.evalsets["e"].contents


@pytest.mark.slow
def test_it_does_not_matter_who_simulates_which(pull_requests):
    scene = pull_requests.Scene(cases=5, change="10 points in one criterion")
    parts = pull_requests.Counts()
    for numbers in (range(2, 4), range(2)):
        parts.add(pull_requests.simulate(scene, 1, numbers))

    assert parts.prs == 4
    assert parts == pull_requests.simulate(scene, 1, range(4))
    assert parts != pull_requests.simulate(scene, 2, range(4))


def test_changes_are_compared_on_the_same_draws(pull_requests):
    scenes = [pull_requests.Scene(change=change) for change in ("unchanged", "a solid case breaks")]
    one, other = (pull_requests.draw(scene, scene.rng(1, 0)) for scene in scenes)

    assert len(one.past) == 5
    assert (np.array(one.past)[:, :, 1:] == np.array(other.past)[:, :, 1:]).all()
    assert (one.now[:, 1:] == other.now[:, 1:]).all()
    assert (other.now[:, 0, 0] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("cases", [30, 100])
def test_the_flip_of_an_agent_that_never_varies_is_found_and_its_absence_too(pull_requests, cases):
    scene = pull_requests.Scene("deterministic", cases=cases)
    unchanged = pull_requests.simulate(scene, 1, range(3))
    broken = pull_requests.simulate(
        pull_requests.Scene("deterministic", "a solid case breaks", cases), 1, range(3)
    )

    assert not unchanged.found["blocked"]
    assert broken.found["blocked"] == broken.found["named"] == broken.prs == 3


@pytest.mark.slow
def test_a_solid_case_that_broke_is_confirmed_and_blocks(pull_requests):
    scene = pull_requests.Scene(change="a solid case breaks", cases=30, reruns=True)
    found = pull_requests.simulate(scene, 1, range(3))

    assert found.found["blocked"] == 3
    assert all(1 < share <= 3 for share in found.trials)


def test_what_is_drawn_again_is_counted_where_it_belongs(pull_requests, monkeypatch):
    again = Redraw(range(1, 2), frozenset({("a", "e")}), {("a", "e", "2"): range(5)})
    more = [Redraws(again), None]
    monkeypatch.setattr(pull_requests, "next_round", lambda *_: more.pop(0))
    scene = pull_requests.Scene("deterministic", cases=4, reruns=True)
    tried = pull_requests._PullRequest(scene, scene.rng(1, 0))
    tried.rerun()

    assert tried.tally.trials == 4 * 3 + 4 * 3 + 5
    for name, chances in zip(("c0", "c1", "c2", "c3"), tried.draws.agents.after, strict=True):
        for case, chance in enumerate(chances):
            cell = tried.tally.columns.groups["a", "e", name][str(case)]
            assert cell.units == ((chance,) * 3,) * 2
            assert cell.confirming == (chance,) * (5 * (case == 2))


@pytest.mark.parametrize("change", ["unchanged", "a solid case breaks"])
def test_both_arms_find_what_broke_and_nothing_else(pull_requests, change):
    scene = pull_requests.Scene(
        "deterministic", change, 10, 1, 1, reruns=True, arms=True, criteria=1, day=0.0
    )
    found = pull_requests.simulate(scene, 1, range(3))

    broke = change != "unchanged"
    assert found.found["blocked"] == found.found["named"] == 3 * broke
    assert all((share > 1) is broke for share in found.trials)


def test_a_case_that_is_stuck_in_both_arms_blocks_nothing(pull_requests):
    scene = pull_requests.Scene(
        "deterministic", cases=10, repeats=1, runs=1, reruns=True, arms=True, stuck=0.3
    )
    found = pull_requests.simulate(scene, 1, range(3))

    assert not found.found["blocked"]
    assert max(found.trials) > 1


def test_what_no_budget_allows_is_not_drawn(pull_requests, monkeypatch):
    forever = Redraws(Redraw(range(1, 2), frozenset({("a", "e")})))
    monkeypatch.setattr(rerun, "wanted", lambda *_: forever)
    scene = pull_requests.Scene("deterministic", cases=4, reruns=True)
    tried = pull_requests._PullRequest(scene, scene.rng(1, 0))
    tried.rerun()

    assert tried.tally.trials == 3 * scene.planned


# --- The rules of peers -----------------------------------------------------------------------


def by_peers(peers: ModuleType, now: list[float], *past: list[float]) -> set[str]:
    """Return the findings that block for these values of each criterion, by case."""
    values = [np.tile(run, (1, 4, 1)) for run in (now, *past)]
    truth = np.array(values[1:]).mean(axis=(0, 1))
    agents = SimpleNamespace(before=truth)
    return {*peers.peers(SimpleNamespace(agents=agents, past=values[1:], now=values[0]))}


def test_peers_block_what_their_rules_say(peers):
    assert by_peers(peers, [1, 1, 1], [1, 1, 1]) == set()
    # A drop of 0.03 flips no case.
    assert by_peers(peers, [0.91, 1, 1], [1, 1, 1]) == {"mean dropped"}
    assert by_peers(peers, [0.0, 1, 1], [0, 1, 1]) == {"mean below 0.8"}
    # What failed in the newest run cannot flip, whatever there was before.
    assert by_peers(peers, [0, 1, 1], [0, 1, 1], [1, 1, 1]) == {
        "mean below 0.8",
        "mean 5 points below",
    }
    assert by_peers(peers, [0, 1, 1], [1, 1, 0]) >= {"any case flips"}
    assert "paired t-test" in by_peers(peers, [0.1, 0.2, 0.15] * 9, [0.9] * 27)


def test_the_t_test_is_that_of_scipy(peers):
    blocked = 0
    for seed in range(200):
        differences = rng(seed).normal(-0.02, 0.1, size=(4, 40))
        smallest = stats.ttest_1samp(differences, 0, axis=1, alternative="less").pvalue.min()
        assert peers.t_test(differences) == (smallest <= 0.02 / 4)
        blocked += peers.t_test(differences)
    assert 20 < blocked < 180
    assert not peers.t_test(np.zeros((4, 40)))
    assert peers.t_test(np.full((4, 40), -0.01))


# --- The table --------------------------------------------------------------------------------


def test_each_row_stands_once_and_says_what_can_be_counted(gate):
    rows = list(gate.rows())

    assert len({(row.part, row.scene) for row in rows}) == len(rows)
    assert {bound.rule for row in rows for bound in row.bounds} <= {*gate.RULES, *gate.AMOUNTS}


def test_a_bound_is_met_at_its_edge_and_never_by_nothing(gate, pull_requests):
    def counts(blocked: int, prs: int = 100) -> object:
        found = pull_requests.Counts(prs=prs)
        found.found["blocked"] = blocked
        return found

    bound = gate.Bound("blocked", most=0.02)
    assert bound.met(counts(2))
    assert not bound.met(counts(3))
    assert not bound.met(counts(0, prs=0))
    assert gate.Bound("blocked", least=1.0).met(counts(100))
    assert not gate.Bound("blocked", least=1.0).met(counts(99))


def test_a_rough_bound_is_missed_where_the_interval_lies_beyond_too(gate, pull_requests):
    def met(blocked: int) -> bool:
        counts = pull_requests.Counts(prs=100)
        counts.found["blocked"] = blocked
        return gate.Bound("blocked", most=0.02, roughly=True).met(counts)

    assert met(4)  # from 1.6 %
    assert not met(5)  # from 2.2 %


def test_trials_are_bounded_on_average_and_at_most(gate, pull_requests):
    counts = pull_requests.Counts(prs=4, trials=[1.0, 1.0, 1.0, 2.0])

    assert gate.Bound("trials", most=1.25).met(counts)
    assert not gate.Bound("trials", most=1.24).met(counts)
    assert gate.Bound("most trials", most=2.0).met(counts)
    assert not gate.Bound("most trials", most=1.9).met(counts)
    assert gate.amounts(counts.trials).startswith("1.25 [")
    assert gate.amounts(counts.trials).endswith(", most 2.00")


def test_a_missed_bound_is_said_and_ends_with_1_where_that_is_asked(gate, monkeypatch, capsys):
    scene = gate.Scene("deterministic", cases=3)
    rows = [gate.Row("part", scene, (gate.Bound("blocked", least=1.0),))]
    monkeypatch.setattr(gate, "rows", lambda: rows)

    assert gate.main(2, 1, "", check=True) == 1
    assert gate.main(2, 1, "", check=False) == 0
    assert gate.main(2, 1, "nothing like it", check=True) == 1
    out = capsys.readouterr().out
    assert "blocked at least 100%: **missed**" in out
    table = [line for line in out.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert "| 0.0 [0.0, 65.8] |" in table[2]  # Wilson: none of 2


# --- Two long runs ----------------------------------------------------------------------------


def test_the_long_runs_that_are_compared_are_runs(tmp_path):
    importlib.import_module("compare_many").write_run(tmp_path / "run.json", 10, 5, broken=1)
    run = read_run(tmp_path / "run.json", shown="run.json")
    values = [[score.value for score in result.scores] for result in run.results()]

    assert [value for value, _ in values] == [0.0] * 5 + [1.0, 1.0, 0.0, 1.0, 1.0]
    assert [value for _, value in values] == [0.4] + [0.8] * 9
    assert {result.key.case for result in run.results()} == {"case_0", "case_1"}
