"""Evalsets go from one format to another, and from ADK's older ones to the present one."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.project import GREETS, REFUNDS, TRACKS, turn

from ci_eval.cli.evalset import evalset_conversion
from ci_eval.cli.evalset.command_files import file_at
from ci_eval.cli.evalset.evalset_conversion import Written, convert, migrate_folder, save
from ci_eval.config.open_evalset import open_evalset
from ci_eval.evalsets._evalset_reading import ADK_RESPONSES
from ci_eval.records.cases import EvalCase, SessionInput
from ci_eval.records.errors import EvalSetError, UsageError
from ci_eval.records.stated_expectations import SILENCE, states

OLDER_TURN = {
    "query": "Refund 7",
    "expected_tool_use": [{"tool_name": "refund", "tool_input": {"order": 7}}],
    "expected_intermediate_agent_responses": [{"author": "helper", "text": "wait"}],
    "reference": "Done.",
}
NEW_TURN = {
    **turn("Refund 7", "Done."),
    "intermediate_data": {
        "tool_uses": [{"name": "refund", "args": {"order": 7}}],
        "intermediate_responses": [["helper", [{"text": "wait"}]]],
    },
}
SILENT_TURN = {**turn("Bye", ""), "intermediate_data": {}}
SESSION = SessionInput(app_name="shop", user_id="u", state={"n": 1})


def migrate(source: str, out: str | None, session: SessionInput | None) -> Written | None:
    return evalset_conversion.migrate(file_at(source), out, session)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evalset(folder, *cases, name="smoke.evalset.json", **more):
    data = {"eval_set_id": "s", **more, "eval_cases": list(cases)}
    (folder / name).write_text(json.dumps(data))
    return name


def older(folder, *turns, name="old.test.json"):
    (folder / name).write_text(json.dumps(list(turns)))
    return name


def reread(folder, written: Written):
    save([written])
    opened = open_evalset(folder / written.file.shown, shown=written.file.shown)
    return [case.model_dump(exclude_defaults=True) for case in opened.cases()]


def messages(written):
    """Return the warnings about the conversion, without those about ADK's defaults."""
    topics = (SILENCE, ADK_RESPONSES)
    return [problem.message for problem in written.warnings if problem.concerns not in topics]


# --- By choice --------------------------------------------------------------------------------


def test_adk_to_adk_is_the_same(folder):
    head = {"name": "n", "description": "d", "creation_timestamp": 1.5}
    source = evalset(folder, REFUNDS, {**TRACKS, "tags": ["x"], "mine": {"a": None}}, **head)
    written = convert(source, "adk", "copy.json")

    assert json.loads(written.text) == json.loads((folder / source).read_text())
    assert messages(written) == []


def test_our_own_format_and_back_is_the_same(folder):
    source = evalset(folder, GREETS, {**REFUNDS, "tags": ["x"], "assertions": [{"tokens": 9}]})
    there = convert(source, "cases", None)
    assert (there.file.shown, there.cases, messages(there)) == ("smoke.yaml", 2, [])
    save([there])

    back = convert("smoke.yaml", "adk", "back.json")
    assert json.loads(back.text) == json.loads(convert(source, "adk", "same.json").text)


def test_what_adk_refuses_in_a_converted_file_is_said(folder):
    (folder / "own.yaml").write_text("cases:\n- {id: a, prompt: Hi, state: {n: 1}}\n")

    assert messages(convert("own.yaml", "adk", "a.evalset.json")) == ["is empty, so that ADK fails"]


def test_what_was_said_of_the_whole_set_is_missed_too(folder):
    source = evalset(folder, GREETS, name="a.json", description="d", creation_timestamp=1.5)

    assert messages(convert(source, "cases", "b.yaml")) == [
        "the format 'cases' does not keep 'creation_timestamp'"
    ]
    assert messages(convert(source, "cases", "b.jsonl")) == [
        "the format 'cases' does not keep 'description'",
        "the format 'cases' does not keep 'creation_timestamp'",
        "the format 'cases' does not keep 'eval_set_id'",
    ]


def test_a_target_that_cannot_be_is_refused(folder):
    source = evalset(folder, GREETS)

    with pytest.raises(UsageError, match=r"unknown format to write. Did you mean 'cases'\?"):
        convert(source, "case", None)
    for out in ("x.yaml", "x"):
        with pytest.raises(UsageError, match="does not have an extension of 'adk': json"):
            convert(source, "adk", out)


def test_a_scenario_is_not_made_a_case_without_a_message(folder):
    scenario = {"starting_prompt": "Hi", "conversation_plan": "Buy."}
    source = evalset(folder, GREETS, {"eval_id": "sc", "conversation_scenario": scenario})

    with pytest.raises(EvalSetError, match="sc: is a scenario, which AgentFlow's files cannot"):
        convert(source, "agentflow", "a.json")
    written = convert(source, "cases", None)
    assert reread(folder, written)[1]["conversation_scenario"] == scenario


def test_an_empty_evalset_is_read_as_what_it_was_written_as(folder):
    source = evalset(folder)

    for to, out in (("adk", "a.json"), ("cases", "c.yaml"), ("agentflow", "f.json")):
        assert reread(folder, convert(source, to, out)) == []


NAMES = st.text("abc_é", min_size=1, max_size=5)
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
ARGS = st.dictionaries(WORDS, st.none() | st.booleans() | st.integers() | WORDS, max_size=2)
TURNS = st.builds(
    lambda asked, answered, calls, nodes: (
        {**turn(asked, answered, *calls)} | ({"nodes": nodes} if nodes is not None else {})
    ),
    WORDS,
    WORDS,
    st.lists(st.tuples(NAMES, ARGS), max_size=2),
    st.none() | st.lists(NAMES, max_size=2),
)
CASES = st.lists(
    st.builds(
        lambda eval_id, turns, tags, state: {
            "eval_id": eval_id,
            "conversation": turns,
            "tags": tags,
            "final_session_state": state,
        },
        NAMES,
        st.lists(TURNS, min_size=1, max_size=3),
        st.lists(NAMES, max_size=2),
        ARGS,
    ),
    max_size=3,
    unique_by=lambda case: case["eval_id"],
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(cases=CASES, out=st.sampled_from(["c.yaml", "c.json", "c.jsonl"]))
def test_our_own_format_keeps_all_that_it_has_words_for(folder, cases, out):
    if not cases and out == "c.jsonl":
        return  # a file without a line is no evalset
    source = evalset(folder, *cases)
    written = convert(source, "cases", out)

    assert messages(written) in ([], ["the format 'cases' does not keep 'eval_set_id'"])
    expected = [EvalCase.model_validate(case).model_dump(exclude_defaults=True) for case in cases]
    assert reread(folder, written) == expected


@pytest.mark.parametrize("by", ["agentflow", "adk", "cases"])
def test_what_is_not_stated_stays_apart_from_an_empty_list(folder, by):
    source = folder / "open.yaml"
    source.write_text(
        "cases:\n"
        "- {id: open, prompt: Hello}\n"
        "- {id: none, prompt: Hi, expected_tools: []}\n"
        "- {id: some, prompt: Hey, expected: Yes, expected_tools: [{name: f, args: {}}]}\n"
    )
    there = convert(str(source), by, "there.json")
    save([there])
    back = convert("there.json", "cases", "back.yaml")
    save([back])
    cases = list(open_evalset(folder / "back.yaml", shown="back.yaml").cases())

    assert messages(there) == []
    assert [states(case.conversation[0], "tool_calls") for case in cases] == [False, True, True]
    assert [states(case.conversation[0], "reply") for case in cases] == [False, False, True]


# --- From older formats -----------------------------------------------------------------------


def test_a_list_of_turns_becomes_one_case_of_the_same_id(folder):
    written = migrate(older(folder, OLDER_TURN, {"query": "Bye"}), None, SESSION)

    assert written is not None
    assert (written.file.shown, written.cases) == ("old.test.json", 1)
    assert json.loads(written.text) == {
        "eval_set_id": "old",
        "name": "old",
        "eval_cases": [
            {
                "eval_id": "old.test.json",
                "conversation": [NEW_TURN, SILENT_TURN],
                "session_input": {"app_name": "shop", "user_id": "u", "state": {"n": 1}},
            }
        ],
    }


def test_a_list_of_cases_keeps_its_own_sessions(folder):
    own = {"app_name": "mine", "user_id": "me", "state": {}}
    cases = [
        {"name": "a", "data": [OLDER_TURN], "initial_session": own},
        {"name": "b", "data": [OLDER_TURN]},
    ]
    written = migrate(older(folder, *cases, name="l.evalset.json"), None, SESSION)

    assert written is not None
    apps = [case["session_input"]["app_name"] for case in json.loads(written.text)["eval_cases"]]
    assert apps == ["mine", "shop"]


def test_what_nobody_reads_is_not_dropped_unsaid(folder):
    mocked = {**OLDER_TURN, "mock_tool_output": {"refund": 1}, "extra": 2}
    written = migrate(older(folder, OLDER_TURN, mocked), "new.json", None)

    assert written is not None
    said = [str(problem) for problem in written.warnings]
    assert len(said) == 2
    assert "[1].extra: unknown key, ignored" in said[0]
    assert said[1] == "old.test.json:1: [1].mock_tool_output: is not kept"


def test_only_older_formats_are_migrated(folder):
    assert migrate(evalset(folder, GREETS), None, None) is None
    (folder / "own.yaml").write_text("cases: [{prompt: Hi}]")
    with pytest.raises(UsageError, match="has the format 'cases', which is not an older") as found:
        migrate("own.yaml", None, None)
    assert found.value.hint == "`ci-eval evalset convert own.yaml --to adk` converts it"


def test_what_adk_refuses_is_mended_where_its_meaning_is_plain(folder):
    turn = {"user_content": "Hi", "final_response": "Hello", "expected_tool_use": []}
    value = {
        "evalSetId": "s",
        "name": "shop",
        "eval_cases": [{"eval_id": "a", "conversation": [turn]}],
    }
    (folder / "s.evalset.json").write_text(json.dumps(value))

    written = migrate("s.evalset.json", None, None)

    assert written is not None
    assert written.warnings == ()
    found = json.loads(written.text)
    assert (found["eval_set_id"], found["name"]) == ("s", "shop")
    (case,) = found["eval_cases"]
    assert case["eval_id"] == "a"
    (mended,) = case["conversation"]
    assert mended["user_content"] == {"parts": [{"text": "Hi"}], "role": "user"}
    assert mended["final_response"] == {"parts": [{"text": "Hello"}], "role": "model"}
    save([written])
    assert migrate("s.evalset.json", None, None) is None


def test_a_folder_is_migrated_as_a_whole_or_not_at_all(folder):
    (folder / "deep").mkdir()
    older(folder, OLDER_TURN, name="deep/a.test.json")
    older(folder, OLDER_TURN, name="b.test.json")
    evalset(folder, GREETS)
    assert [each.file.shown for each in migrate_folder(".", None)] == [
        "b.test.json",
        "deep/a.test.json",
    ]

    older(folder, {"query": 1}, name="c.test.json")
    older(folder, {"query": 2}, name="d.test.json")
    with pytest.raises(EvalSetError) as found:
        migrate_folder(".", None)
    assert [problem.file for problem in found.value.problems] == ["c.test.json", "d.test.json"]
    assert found.value.hint == "nothing was migrated"


def test_a_backup_is_kept_when_asked_for_and_never_overwritten(folder):
    written = migrate(older(folder, OLDER_TURN), None, None)
    assert written is not None
    before = (folder / "old.test.json").read_text()
    save([written], backup=True)
    assert (folder / "old.test.json.bak").read_text() == before

    older(folder, {"query": "other"})
    again = migrate("old.test.json", None, None)
    assert again is not None
    with pytest.raises(UsageError, match=r"old.test.json.bak: already exists"):
        save([again], backup=True)
    assert json.loads((folder / "old.test.json").read_text()) == [{"query": "other"}]


def test_where_one_file_cannot_be_written_none_is(folder):
    older(folder, OLDER_TURN, name="a.test.json")
    (folder / "b.test.json").symlink_to("a.test.json")
    before = (folder / "a.test.json").read_text()

    with pytest.raises(UsageError, match="is a symbolic link, not written"):
        save(migrate_folder(".", None))
    assert (folder / "a.test.json").read_text() == before
