"""Cases come from files, prompts, scenarios, and from what an agent did."""

import json

import pytest
from support.project import GREETS, REFUNDS

from ci_eval.cli.evalset import added_cases
from ci_eval.records.errors import UsageError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def saved(folder, name, text):
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return path


def test_a_prompt_makes_the_case_that_our_own_format_makes_of_it(folder):
    case = added_cases.from_prompt("Where is order 9?", "In Oslo.", None, now=1.0)
    path = saved(folder, "c.yaml", "prompt: Where is order 9?\nexpected: In Oslo.\n")

    (same,) = added_cases.from_file(path, shown="c.yaml")
    assert case.eval_id == same.eval_id
    assert case.eval_id.startswith("where-is-order-9-")
    assert case.conversation == same.conversation
    assert added_cases.from_prompt("Hi", None, "mine", now=1.0).eval_id == "mine"
    for blank in ("", "  \n"):
        with pytest.raises(UsageError, match="must not be empty"):
            added_cases.from_prompt(blank, None, None, now=1.0)
    with pytest.raises(UsageError) as found:
        added_cases.from_prompt("Hi", None, " x", now=1.0)
    assert str(found.value) == "id: must not begin or end with a blank, found ' x'"


def test_a_file_holds_one_case_or_a_whole_evalset(folder):
    evalset = {"eval_set_id": "s", "eval_cases": [GREETS, REFUNDS]}
    as_yaml = "eval_id: greets\nconversation:\n  - user_content: {parts: [{text: Hello}]}\n"

    def ids(name, text):
        found = added_cases.from_file(saved(folder, name, text), shown=name)
        return [case.eval_id for case in found]

    assert ids("one.json", GREETS) == ["greets"]
    assert ids("one.yaml", as_yaml) == ["greets"]
    assert ids("all.json", evalset) == ["greets", "refunds"]
    assert ids("own.json", {"id": "a", "prompt": "Hi"}) == ["a"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", '{"eval_id": "a",\n "conversation": [{\n  "x": 1}]}', "a.json:3: conversation"),
        ("a.yaml", "# a case\n\nprompt: Hi\nexpcted: Ho\n", "a.yaml:4: "),
        ("a.json", '{"prompt": "Hi",\n "expcted": "Ho"}', "a.json:2: "),
    ],
)
def test_what_is_wrong_with_a_case_is_said_with_its_line(folder, name, text, said):
    with pytest.raises(UsageError) as found:
        added_cases.from_file(saved(folder, name, text), shown=name)
    assert said in str(found.value)


def test_scenarios_have_the_ids_that_adk_gives_them(folder):
    scenarios = [
        {"starting_prompt": "Hällo 😀", "conversation_plan": "Say bye."},
        {"startingPrompt": "B", "conversationPlan": "C"},
    ]
    path = saved(folder, "s.json", {"scenarios": scenarios})
    found = added_cases.from_scenarios(str(path), None, now=1.0)

    # The first was given by google-adk 2.13.0; the second is what sha256sum says of the keys in
    # their order, as Python writes them, with a user_persona of null.
    assert [case.eval_id for case in found] == ["c4eb2fee", "d42b4719"]
    saved(folder, "none.json", {"scenarios": []})
    with pytest.raises(UsageError, match=r"^none\.json contains no scenarios"):
        added_cases.from_scenarios("none.json", None, now=1.0)


def test_an_initial_session_is_empty_where_it_says_nothing(folder):
    path = saved(folder, "i.json", {"state": {"n": 1}})
    session = added_cases.read_initial_session(str(path))
    assert session is not None
    assert session.model_dump(exclude_unset=True)["state"] == {"n": 1}
    assert (session.app_name, session.user_id) == ("", "")

    nothing = saved(folder, "n.json", {})
    assert added_cases.read_initial_session(str(nothing)) is None
