"""Progress of a run on stderr."""

import pytest

from ci_eval.cli.run.console_progress import MAX_LINES, Progress
from ci_eval.records.cases import Status
from ci_eval.records.results import TrialResult
from ci_eval.records.trials import Failure, TrialKey


def result(case: str, kind: str, *, agent: str = "weather", words: str = "") -> TrialResult:
    return TrialResult(
        key=TrialKey(agent=agent, evalset="smoke", case=case),
        status=Status.ERROR,
        error=Failure(kind=kind, message=f"it cannot be\n{words}"),
    )


def shown(capsys: pytest.CaptureFixture[str], *results: TrialResult) -> list[str]:
    with Progress(len(results), grouped=False) as progress:
        for each in results:
            progress.landed(each)
    return capsys.readouterr().err.splitlines()[1:]


def test_an_agent_that_cannot_start_is_told_once_with_the_number_of_its_trials(
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = [result(f"c{n}", "start", words=f"at 10:0{n}") for n in range(5)]
    assert shown(capsys, *results) == [
        "ERROR weather · smoke · c0: start: it cannot be at 10:00",
        "ERROR weather · 4 more trials: start: same cause: it cannot be",
    ]


def test_of_like_errors_the_first_is_told_and_each_case_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = [
        result("a", "start"),
        result("a", "start", agent="other"),
        result("b", "raised", words="request 17 of b91"),
        result("c", "raised", words="request 4 of c07"),
        result("d", "raised", words="no order"),
    ]
    assert shown(capsys, *results) == [
        "ERROR weather · smoke · a: start: it cannot be",
        "ERROR other · smoke · a: start: it cannot be",
        "ERROR weather · smoke · b: raised: it cannot be request 17 of b91",
        "ERROR weather · smoke · c: raised, same as b",
        "ERROR weather · smoke · d: raised: it cannot be no order",
    ]


def test_lines_about_different_trials_are_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    failed = [
        result(f"c{n}", "start").model_copy(update={"status": Status.FAILED, "error": None})
        for n in range(MAX_LINES + 5)
    ]
    lines = [line for line in shown(capsys, *failed) if " trials: " not in line]
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == "… see the reports for the others"


def test_what_an_agent_says_gives_a_runner_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    words = "::set-output name=verdict::forged\n  ::stop-commands::x\n##[add-mask]e"
    lines = shown(capsys, result("a", "crash", words=words))
    assert len(lines) == 1
    assert lines[0].startswith("ERROR ")
    assert "##[" not in lines[0]


def test_of_a_long_message_the_beginning_and_the_end_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    [line] = shown(capsys, result("c0", "crash", words="log\n" * 999 + "KeyError: city"))
    assert line.startswith("ERROR weather · smoke · c0: crash: it cannot be …")
    assert line.endswith(" log KeyError: city")
    assert len(line) < 400


def test_trials_that_run_for_long_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    done, *slow = (result(name, "timeout") for name in ("done", "b", "c"))
    with Progress(3, grouped=False) as progress:
        for each in (done, *slow):
            progress.began(each.key)
        progress.landed(done)
        progress.waited(60.0)
        progress.waited(60.0)
    said = [line for line in capsys.readouterr().err.splitlines() if "waiting" in line]
    assert said == ["waiting for 2 trials: b, c (60 s)", "waiting for 2 trials: b, c (120 s)"]


@pytest.mark.parametrize(("count", "lines"), [(0, []), (1, ["::group::1 trial", "::endgroup::"])])
def test_a_log_has_a_group_only_of_trials(
    count: int, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress(count, grouped=True):
        pass
    assert capsys.readouterr().err.splitlines() == lines
