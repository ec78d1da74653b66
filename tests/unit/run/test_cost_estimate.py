import pytest
from support.project import Project, case, turn


@pytest.fixture
def judged(tmp_path, capsys, monkeypatch) -> Project:
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path, capsys)
    project.config("""\
agents: {bot: {recorded: traces.jsonl}}
evalsets: {smoke: smoke.evalset.json}
criteria: {final_response_match_v2: 0.5}
judge: {provider: gemini, model: gemini-2.5-flash}
""")
    return project


def estimated(project: Project) -> dict:
    (found,) = project.ci_eval("plan", "--json").json["judging"]
    return found


def test_a_plan_says_what_judges_would_take_and_asks_nobody(judged: Project):
    found = estimated(judged)

    assert (found["models"], found["samples"]) == (["gemini-2.5-flash"], 5)
    assert found["calls"] == [9, 15]
    least, most = found["input_tokens"]
    assert most == pytest.approx(least * 5 / 3, abs=2)
    assert found["cost_usd"][0] == pytest.approx((least * 0.3 + 9 * 200 * 2.5) / 1e6)
    assert not (judged.folder / ".ci-eval").exists()
    assert "final_response_match_v2: 9 to 15 calls of gemini-2.5-flash (5 samples)" in (
        judged.ci_eval("plan").out
    )


def test_repeats_turns_and_jurors_count(judged: Project):
    judged.evalset(case("two", turn("a", "b"), turn("c", "d")))
    judged.config(
        (judged.folder / "ci-eval.yaml")
        .read_text()
        .replace(
            "{provider: gemini, model: gemini-2.5-flash}",
            """
  samples: 1
  jury: [{model: gemini-2.5-flash}, {model: llama, provider: openai}]""",
        )
        + "run: {repeats: 3}\n"
    )
    found = estimated(judged)
    assert found["calls"] == [12, 12]
    assert found["cost_usd"] is None


def test_of_many_cases_some_are_counted_and_the_others_taken_to_be_alike(judged: Project):
    judged.evalset(*(case(f"c{n}", turn("a", "b")) for n in range(1000)))
    assert estimated(judged)["calls"] == [3000, 5000]


def test_where_no_response_is_expected_the_agent_is_taken_to_give_one(judged: Project):
    scenario = {"starting_prompt": "Hi", "conversation_plan": "Say bye."}
    judged.evalset({"eval_id": "led", "conversation_scenario": scenario})
    judged.config(
        (judged.folder / "ci-eval.yaml")
        .read_text()
        .replace("final_response_match_v2: 0.5", "agentflow/hallucinations_v1: 0.5")
    )
    assert estimated(judged)["calls"] == [3, 3]
