"""Conversations that took place are replayed, and a recording is checked before."""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.span_language import otlp, span

from ci_eval.agents.recorded_agent import Recorded
from ci_eval.records.cases import Content, EvalCase, Invocation, Json
from ci_eval.records.errors import TrialError, UsageError
from ci_eval.records.trials import Failure, Trace, Trial, TrialKey
from ci_eval.run_files.journal import trace_line
from ci_eval.runtime.context import RunContext
from ci_eval.text.file_problems import MAX_PROBLEMS
from ci_eval.text.json_text import TRACE_DEPTH

HELLO = {"user_content": {"parts": [{"text": "Hello"}]}}
CAMEL = {
    "userContent": {"parts": [{"text": "Hello"}]},
    "finalResponse": {"parts": [{"text": "Hi"}]},
}

Conversation = tuple[tuple[Invocation, ...], dict[str, Json] | None]


class Recording:
    """A file that a recorded agent reads."""

    def __init__(self, folder: Path, *rows: object) -> None:
        self.path = folder / "traces.jsonl"
        self.write("".join(json.dumps(row) + "\n" for row in rows))

    def write(self, text: str | bytes) -> None:
        self.path.write_bytes(text if isinstance(text, bytes) else text.encode())

    @property
    def context(self) -> RunContext:
        return RunContext(env={}, root=self.path.parent, now=lambda: 0.0)

    @property
    def problems(self) -> list[str]:
        """What is wrong with it, without the name of the file."""
        said = list(Recorded(recorded="traces.jsonl").check(self.context))
        assert {field for field, _ in said} <= {"recorded"}
        return [message.removeprefix("traces.jsonl:") for _, message in said]

    def conversation(
        self, case: str = "a", *, evalset: str = "e", repeat: int = 0, asks: Sequence[str] = ()
    ) -> Conversation:
        key = TrialKey(agent="bot", evalset=evalset, case=case, repeat=repeat)
        turns = [{"user_content": {"parts": [{"text": text}]}} for text in asks]
        trial = Trial(key, EvalCase.model_validate({"eval_id": case, "conversation": turns}))

        async def hold() -> Conversation:
            async with Recorded(recorded="traces.jsonl").start(self.context) as running:
                session = await running.open(trial)
                held = session.held
                assert held is not None
                return held, await session.close()

        return asyncio.run(hold())

    def failure(self, case: str = "a", **where: Any) -> tuple[str, str]:
        with pytest.raises(TrialError) as caught:
            self.conversation(case, **where)
        return caught.value.kind, str(caught.value)


def texts(conversation: Conversation) -> list[tuple[str, str]]:
    return [(turn.user, turn.response) for turn in conversation[0]]


# --- Lines ----------------------------------------------------------------------------------


def test_a_line_is_a_conversation_in_either_spelling(tmp_path: Path) -> None:
    rows = (
        {"eval_id": "a", "invocations": [HELLO, CAMEL], "final_state": {"k": 1}, "other": 1},
        {"eval_id": "b", "invocations": []},
    )
    recording = Recording(tmp_path, *rows)
    assert recording.problems == []
    assert texts(recording.conversation()) == [("Hello", ""), ("Hello", "Hi")]
    assert recording.conversation()[1] == {"k": 1}
    assert recording.conversation("b") == ((), None)


def test_lines_of_a_case_without_numbers_are_its_repeats(tmp_path: Path) -> None:
    recording = Recording(
        tmp_path,
        {"eval_id": "a", "invocations": [HELLO]},
        {"eval_id": "b", "invocations": []},
        {"eval_id": "a", "invocations": [CAMEL]},
        {"eval_id": "a", "evalset": "f", "invocations": []},
    )
    assert texts(recording.conversation(repeat=0)) == [("Hello", "")]
    assert texts(recording.conversation(repeat=1)) == [("Hello", "Hi")]
    assert texts(recording.conversation("b")) == []
    assert recording.failure(repeat=2)[0] == "not_recorded"


def test_a_line_without_a_number_takes_the_first_that_is_free(tmp_path: Path) -> None:
    recording = Recording(
        tmp_path,
        {"eval_id": "a", "repeat": 0, "invocations": [HELLO]},
        {"eval_id": "a", "invocations": [CAMEL]},
        {"eval_id": "a", "repeat": 2, "invocations": []},
    )
    assert recording.problems == []
    assert texts(recording.conversation(repeat=0)) == [("Hello", "")]
    assert texts(recording.conversation(repeat=1)) == [("Hello", "Hi")]
    assert texts(recording.conversation(repeat=2)) == []


def test_a_number_that_a_line_without_one_has_already_is_refused(tmp_path: Path) -> None:
    row = {"eval_id": "a", "invocations": []}
    assert Recording(tmp_path, row, row, {**row, "repeat": 1}).problems == [
        (
            "3: is repeat 1 of case 'a', like an earlier line without 'repeat'; "
            "set 'repeat' on all lines of this case or on none"
        )
    ]


def test_of_lines_that_give_the_same_number_the_last_counts_as_a_resumed_run_writes_them(
    tmp_path: Path,
) -> None:
    row = {"eval_id": "a", "repeat": 0}
    recording = Recording(tmp_path, {**row, "error": "x"}, {**row, "invocations": [CAMEL]})
    assert texts(recording.conversation()) == [("Hello", "Hi")]


def test_of_several_agents_that_of_the_same_name_is_replayed(tmp_path: Path) -> None:
    row = {"eval_id": "a", "repeat": 0}
    by_bot = {**row, "agent": "bot", "invocations": [HELLO]}
    by_another = {**row, "agent": "other", "invocations": [CAMEL]}
    assert texts(Recording(tmp_path, by_bot, by_another).conversation()) == [("Hello", "")]
    assert texts(Recording(tmp_path, by_another).conversation()) == [("Hello", "Hi")]
    by_nobody = {**row, "agent": "third", "invocations": []}
    assert Recording(tmp_path, by_another, by_nobody).failure() == (
        "not_recorded",
        (
            "traces.jsonl has this case from several agents, 'other', 'third', but not from this "
            "agent; give this agent the name of one of them"
        ),
    )


def test_a_line_may_be_for_one_evalset_and_one_repeat(tmp_path: Path) -> None:
    recording = Recording(
        tmp_path,
        {"eval_id": "a", "invocations": []},
        {"eval_id": "a", "evalset": "e", "invocations": [HELLO]},
        {"eval_id": "a", "repeat": 1, "invocations": [CAMEL]},
        {"eval_id": "b", "evalset": "e", "invocations": []},
    )
    assert texts(recording.conversation(evalset="e")) == [("Hello", "")]
    assert texts(recording.conversation(evalset="f")) == []
    assert texts(recording.conversation(evalset="e", repeat=1)) == [("Hello", "Hi")]


def test_what_was_not_recorded_is_an_error_that_says_what_was(tmp_path: Path) -> None:
    recording = Recording(
        tmp_path,
        {"eval_id": "a", "evalset": "e", "invocations": []},
        {"eval_id": "a", "evalset": "f", "invocations": []},
        {"eval_id": "b", "invocations": []},
    )
    missing = "traces.jsonl has no recording of this case"
    assert recording.failure("c") == ("not_recorded", missing)
    assert recording.failure("b", repeat=2) == ("not_recorded", f"{missing} (repeat 3)")
    assert recording.failure("a", evalset="g") == (
        "not_recorded",
        f"{missing}, only for the evalset e, f",
    )
    assert recording.failure("a", evalset="e", repeat=1) == (
        "not_recorded",
        f"{missing} (repeat 2), only for the evalset f",
    )


def test_a_recorded_error_is_an_error_again(tmp_path: Path) -> None:
    recording = Recording(
        tmp_path,
        {"eval_id": "a", "error": "no answer"},
        {"eval_id": "b", "error": "killed", "error_kind": "timeout", "invocations": [HELLO]},
    )
    assert recording.failure("a") == ("recorded", "no answer")
    assert recording.failure("b") == ("timeout", "killed")


def test_what_a_run_records_is_replayed(tmp_path: Path) -> None:
    key = TrialKey(agent="bot", evalset="e", case="a", repeat=2)
    turn = Invocation.model_validate({**CAMEL, "unseen": True})
    trace = Trace(key=key, invocations=(turn,), final_state={"k": [1]})
    failed = Trace(
        key=key.model_copy(update={"case": "b"}), error=Failure(kind="crash", message="!")
    )
    recording = Recording(tmp_path)
    recording.write(trace_line(trace) + trace_line(failed))
    assert recording.conversation(repeat=2) == ((turn,), {"k": [1]})
    assert recording.failure("b", repeat=2) == ("crash", "!")


def test_blank_lines_marks_and_windows_lines_change_nothing(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    row, other = (json.dumps({"eval_id": name, "invocations": [HELLO]}) for name in "ab")
    recording.write(f"\ufeff{row}\r\n\r\n  \n{other}")
    assert recording.problems == []
    assert texts(recording.conversation("a")) == texts(recording.conversation("b"))
    recording.write(f"\n\n{row}\n")
    assert texts(recording.conversation("a")) == [("Hello", "")]


def test_an_empty_file_records_nothing(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    assert recording.problems == []
    assert recording.failure() == ("not_recorded", "traces.jsonl has no conversations")


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    recording = Recording(tmp_path, {"eval_id": "a", "invocations": [HELLO]})
    assert texts(recording.conversation()) == [("Hello", "")]
    recording.write(json.dumps({"eval_id": "a", "invocations": []}))
    os.utime(recording.path, ns=(1, 1))
    assert texts(recording.conversation()) == []


def test_a_conversation_that_took_place_cannot_go_on(tmp_path: Path) -> None:
    recording = Recording(tmp_path, {"eval_id": "a", "invocations": []})
    key = TrialKey(agent="bot", evalset="e", case="a")
    trial = Trial(key, EvalCase.model_validate({"eval_id": "a", "conversation": []}))

    async def ask() -> None:
        async with Recorded(recorded="traces.jsonl").start(recording.context) as running:
            session = await running.open(trial)
            await session.send(Content.of_text("more", role="user"))

    with pytest.raises(NotImplementedError):
        asyncio.run(ask())


# --- What is wrong with lines ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is not JSON: expecting property name enclosed in double quotes"),
        ('{"eval_id": "b" "x"}', "is not JSON: expecting ',' delimiter"),
        ('{"eval_id": "b"} x', "has extra text after the end"),
        ('{"eval_id": NaN}', "is not JSON: NaN is not a number"),
        ('{"eval_id": "\\ud800"}', "\\ud800 is an unpaired surrogate (half a character)"),
        (b'{"eval_id": "\xff"}', "byte 0xff is not UTF-8"),
        ("5", "expected an object, found 5"),
        ("[]", "expected an object, found a list"),
        ("{}", "'eval_id' is missing"),
        ('{"eval_id": "b"}', "has neither 'invocations' nor an 'error'"),
        ('{"eval_id": "b", "invocations": null}', "has neither 'invocations' nor an 'error'"),
        ('{"eval_id": 5, "error": "x"}', "eval_id: expected text, found 5"),
        ('{"eval_id": "b", "invocations": [], "Error": "x"}', "Error: unknown key. Did you m"),
        ('{"eval_id": "b", "invocations": [], "repeats": 3}', "repeats: unknown key. Did you m"),
        ('{"eval_id": "b", "error": true}', "error: expected text, found true"),
        ('{"eval_id": "b", "error": "", "repeat": "x"}', "repeat: expected a whole number, fou"),
        ('{"eval_id": "b", "invocations": {}}', "invocations: expected a list, found an object"),
        (
            '{"eval_id": "b", "invocations": [{"user_content": {}, "response": "x"}]}',
            "invocations[0].response: unknown key. Did you mean 'final_response'?",
        ),
        ('{"eval_id": "b", "x": ' + "[" * TRACE_DEPTH + "]" * TRACE_DEPTH + "}", "is nested too"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str | bytes, message: str) -> None:
    recording = Recording(tmp_path)
    good = b'{"eval_id": "a", "invocations": []}\n'
    data = line if isinstance(line, bytes) else line.encode()
    recording.write(good + data + b"\n" + good)
    (said,) = recording.problems
    assert said.startswith(f"2: {message}")
    with pytest.raises(UsageError):
        recording.conversation()


def test_every_wrong_line_is_named(tmp_path: Path) -> None:
    recording = Recording(
        tmp_path, {}, {"eval_id": "a", "error": "x"}, {"eval_id": 5, "repeat": []}
    )
    assert recording.problems == [
        "1: 'eval_id' is missing",
        "3: eval_id: expected text, found 5",
        "3: repeat: expected a whole number, found a list",
    ]


def test_a_file_of_wrong_lines_is_not_read_to_its_end(tmp_path: Path) -> None:
    recording = Recording(tmp_path, *([{}] * 3 * MAX_PROBLEMS))
    assert len(recording.problems) == MAX_PROBLEMS


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{\n "eval_id": "a",\n "invocations": []\n}', "a recording; an agent `{recorded: FILE}`"),
        ('{"eval_set_id": "s",\n"eval_cases": []}', "an evalset (adk)"),
        ('[\n{"eval_id": "a"}]', "a list that begins with an object with 'eval_id'"),
        ('{"eval_case_results": [{"response_candidate_results": []}]}', "grades of agents-cli"),
        ('{"id": "x", "events": [5]}', "a session of ADK"),
    ],
)
def test_a_file_that_is_one_document_is_told_by_what_it_is(
    tmp_path: Path, text: str, found: str
) -> None:
    recording = Recording(tmp_path)
    recording.write(text)
    (said,) = recording.problems
    assert said.startswith("1: is not in a known recording format (a JSON object with 'eval_id'")
    assert f"): found {found}" in said


def test_the_file_must_be_one_of_the_repository(tmp_path: Path) -> None:
    root = tmp_path / "suite"
    root.mkdir()
    (tmp_path / "secret").write_text("s")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "folder").mkdir()
    context = RunContext(env={}, root=root, now=lambda: 0.0)

    def said(name: str) -> list[tuple[str, str]]:
        return list(Recorded(recorded=name).check(context))

    assert said("link") == [("recorded", "link: is a symlink out of the repository")]
    assert said("folder") == [("recorded", "folder: is not a file")]
    assert said("missing") == [("recorded", "missing: no such file")]


# --- ADK's result files ---------------------------------------------------------------------


def result(*cases: object) -> dict[str, Any]:
    return {"eval_set_result_id": "r", "eval_set_id": "s", "eval_case_results": list(cases)}


def case_result(case: str, *turns: object) -> dict[str, Any]:
    return {
        "eval_set_file": "s",
        "eval_id": case,
        "final_eval_status": 1,
        "overall_eval_metric_results": [],
        "eval_metric_result_per_invocation": [
            {"actual_invocation": turn, "expected_invocation": HELLO, "eval_metric_results": []}
            for turn in turns
        ],
        "session_id": "1",
    }


CAMEL_RESULT = {
    "evalSetResultId": "r",
    "evalCaseResults": [
        {"evalId": "a", "evalMetricResultPerInvocation": [{"actualInvocation": CAMEL}]}
    ],
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(result(case_result("a", CAMEL))),
        json.dumps(result(case_result("a", CAMEL)), indent=2),
        json.dumps(json.dumps(result(case_result("a", CAMEL)))),
        json.dumps(CAMEL_RESULT),
        json.dumps(json.dumps(CAMEL_RESULT)),
    ],
)
def test_a_result_of_adk_is_replayed(tmp_path: Path, text: str) -> None:
    recording = Recording(tmp_path)
    recording.write(text)
    assert recording.problems == []
    assert texts(recording.conversation()) == [("Hello", "Hi")]


def test_a_case_that_adk_ran_several_times_has_repeats(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    cases = (case_result("a", HELLO), case_result("b", HELLO), case_result("a", CAMEL))
    recording.write(json.dumps(result(*cases)))
    assert texts(recording.conversation(repeat=0)) == [("Hello", "")]
    assert texts(recording.conversation(repeat=1)) == [("Hello", "Hi")]
    assert recording.failure(repeat=2)[0] == "not_recorded"


@pytest.mark.parametrize("turns", [[], None])
def test_a_case_that_failed_in_adk_is_an_error(tmp_path: Path, turns: object) -> None:
    recording = Recording(tmp_path)
    failed = {**case_result("a"), "eval_metric_result_per_invocation": turns}
    recording.write(json.dumps(result(failed)))
    assert recording.failure() == (
        "recorded",
        "ADK's result has no invocation, because the agent failed",
    )


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ('{"eval_set_result_id": "r"}', ["1: has no list 'eval_case_results'"]),
        ('{"eval_set_result_id": "r", "evalCaseResults": {}}', ["1: has no list 'eval_case_re"]),
        ('"{}" x', ["1: has extra text after the end"]),
        ('{"eval_case_results": [\n5]}', ["2: eval_case_results[0]: expected an object, found 5"]),
        (
            (
                '{"eval_case_results": [\n{},\n{"eval_id": "b",\n"eval_metric_result_per_invocation'
                '": [{}, {"actual_invocation": null},\n{"actual_invocation": {}}]}]}'
            ),
            [
                "2: eval_case_results[0]: 'eval_id' is missing",
                (
                    "4: eval_case_results[1].eval_metric_result_per_invocation[0]: "
                    "'actual_invocation' is missing"
                ),
                (
                    "4: eval_case_results[1].eval_metric_result_per_invocation[1]"
                    ".actual_invocation: expected an object, found nothing"
                ),
                (
                    "5: eval_case_results[1].eval_metric_result_per_invocation[2]"
                    ".actual_invocation: 'user_content' is missing"
                ),
            ],
        ),
        ('{"eval_case_results": [\n{"eval_id": "a"}, x]}', ["2: is not JSON: expecting value"]),
    ],
)
def test_a_result_that_is_wrong_is_refused(tmp_path: Path, text: str, messages: list[str]) -> None:
    recording = Recording(tmp_path)
    recording.write(text)
    found = recording.problems
    assert len(found) == len(messages)
    for each, message in zip(found, messages, strict=True):
        assert each.startswith(message)


# --- Recordings of other tools ----------------------------------------------------------------


def talk(*asked: str, answer: str = "yes", **more: object) -> dict[str, object]:
    """Return a conversation as OpenAI has it."""
    messages = []
    for text in asked:
        messages.append({"role": "user", "content": text})
        messages.append({"role": "assistant", "content": answer})
    return {"messages": messages, **more}


def test_a_conversation_without_a_case_belongs_to_all_that_ask_the_same(tmp_path: Path) -> None:
    recording = Recording(tmp_path, talk("Hi", "Bye"), talk("Hi"), talk("Hi", answer="no"))
    assert recording.problems == []
    assert texts(recording.conversation("x", asks=["Hi", "Bye"])) == [("Hi", "yes"), ("Bye", "yes")]
    for case in ("x", "y"):
        assert texts(recording.conversation(case, asks=["Hi"])) == [("Hi", "yes")]
        assert texts(recording.conversation(case, asks=["Hi"], repeat=1)) == [("Hi", "no")]


def test_one_with_a_case_belongs_to_no_other(tmp_path: Path) -> None:
    rows = talk("Hi", eval_id="a"), talk("Hi", answer="no", metadata={"eval_id": "a"})
    recording = Recording(tmp_path, *rows)
    assert texts(recording.conversation("a", asks=["Hi"])) == [("Hi", "yes")]
    assert texts(recording.conversation("a", asks=["Hi"], repeat=1)) == [("Hi", "no")]
    assert recording.failure("b", asks=["Hi"]) == (
        "not_recorded",
        "traces.jsonl has no recording of this case",
    )


def test_a_session_may_have_the_id_of_a_case_which_counts_first(tmp_path: Path) -> None:
    recording = Recording(tmp_path, talk("Hi"), talk("Hi", answer="no", id="a"))
    assert texts(recording.conversation("a", asks=["Hi"])) == [("Hi", "no")]
    assert texts(recording.conversation("b", asks=["Hi"])) == [("Hi", "yes")]
    assert texts(recording.conversation("b", asks=["Hi"], repeat=1)) == [("Hi", "no")]


def test_what_matches_nothing_is_an_error_that_says_how_it_would(tmp_path: Path) -> None:
    recording = Recording(tmp_path, talk("Hi"), talk("Hello"))
    kind, message = recording.failure("a", asks=["Hi!"])
    assert kind == "not_recorded"
    assert message == (
        "traces.jsonl has no recording of this case; 2 conversations in it name no case; "
        "they are matched by the session, if it has the id of the case, or by exactly the same "
        "user messages"
    )
    assert recording.failure("a", asks=["Hi"], repeat=1)[1].startswith(
        "traces.jsonl has no recording of this case (repeat 2); 2 conversations"
    )


def test_what_is_wrong_with_the_recording_of_another_tool_is_named(tmp_path: Path) -> None:
    wrong = {"messages": [{"role": "user", "content": 5}]}
    assert Recording(tmp_path, talk("Hi"), wrong).problems == [
        "2: messages[0].content: expected text or a list of parts, found 5"
    ]


# --- Cases that changed after the recording -------------------------------------------------


def test_a_recording_that_answers_another_message_is_refused(tmp_path: Path) -> None:
    line = {"eval_id": "a", "invocations": [HELLO, CAMEL]}
    said = "traces.jsonl answers another message in turn {}: it has {}; record the case again"
    for row, turn in (
        (line, 2),
        (talk("Hello", "Hello", eval_id="a"), 2),
        (talk("Hello", id="a"), 1),
    ):
        asks = ["Hello", "Bye\n now"][-turn:]
        found = said.format(turn, "'Hello', the case 'Bye now'")
        assert Recording(tmp_path, row).failure(asks=asks) == ("not_recorded", found)
    long = "again and " * 50
    found = Recording(tmp_path, talk(f"{long}1 {long}", eval_id="a")).failure(asks=[f"{long}2"])[1]
    begin = "…" + "again and " * 5
    [head, tail] = found.split(", the case ")
    assert head.startswith(said.partition("{}")[0] + f"1: it has '{begin}1 again and ")
    assert head.endswith("… (552 characters in all)'")
    assert tail == f"'{begin}2'; record the case again"


@pytest.mark.parametrize(
    ("recorded", "asked", "fits"),
    [
        ("I am [AUTH_USER]", "I am administrator", True),
        ("[KEY] and [KEY]", "abc and def", True),
        ("[KEY] and [KEY]", "abc or def", False),
        ("is [KEY] it", "is it", False),
        ("Cancel [all] orders", "Cancel none of my orders", False),
        ("Cancel [all] orders", "Cancel [all] orders", True),
        ("[A] " * 2000 + "end", "x " * 4000, False),
    ],
)
def test_only_the_name_of_a_variable_stands_for_another_text(
    tmp_path: Path, recorded: str, asked: str, fits: bool
) -> None:
    line = {"eval_id": "a", "invocations": [{"user_content": {"parts": [{"text": recorded}]}}]}
    recording = Recording(tmp_path, line)
    if fits:
        assert len(recording.conversation(asks=[asked])[0]) == 1
    else:
        assert "answers another message" in recording.failure(asks=[asked])[1]


def test_what_is_not_the_words_of_the_user_is_not_compared(tmp_path: Path) -> None:
    silent = {"user_content": {"parts": [{"function_response": {"name": "ask"}}]}}
    redacted = {"user_content": {"parts": [{"text": "I am [AUTH_USER]"}]}}
    spaced = {"user_content": {"parts": [{"text": " Hello\n"}, {"text": "you"}]}}
    asks = ["anything", "I am administrator", "Hello  you "]
    line = {"eval_id": "a", "invocations": [silent, redacted, spaced]}
    assert len(Recording(tmp_path, line).conversation(asks=asks)[0]) == 3
    assert (
        "'I am [AUTH_USER]', the case 'You are x'"
        in (Recording(tmp_path, line).failure(asks=["anything", "You are x"])[1])
    )
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([{"role": "user", "content": "Context: … Hi"}]),
        "ci_eval.case": "a",
    }
    trace = Recording(tmp_path, otlp(span("chat", 0, 1, attributes)))
    assert texts(trace.conversation(asks=["Hi"])) == [("Context: … Hi", "")]
