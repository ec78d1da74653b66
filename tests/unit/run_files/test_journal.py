"""Traces outlive whatever ends the process, and are found again."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ci_eval.records.cases import EvalCase, FunctionCall
from ci_eval.records.trials import Failure, Trace, Trial, TrialKey
from ci_eval.run_files.journal import Journal, is_recording, trace_line
from ci_eval.run_files.resume import Answered, Begun
from ci_eval.text.fingerprint import of_case
from ci_eval.text.json_text import MAX_DEPTH
from ci_eval.text.redact import Secrets

HELLO: dict[str, Any] = {
    "userContent": {"parts": [{"text": "Hello ☺"}]},
    "intermediateData": {"toolUses": [{"name": "t", "args": {"x": [1, None]}}]},
}


def key(case: str = "a", repeat: int = 0) -> TrialKey:
    return TrialKey(agent="bot", evalset="e", case=case, repeat=repeat)


def trace(case: str = "a", **more: Any) -> Trace:
    return Trace.model_validate(
        {
            "key": key(case),
            "invocations": [HELLO],
            "final_state": {"k": 1},
            "duration_s": 1.5,
            "attempts": 2,
            **more,
        }
    )


FAILED = Failure(kind="timeout", message="timed out after 5 s")
WAITING = Failure(kind="waiting", message="the agent waits")


def trial(case: str = "a", repeat: int = 0, fingerprint: str = "f", **more: Any) -> Trial:
    asked = EvalCase.model_validate({"eval_id": case, "conversation": [HELLO, HELLO], **more})
    return Trial(key(case, repeat), asked, fingerprint)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "report" / "traces.jsonl"


def opened(path: Path, *, resume: bool = True, suite: str = "shop") -> Journal:
    return Journal(path, suite=suite, resume=resume)


def kept(path: Path, *traces: Trace, fingerprint: str = "f") -> None:
    with opened(path, resume=False) as journal:
        for each in traces:
            journal.add(each, fingerprint)


def found(path: Path, *cases: str, fingerprint: str = "f", suite: str = "shop") -> list[Any]:
    with opened(path, suite=suite) as journal:
        return [journal.observed(trial(case, fingerprint=fingerprint)) for case in cases]


# --- Lines ----------------------------------------------------------------------------------


def test_a_line_says_whose_trace_it_is_and_what_was_done() -> None:
    assert json.loads(trace_line(trace(), extra=1)) == {
        "agent": "bot",
        "evalset": "e",
        "eval_id": "a",
        "repeat": 0,
        "invocations": [
            {
                "user_content": {"parts": [{"text": "Hello ☺"}]},
                "intermediate_data": {"tool_uses": [{"name": "t", "args": {"x": [1, None]}}]},
            }
        ],
        "final_state": {"k": 1},
        "extra": 1,
    }


def test_a_line_says_what_failed() -> None:
    row = json.loads(trace_line(Trace(key=key(), error=FAILED)))
    assert (row["error"], row["error_kind"]) == ("timed out after 5 s", "timeout")
    assert "final_state" not in row


def test_a_line_is_one_line_whatever_was_said() -> None:
    said = {"user_content": {"parts": [{"text": "a\nb\r\u2028\u0085"}]}}
    line = trace_line(trace(invocations=[said]))
    assert len(line.splitlines()) == 1
    assert line.endswith("\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (trace_line(trace()), True),
        (f"\n  \n{trace_line(trace())}", True),
        ('{"invocations": []}\n', True),
        ('{"eval_id": "a", "error": "no network"}\n', True),
        ('{"error": "no network"}\n', False),
        ('{"eval_id": "a", "conversation": []}\n', False),
        ("notes\n", False),
        ("\n", False),
    ],
)
def test_a_recording_is_known_by_its_first_conversation(
    tmp_path: Path, text: str, expected: bool
) -> None:
    file = tmp_path / "record.jsonl"
    file.write_text(text)
    assert is_recording(file) is expected


# --- Keeping and finding --------------------------------------------------------------------


def test_what_was_observed_is_found_again(path: Path) -> None:
    kept(path, trace("a"), trace("b", attempts=1))
    assert found(path, "a", "b", "c") == [trace("a"), trace("b", attempts=1), None]
    with opened(path) as journal:
        assert journal.observed(trial("a", repeat=1)) is None


def test_a_run_begins_anew_unless_it_resumes(path: Path) -> None:
    kept(path, trace("a"))
    kept(path, trace("b"))
    assert found(path, "a", "b") == [None, trace("b")]


def test_there_may_be_nothing_to_resume(path: Path) -> None:
    assert found(path, "a") == [None]
    assert path.read_bytes() == b""


def test_what_failed_or_is_asked_otherwise_now_is_tried_again(path: Path) -> None:
    kept(path, trace("a", error=FAILED), trace("b"))
    assert found(path, "a") == [None]
    assert found(path, "b", fingerprint="other") == [None]
    assert found(path, "b", suite="other") == [None]


def test_the_last_trace_of_a_trial_counts(path: Path) -> None:
    kept(path, trace("a", error=FAILED))
    with opened(path) as journal:
        journal.add(trace("a"), "f")
    assert found(path, "a") == [trace("a")]
    assert len(path.read_text().splitlines()) == 2


def test_a_trace_is_in_the_file_as_soon_as_it_is_added(path: Path) -> None:
    with opened(path, resume=False) as journal:
        journal.add(trace("a"), "f")
        assert len(path.read_bytes().splitlines()) == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_ends_the_process_whole_lines_are_left(path: Path, data: st.DataObject) -> None:
    kept(path, trace("a"), trace("b"), trace("c"))
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    lines = whole[:cut].count(b"\n")
    expected = [trace(case) for case in "abc"[:lines]]
    assert found(path, *"abc") == [*expected, *([None] * (3 - lines))]
    assert path.read_bytes() == b"".join(whole.splitlines(keepends=True)[:lines])
    with opened(path) as journal:
        journal.add(trace("c"), "f")
    assert found(path, "c") == [trace("c")]


ROW = json.loads(
    trace_line(trace("x"), duration_s=1.0, attempts=1, suite="shop", case_fingerprint="f")
)


@pytest.mark.parametrize(
    "line",
    [
        "no json",
        "5",
        "[]",
        "{}",
        "\x00",
        '{"agent": "bot", "evalset": "e", "eval_id": 5, "repeat": 0}',
        json.dumps({name: value for name, value in ROW.items() if name != "repeat"}),
        json.dumps({**ROW, "agent": []}),
        json.dumps({**ROW, "repeat": "x"}),
    ],
)
def test_a_line_of_somebody_else_is_passed_over(path: Path, line: str) -> None:
    kept(path, trace("a"))
    with path.open("a") as file:
        file.write(line + "\n")
    with opened(path) as journal:
        journal.add(trace("b"), "f")
    assert found(path, "a", "b") == [trace("a"), trace("b")]


@pytest.mark.parametrize(
    "change",
    [{"invocations": 5}, {"invocations": [{}]}, {"duration_s": None}, {"attempts": "many"}, None],
)
def test_a_trace_that_another_version_wrote_otherwise_is_tried_again(
    path: Path, change: dict[str, Any] | None
) -> None:
    row = {**ROW, **change} if change else {k: v for k, v in ROW.items() if k != "duration_s"}
    kept(path)
    path.write_text(json.dumps(row) + "\n")
    assert found(path, "x") == [None]


def test_a_trace_may_nest_as_deep_as_what_an_agent_says(path: Path) -> None:
    args: dict[str, Any] = {}
    for _ in range(MAX_DEPTH - 3):
        args = {"x": args}
    call = {"name": "t", "args": args}
    deep = trace(invocations=[{**HELLO, "intermediateData": {"toolUses": [call]}}])
    kept(path, deep)
    assert found(path, "a") == [deep]


# --- Secrets that an earlier run did not know -----------------------------------------------------

SECRET = "plantedsecret-4711-abcdef"
SECRETS = Secrets({}, [("HANDED", SECRET)])
TOLD = {"userContent": {"parts": [{"text": f"It is {SECRET}."}]}}


def test_a_copied_trace_is_redacted_and_any_other_is_copied_unchanged(
    path: Path, tmp_path: Path
) -> None:
    older = tmp_path / "shard" / "traces.jsonl"
    kept(older, trace("a", output=SECRET), trace("b"), trace("c"), trace("d", invocations=[TOLD]))
    with Journal(path, suite="shop", resume=False, secrets=SECRETS) as journal:
        journal.copy(older, lambda key: key.case != "c")
    rows = [json.loads(line) for line in path.read_text().splitlines()]

    assert SECRET not in path.read_text()
    assert [row["eval_id"] for row in rows] == ["a", "b", "d"]
    assert rows[0]["output"] == "[HANDED]"
    assert rows[2]["invocations"][0]["user_content"]["parts"] == [{"text": "It is [HANDED]."}]
    assert older.read_text().splitlines()[1] == path.read_text().splitlines()[1]
    assert found(path, "a", "b", "d") == [None, trace("b"), None]


def test_a_trace_that_cannot_be_redacted_is_not_copied_and_not_counted(
    path: Path, tmp_path: Path
) -> None:
    older = tmp_path / "shard" / "traces.jsonl"
    kept(older, trace("a", output=SECRET), trace("b"))
    rows = [json.loads(line) for line in older.read_text().splitlines()]
    older.write_text("".join(f"{json.dumps(row | {'attempts': 'many'})}\n" for row in rows))
    with Journal(path, suite="shop", resume=False, secrets=SECRETS) as journal:
        assert journal.copy(older, lambda _: True) == 1

    assert [json.loads(line)["eval_id"] for line in path.read_text().splitlines()] == ["b"]


def test_a_resumed_run_keeps_no_line_with_a_secret_and_finds_all_others(path: Path) -> None:
    kept(path, trace("a"), trace("b", output=SECRET), trace("c"))
    cut_off(path, begun(HELLO), case="d")
    cut_off(path, begun(HELLO), begun(HELLO, TOLD), case="e")
    with Journal(path, suite="shop", resume=True, secrets=SECRETS) as journal:
        observed = [journal.observed(trial(case)) for case in "abcde"]
        journal.add(trace("b"), "f")

    assert SECRET not in path.read_text() + underway(path).read_text()
    assert observed == [trace("a"), None, trace("c"), begun(HELLO), None]
    assert found(path, "a", "b", "c") == [trace("a"), trace("b"), trace("c")]


# --- Conversations that are not over ------------------------------------------------------------

ASKED = {"name": "approve", "args": {"order": 7}, "id": "x"}
STOPPED = {**HELLO, "waitsFor": [ASKED]}


def begun(*turns: dict[str, Any], memento: Any = 5) -> Begun:
    answered = Answered(call=FunctionCall.model_validate(ASKED), response={"result": None})
    return Begun.model_validate({"invocations": turns, "memento": memento, "answered": [answered]})


def underway(path: Path) -> Path:
    return path.with_name("underway.jsonl")


def cut_off(path: Path, *steps: Begun, case: str = "a") -> None:
    """Leave behind what a run leaves that is killed after `steps`."""
    with opened(path) as journal:
        for each in steps:
            journal.keep(trial(case), each)


def test_a_conversation_that_was_under_way_is_found_as_far_as_it_had_come(path: Path) -> None:
    cut_off(path, begun(HELLO, memento={"n": 1}), begun(HELLO, STOPPED, memento={"n": 2}))

    assert found(path, "a", "b") == [begun(HELLO, STOPPED, memento={"n": 2}), None]
    assert len(underway(path).read_text().splitlines()) == 2


def test_each_trial_has_its_own(path: Path) -> None:
    cut_off(path, begun(HELLO), case="a")
    cut_off(path, begun(HELLO, HELLO), case="b")

    assert found(path, "a", "b") == [begun(HELLO), begun(HELLO, HELLO)]


def test_a_trace_is_the_end_of_it_and_nothing_is_left(path: Path) -> None:
    with opened(path) as journal:
        journal.keep(trial(), begun(HELLO))
        assert underway(path).exists()
        journal.add(trace(), "f")

    assert not underway(path).exists()
    assert found(path, "a") == [trace()]


def test_what_ended_in_an_error_begins_anew(path: Path) -> None:
    cut_off(path, begun(HELLO), case="b")
    with opened(path) as journal:
        journal.keep(trial(), begun(HELLO))
        journal.add(trace(error=FAILED), "f")

    assert underway(path).exists(), "another one is under way"
    assert found(path, "a", "b") == [None, begun(HELLO)]


def test_what_waits_is_an_error_that_can_be_gone_on_with(path: Path) -> None:
    with opened(path) as journal:
        journal.keep(trial(), begun(STOPPED))
        journal.add(trace(error=WAITING), "f")

    assert found(path, "a") == [begun(STOPPED)]


def test_calls_that_were_metered_are_counted_once_each(path: Path) -> None:
    metered = {**HELLO, "metered": {"calls": 2, "cost_usd": 0.5}}
    with opened(path, resume=False) as journal:
        journal.keep(trial("w"), begun(metered))
        journal.add(trace("w", invocations=[metered], error=WAITING), "f")
        journal.keep(trial("u"), begun(metered))
        journal.keep(trial("u"), begun(metered, metered))
        journal.add(trace("a", error=FAILED), "f")
        journal.add(trace("a", invocations=[metered]), "f")

    with opened(path, suite="other") as journal:
        assert journal.spent == {}
    with opened(path) as journal:
        assert {name: each.calls for name, each in journal.spent.items()} == {"bot": 8}
        assert journal.spent["bot"].cost_usd == 2


def test_metered_calls_of_a_conversation_with_a_secret_are_counted_once(path: Path) -> None:
    metered = {**TOLD, "metered": {"calls": 2, "cost_usd": 0.5}}
    cut_off(path, begun(metered), begun(metered, metered))
    with opened(path) as journal:
        journal.keep(trial("over"), begun(metered))
        journal.add(trace("over", invocations=[metered]), "f")

    with Journal(path, suite="shop", resume=True, secrets=SECRETS) as journal:
        assert journal.observed(trial()) is None
        assert {name: each.calls for name, each in journal.spent.items()} == {"bot": 6}


def test_what_a_human_answers_may_change_and_nothing_else(path: Path) -> None:
    cut_off(path, begun(STOPPED))
    answers = {"approve": {"result": True}}
    with opened(path) as journal:
        answered = trial(fingerprint="other", human_answers=answers, rerun_on_resume=True)
        assert journal.observed(answered) == begun(STOPPED)
        mocked = {"tools": {"find": {"result": 1}}}
        assert journal.observed(trial(tool_mocks=mocked)) is None
        assert journal.observed(trial(conversation=[HELLO])) is None


def test_what_was_observed_to_its_end_counts_only_for_the_answers_it_got(path: Path) -> None:
    answered = trial(human_answers={"approve": {"result": True}})
    kept(path, trace(), fingerprint=of_case(trial().case))
    with opened(path) as journal:
        changed = answered._replace(fingerprint=of_case(answered.case))
        assert journal.observed(changed) is None


def test_another_suite_is_another_conversation(path: Path) -> None:
    cut_off(path, begun(HELLO))

    assert found(path, "a", suite="other") == [None]


def test_a_run_that_begins_anew_forgets_what_was_under_way(path: Path) -> None:
    cut_off(path, begun(HELLO))
    kept(path, trace("b"))

    assert found(path, "a") == [None]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_is_cut_off_or_damaged_the_step_before_is_left(
    path: Path, data: st.DataObject
) -> None:
    steps = [begun(HELLO, memento="one"), begun(HELLO, HELLO, memento="two")]
    underway(path).unlink(missing_ok=True)
    cut_off(path, *steps)
    whole = underway(path).read_bytes()
    first = whole.index(b"\n") + 1
    at = data.draw(st.integers(first, len(whole) - 2))
    damaged = data.draw(st.sampled_from([whole[:at], whole[:at] + b"\x00" + whole[at + 1 :]]))
    underway(path).write_bytes(damaged)

    assert found(path, "a") == [steps[0]]


def test_a_line_that_another_version_wrote_otherwise_begins_anew(path: Path) -> None:
    cut_off(path, begun(HELLO))
    row = json.loads(underway(path).read_text())
    underway(path).write_text(json.dumps({**row, "invocations": [5]}) + "\n")

    assert found(path, "a") == [None]


def test_a_link_is_not_written_through(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    path.parent.mkdir()
    underway(path).symlink_to(target)
    cut_off(path, begun(HELLO))

    assert target.read_text() == "mine"
    assert found(path, "a") == [begun(HELLO)]


def test_what_the_agent_wrote_is_kept_in_the_journal_and_in_no_recording(path: Path) -> None:
    kept(path, trace(output="looking\n"))
    assert json.loads(path.read_text())["output"] == "looking\n"
    assert "looking" not in trace_line(trace(output="looking\n"))
    with opened(path) as journal:
        found = journal.observed(trial())
    assert isinstance(found, Trace)
    assert found.output == "looking\n"
