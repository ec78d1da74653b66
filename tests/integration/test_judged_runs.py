"""Whole runs, judged by a model: the real client against a Gemini on this machine."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import cycle

import pytest
from servers.gemini import KEY, FakeGemini, answer, error
from servers.loopback import CUT, DROPPED, HTML, Reply, Request, as_json, closed_port, serving
from servers.openai import FakeOpenAI, completion
from support.adk_command import Shop
from support.project import CASES, GREETS, Project, case, changed, turn
from support.slow_params import some

# google-genai extends a class of aiohttp that does not want to be extended.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

CONFIG = """\
agents: {bot: {recorded: traces.jsonl}}
evalsets: {smoke: smoke.evalset.json}
criteria:
  response_match_score: 0.5
  final_response_match_v2: 0.5
"""


class Judging(FakeGemini):
    """Says `invalid` of whatever holds the word `wrong`."""

    def reply(self, request: Request) -> Reply:
        reply = super().reply(request)
        if reply.status != 200:
            return reply
        wrong = "wrong" in request.body["contents"][0]["parts"][0]["text"]
        label = "invalid" if wrong else "valid"
        verdict = {"reasoning": "so", "is_the_agent_response_valid": label}
        return as_json(answer(json.dumps(verdict)))


@pytest.fixture
def gemini() -> Iterator[Judging]:
    with serving(provider := Judging()):
        yield provider


@pytest.fixture
def project(tmp_path, capsys, monkeypatch, gemini) -> Project:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.url)
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    made = Project(tmp_path, capsys)
    made.config(CONFIG)
    return made


def judged(project: Project) -> dict[str, float | None]:
    return {name: each["final_response_match_v2"] for name, each in project.scores().items()}


def statuses(project: Project, criterion: str = "final_response_match_v2") -> dict[str, str]:
    return {
        result["key"]["case"]: score["status"]
        for result in project.run_json()["results"]
        for score in result["scores"]
        if score["name"] == criterion
    }


def reasons(project: Project) -> str:
    results = project.run_json()["results"]
    return "\n".join(score["reason"] for each in results for score in each["scores"])


def test_a_model_judges_and_it_is_said_what_that_cost(project: Project, gemini: Judging):
    project.traces(CASES[0], CASES[1], changed(CASES[2], "It is in the wrong town."))
    ended = project.ci_eval("run")

    assert ended.code == 1
    assert judged(project) == {"greets": 1.0, "refunds": 1.0, "tracks": 0.0}
    assert len(gemini.requests) == 9
    assert "judges: 9 calls, 0 answers from the cache, 207 tokens, $0.0003" in ended.out
    assert "| `final_response_match_v2` | 9 | 0 | 99 | 108 | $0.0003 |" in project.read(
        "comment.md"
    )
    report = json.loads(project.read("report.json"))
    assert report["judging"]["calls"] == 9
    (group,) = (each for each in report["groups"] if each["judging"])
    assert group["judging"]["output_tokens"] == 108


@pytest.mark.slow
def test_the_same_again_asks_nobody_and_does_not_even_import_the_client(project: Project, gemini):
    project.ci_eval("run")
    first, asked = judged(project), len(gemini.requests)
    code = (
        "import sys\nfrom ci_eval.cli.main import main\ncode = main(['run'])\n"
        "print(code, sorted({'google.genai', 'aiohttp'} & sys.modules.keys()))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300
    )

    assert ended.stdout.endswith("\n0 []\n"), ended.stderr
    assert judged(project) == first
    assert len(gemini.requests) == asked


@pytest.mark.slow
def test_a_run_without_judges_does_not_import_their_client_either(project: Project):
    project.config(CONFIG.replace("  final_response_match_v2: 0.5\n", ""))
    code = (
        "import sys\nfrom ci_eval.cli.main import main\ncode = main(['run'])\n"
        "print(code, sorted({'google.genai', 'aiohttp', 'openai'} & sys.modules.keys()))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300
    )
    assert ended.stdout.endswith("\n0 []\n"), ended.stderr
    assert not (project.folder / ".ci-eval").exists()


def test_what_is_kept_serves_a_fork_without_a_key(project: Project, gemini, monkeypatch):
    project.ci_eval("run")
    asked = len(gemini.requests)
    monkeypatch.delenv("GOOGLE_API_KEY")

    assert project.ci_eval("run", "--judge-mode", "replay").code == 0
    project.evalset(*CASES, case("new", turn("What?", "That.")))
    project.traces(*CASES, case("new", turn("What?", "That.")))
    project.add("judge: {mode: replay}\n")
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert statuses(project)["new"] == "error"
    assert "the answer is not in .ci-eval/cache/judge.jsonl" in reasons(project)
    assert len(gemini.requests) == asked


def test_the_cassette_holds_no_key_and_no_question(project: Project):
    project.ci_eval("run")
    for path in (project.folder / ".ci-eval", project.folder / "ci-eval-report"):
        for file in filter(os.path.isfile, path.rglob("*")):
            assert KEY not in file.read_text()
    assert "Refund 7" not in (project.folder / ".ci-eval/cache/judge.jsonl").read_text()


def test_a_changed_prompt_asks_again(project: Project, gemini: Judging):
    project.ci_eval("run")
    asked = len(gemini.requests)
    folder = project.folder / "prompts/adk"
    folder.mkdir(parents=True)
    (folder / "final_response_match_v2.md.j2").write_text(
        "{% block instructions %}Be kind.{% endblock %}"
        "{% block question %}{{ user_prompt }}{{ response }}{{ expected_response }}{% endblock %}"
    )
    before = project.run_json()["meta"]["criteria"]["final_response_match_v2"]["fingerprint"]
    project.add("judge: {prompts: prompts}\n")
    project.ci_eval("run")

    assert len(gemini.requests) == 2 * asked
    assert gemini.requests[-1].body["systemInstruction"]["parts"][0]["text"] == "Be kind."
    after = project.run_json()["meta"]["criteria"]["final_response_match_v2"]["fingerprint"]
    assert before != after


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{% block instructions %}", "ci-eval.yaml:5: criteria.final_response_match_v2: adk/final"),
        (
            "{% block instructions %}{% endblock %}{% block question %}{{ answer }}{% endblock %}",
            "uses 'answer'; available: expected_response, response, user_prompt",
        ),
        ("Judge!", "adk/final_response_match_v2.md.j2 has no block 'instructions'"),
    ],
)
def test_a_prompt_that_is_wrong_is_told_before_anything_runs(project, gemini, text, message):
    folder = project.folder / "prompts/adk"
    folder.mkdir(parents=True)
    (folder / "final_response_match_v2.md.j2").write_text(text)
    project.add("judge: {prompts: prompts}\n")
    ended = project.ci_eval("run")
    assert (ended.code, gemini.requests) == (4, [])
    assert message in ended.err


def test_a_prompt_under_a_name_that_nobody_asks_with_is_a_mistake(project: Project, gemini):
    folder = project.folder / "prompts/adk"
    folder.mkdir(parents=True)
    (folder / "final_response_mach_v2.md.j2").write_text("")
    project.add("judge: {prompts: prompts}\n")
    ended = project.ci_eval("run")
    assert (ended.code, gemini.requests) == (4, [])
    assert "judge.prompts: no criterion uses adk/final_response_mach_v2.md.j2" in ended.err
    assert "Did you mean 'adk/final_response_match_v2'?" in ended.err


@pytest.mark.slow
@pytest.mark.parametrize("mode", some(["refuses", "drops", "fails", "hangs"], 1))
def test_with_the_provider_down_there_is_no_verdict_within_the_time_allowed(
    project: Project, gemini: Judging, monkeypatch, mode
):
    if mode == "refuses":
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", f"http://127.0.0.1:{closed_port()}")
    else:
        reply = {
            "drops": DROPPED,
            "fails": error(503, "UNAVAILABLE", "The model is overloaded."),
            "hangs": Reply(b"{}", delay_s=600),
        }[mode]
        gemini.reply = lambda _: reply  # type: ignore[method-assign]  # a test's own
    project.add("judge: {patience_s: 1}\n")
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert "gemini-2.5-flash: considered unavailable: no successful response for 1 s" in reasons(
        project
    )
    assert set(statuses(project).values()) == {"error"}
    assert set(statuses(project, "response_match_score").values()) == {"passed"}


@pytest.mark.slow
def test_calls_that_fail_change_no_score(project: Project, gemini: Judging):
    cases = [case(f"c{n}", turn(str(n), f"{n} {'wrong' * (n % 3 == 0)}")) for n in range(40)]
    project.evalset(*cases)
    project.traces(*cases)
    project.ci_eval("run")
    expected, calls = judged(project), len(gemini.requests)
    assert set(expected.values()) == {0.0, 1.0}

    (project.folder / ".ci-eval/cache/judge.jsonl").unlink()
    gemini.requests.clear()
    faults = cycle(
        [
            error(429, "RESOURCE_EXHAUSTED", "Too fast.", headers={"retry-after": "0"}),
            error(500, "INTERNAL", "Oops."),
            CUT,
            HTML,
            DROPPED,
        ]
    )
    sound, turns = gemini.reply, cycle(range(5))
    gemini.reply = lambda request: (  # type: ignore[method-assign]  # a test's own
        next(faults) if next(turns) == 0 else sound(request)
    )
    assert project.ci_eval("run").code == 1

    assert judged(project) == expected
    assert calls < len(gemini.requests) <= 1.35 * calls


def test_a_model_that_does_not_exist_is_an_error_that_says_how_to_choose_another(
    project: Project, gemini: Judging
):
    project.add("judge: {model: gemini-absent}\n")
    ended = project.ci_eval("run")
    assert ended.code == 6
    assert "gemini-absent" in reasons(project)
    assert "final_response_match_v2" in ended.err
    assert len(gemini.requests) <= 9  # those that were under way when it was learnt


def test_a_missing_key_is_told_before_anything_runs(project: Project, monkeypatch):
    monkeypatch.delenv("GOOGLE_API_KEY")
    ended = project.ci_eval("run")
    assert ended.code == 4
    assert "the judge of adk/final_response_match_v2 lacks GOOGLE_API_KEY" in ended.err
    assert not (project.folder / "ci-eval-report").exists()


def test_a_run_that_is_refused_leaves_no_report_of_an_earlier_one(project: Project, monkeypatch):
    out = project.folder / "ci-eval-report"
    out.mkdir()
    for name in ("report.json", "comment.md", "junit.xml"):
        (out / name).write_text("passed")
    monkeypatch.delenv("GOOGLE_API_KEY")

    assert project.ci_eval("run").code == 4
    assert list(out.iterdir()) == []


@pytest.mark.slow
def test_a_merge_asks_no_judge_again_and_counts_all_calls(project, gemini, monkeypatch):
    assert project.ci_eval("run", "--out", "whole").code == 0
    calls = len(gemini.requests)
    for number in (1, 2):
        shard = ("--shard", f"{number}/2", "--judge-mode", "off", "--out", f"s{number}")
        assert project.ci_eval("run", *shard).code == 0
    assert len(gemini.requests) == 2 * calls
    monkeypatch.delenv("GOOGLE_API_KEY")

    ended = project.ci_eval("merge", "s1", "s2", "--out", "merged")

    assert (ended.code, len(gemini.requests)) == (0, 2 * calls)
    whole, merged = (
        json.loads((project.folder / name / "report.json").read_text())["judging"]
        for name in ("whole", "merged")
    )
    assert merged == whole
    assert merged["calls"] == calls


def test_a_budget_stops_the_calls_and_keeps_what_was_scored(project: Project, gemini: Judging):
    project.add("judge: {max_calls: 4, concurrency: 1}\nrun: {concurrency: 1}\n")
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert len(gemini.requests) == 4
    assert sorted(statuses(project).values()) == ["error", "error", "passed"]
    assert "the 4 calls of `judge.max_calls` are used up" in reasons(project)
    project.config(CONFIG)
    assert project.ci_eval("run", "--resume").code == 0
    assert len(gemini.requests) == 9


@pytest.mark.parametrize(
    "text",
    [
        "La respuesta es correcta.",
        "".join(
            f'"is_the_agent_response_valid": "{each}",\n' for each in ("valid", "no", "almost")
        ),
        "",
        "null",
        '{"is_the_agent_response_valid": "是"}',
        '{"is_the_agent_response_valid": ["valid", "invalid"]}',
    ],
    ids=["other language", "three verdicts", "nothing", "null", "other word", "both"],
)
def test_an_answer_that_is_no_answer_is_an_error_and_never_a_score(project, gemini, text):
    project.evalset(GREETS)
    project.traces(GREETS)
    gemini.reply = lambda _: as_json(answer(text))
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert statuses(project) == {"greets": "error"}
    assert "no verdict was reached" in reasons(project)
    assert len(gemini.requests) == 10  # five samples, each asked again once with the reason
    assert "could not be used" in gemini.requests[-1].body["contents"][0]["parts"][0]["text"]


@pytest.mark.slow
def test_a_response_of_5_mb_is_an_error_and_costs_nothing(project: Project, gemini: Judging):
    project.config(CONFIG.replace("  response_match_score: 0.5\n", ""))
    project.evalset(GREETS)
    project.traces(changed(GREETS, "x" * 5_000_000))
    ended = project.ci_eval("run")
    assert ended.code == 6
    assert re.search(r"5,00\d,\d+ characters, more than the 400,000", reasons(project))
    assert gemini.requests == []


def test_a_cassette_from_another_version_is_refused_with_the_way_out(project: Project, gemini):
    path = project.folder / ".ci-eval/cache/judge.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"ci-eval cassette":99}\n')
    ended = project.ci_eval("run")
    assert (ended.code, gemini.requests) == (4, [])
    assert ".ci-eval/cache/judge.jsonl is a version 99 cassette" in ended.err
    assert "remove it" in ended.err


def test_answers_of_judges_that_could_not_be_read_are_counted(project):
    project.traces(GREETS)
    project.config(
        CONFIG.replace("final_response_match_v2", "agentflow/response_match_score")
        + "judge: {provider: scripted, mode: off, samples: 3,"
        " answers: [{answer: ['?', '?', {reasoning: r, score: 1}]}]}\n"
    )
    ended = project.ci_eval("run", "--case", "greets")

    assert ended.code == 0, ended.err
    assert "2 answers of judges could not be read, and did not count" in ended.err


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("{samples: 0}", "judge.samples: must be at least 1"),
        ("{sampels: 1, provider: gemini}", "judge.sampels: unknown key. Did you mean 'samples'?"),
        ("{provider: gemnii}", "judge.provider: unknown judge 'gemnii'. Did you mean 'gemini'?"),
        ("{model: llama3}", "judge: cannot infer the provider of model 'llama3'; set `provider`"),
        ("{mode: sometimes}", "judge.mode: "),
        ("{max_cost_usd: 1, provider: openai, model: llama3}", "the price of 'llama3' is unknown"),
        ("{prompts: nowhere}", "judge.prompts: there is no folder 'nowhere'"),
        ("[gemini]", "judge: expected"),
        ("{jury: [{model: llama3}]}", "judge.jury[0]: cannot infer the provider of model"),
        ("{jury: [{provider: gemini}]}", "judge.jury[0]: 'model' is missing"),
        (
            "{provider: gemini, jury: [{model: gemini-x}]}",
            "judge.jury: replaces the single judge; remove its provider and options, or the jury",
        ),
        (
            "{jury: [{model: gemini-x}, {model: gpt-x}, {model: gemini-x}]}",
            "judge.jury[2]: has the model and settings of another",
        ),
        ("{env_file: nowhere.env}", "nowhere.env"),
        ("{cassette: ci-eval.yaml}", "ci-eval.yaml is not a ci-eval cassette"),
        ("{provider: scripted, answers: []}", "judge.answers"),
    ],
)
def test_what_is_wrong_with_the_judge_is_told_with_its_line(project, gemini, block, message):
    project.add(f"judge: {block}\n")
    ended = project.ci_eval("run")
    assert (ended.code, gemini.requests) == (4, [])
    assert message in ended.err


@pytest.mark.parametrize(
    ("criterion", "message"),
    [
        ("{threshold: 0.5, judge_model_options: {num_samples: 0}}", "num_samples"),
        (
            "{threshold: 0.5, judge_model_options: {judge_model: llama3}}",
            "provider of model 'llama3'",
        ),
        ("{threshold: 0.5, judge_model_options: {judge_model_config: 5}}", "judge_model_config"),
    ],
)
def test_so_is_what_is_wrong_with_a_criterion(project, gemini, criterion, message):
    project.config(CONFIG.replace("v2: 0.5", f"v2: {criterion}"))
    ended = project.ci_eval("run")
    assert (ended.code, gemini.requests) == (4, [])
    assert re.search(
        r"^ci-eval\.yaml:5: criteria\.final_response_match_v2", ended.err, re.MULTILINE
    )
    assert message in ended.err


def test_a_jury_says_how_far_it_agrees(project: Project, gemini: Judging):
    project.add("judge: {jury: [{model: gemini-2.5-flash}, {model: gemini-2.5-pro}], samples: 1}\n")
    project.ci_eval("run")
    assert {request.path.split("/")[-1] for request in gemini.requests} == {
        "gemini-2.5-flash:generateContent",
        "gemini-2.5-pro:generateContent",
    }
    assert "| Jury agreement |" in project.read("comment.md")
    assert "| 100.0% |" in project.read("comment.md")


def test_what_failed_is_shown_also_where_another_criterion_could_not_measure(project, gemini):
    project.evalset(GREETS)
    project.traces(changed(GREETS, "Something else"))
    gemini.reply = lambda _: as_json(answer("no verdict at all"))
    assert project.ci_eval("run").code == 1
    comment = project.read("comment.md")
    assert "#### 1 case failed" in comment
    assert "expected, + actual" in comment
    assert "#### Not measured" in comment


class FillsIn(FakeOpenAI):
    """Answers whatever form is asked for with the best there is."""

    def reply(self, request: Request) -> Reply:
        reply = super().reply(request)
        form = request.body.get("response_format", {}).get("json_schema", {}).get("schema")
        return as_json(completion(json.dumps(_filled(form)))) if form else reply


def _filled(form: dict) -> object:
    match form["type"]:
        case "object":
            return {name: _filled(each) for name, each in form["properties"].items()}
        case "array":
            return [_filled(form["items"])]
        case "number":
            return 1
        case _:
            return form.get("enum", ["so"])[0]


@pytest.mark.slow
def test_a_model_behind_an_interface_like_openais_judges_too(project: Project, monkeypatch):
    monkeypatch.delenv("GOOGLE_API_KEY")
    with serving(provider := FillsIn()):
        provider.needs_key = False
        project.config(
            CONFIG
            + "  agentflow/safety_v1: 0.9\n"
            + "judge:\n  provider: openai\n  model: llama-3.3-70b\n"
            + f"  base_url: {provider.url}/v1\n  samples: 1\n"
            + "  prices: {llama-3.3-70b: {input: 1, output: 2}}\n"
        )
        ended = project.ci_eval("run")

    assert ended.code == 0, ended.err
    assert len(provider.requests) == 6
    assert {request.body["model"] for request in provider.requests} == {"llama-3.3-70b"}
    assert set(statuses(project, "agentflow/safety_v1").values()) == {"passed"}
    assert json.loads(project.read("report.json"))["judging"]["unpriced"] == 0


def test_the_command_of_adk_says_what_judges_cost_and_what_came_from_the_cache(
    tmp_path, capsys, monkeypatch, project
):
    monkeypatch.setattr(
        "ci_eval.cli.adk.adk_eval_options.agent_of", lambda *_: {"recorded": "traces.jsonl"}
    )
    shop = Shop(tmp_path, capsys)
    shop.write("judged.json", {"criteria": {"final_response_match_v2": {"threshold": 0.5}}})
    arguments = ("agents/shop", "smoke:greets", "--config_file_path", "judged.json")

    first, second = shop.adk(*arguments), shop.adk(*arguments)

    assert re.search(r"^judges: [1-5] calls?, 0 answers from the cache, ", first.err, re.MULTILINE)
    assert re.search(r"^judges: 0 calls, [1-5] answers? from the cache$", second.err, re.MULTILINE)
