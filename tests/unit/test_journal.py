"""Traces outlive whatever ends the process, and are found again."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ci_eval.journal import Journal, trace_line
from ci_eval.json_text import MAX_DEPTH
from ci_eval.trials import Failure, Trace, TrialKey

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


FAILED = Failure(kind="timeout", message="not done after 5 s")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "report" / "traces.jsonl"


def kept(path: Path, *traces: Trace, fingerprint: str = "f") -> None:
    with Journal(path, resume=False) as journal:
        for each in traces:
            journal.add(each, fingerprint)


def found(path: Path, *cases: str, fingerprint: str = "f") -> list[Trace | None]:
    with Journal(path, resume=True) as journal:
        return [journal.observed(key(case), fingerprint) for case in cases]


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
    assert (row["error"], row["error_kind"]) == ("not done after 5 s", "timeout")
    assert "final_state" not in row


def test_a_line_is_one_line_whatever_was_said() -> None:
    said = {"user_content": {"parts": [{"text": "a\nb\r\u2028\u0085"}]}}
    line = trace_line(trace(invocations=[said]))
    assert len(line.splitlines()) == 1
    assert line.endswith("\n")


# --- Keeping and finding --------------------------------------------------------------------


def test_what_was_observed_is_found_again(path: Path) -> None:
    kept(path, trace("a"), trace("b", attempts=1))
    assert found(path, "a", "b", "c") == [trace("a"), trace("b", attempts=1), None]
    with Journal(path, resume=True) as journal:
        assert journal.observed(key("a", repeat=1), "f") is None


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


def test_the_last_trace_of_a_trial_counts(path: Path) -> None:
    kept(path, trace("a", error=FAILED))
    with Journal(path, resume=True) as journal:
        journal.add(trace("a"), "f")
    assert found(path, "a") == [trace("a")]
    assert len(path.read_text().splitlines()) == 2


def test_a_trace_is_in_the_file_as_soon_as_it_is_added(path: Path) -> None:
    with Journal(path, resume=False) as journal:
        journal.add(trace("a"), "f")
        assert len(path.read_bytes().splitlines()) == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
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
    with Journal(path, resume=True) as journal:
        journal.add(trace("c"), "f")
    assert found(path, "c") == [trace("c")]


ROW = json.loads(trace_line(trace("x"), duration_s=1.0, attempts=1, case_fingerprint="f"))


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
    with Journal(path, resume=True) as journal:
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
