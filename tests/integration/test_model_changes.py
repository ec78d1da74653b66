"""Runs whose provider now serves another version of a model than in the baseline."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from servers.gemini import KEY, FakeGemini, answer
from servers.loopback import Reply, Request, as_json, serving
from servers.openai import KEY as OPENAI_KEY
from servers.openai import FakeOpenAI, completion
from support.project import Project, case, turn

# google-genai extends a class of aiohttp that does not want to be extended.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

GOOGLE = """\
agents: {bot: {gemini: gemini-2.5-flash}}
evalsets: {smoke: smoke.evalset.json}
criteria: {final_response_match_v2: 0.5}
baseline: {store: file}
judge: {model: gemini-2.5-flash, samples: 1, mode: 'off'}
simulator: {model: gemini-2.5-pro}
"""
OPENAI = """\
agents: {bot: {openai_chat: gpt-4o-mini, base_url: BASE}}
evalsets: {smoke: smoke.evalset.json}
criteria: {ci/contains: {text: Hi, threshold: 1}}
baseline: {store: file}
"""
TALK = {
    "eval_id": "talk",
    "conversation_scenario": {"starting_prompt": "Hello", "conversation_plan": "Ask twice."},
}


class Google(FakeGemini):
    """Judges that every response is valid, greets, and serves `versions` by model."""

    def __init__(self) -> None:
        super().__init__()
        self.versions: dict[str, str] = {}

    def reply(self, request: Request) -> Reply:
        reply = super().reply(request)
        if reply.status != 200:
            return reply
        is_judge = "responseJsonSchema" in request.body.get("generationConfig", {})
        verdict = {"reasoning": "so", "is_the_agent_response_valid": "valid"}
        said = answer(json.dumps(verdict) if is_judge else "Hi </finished>")
        model = request.path.rpartition("/")[2].partition(":")[0]
        return as_json({**said, "modelVersion": self.versions.get(model, f"{model}-001")})


class OpenAI(FakeOpenAI):
    """Greets, as a version with a fingerprint."""

    served: dict[str, str]

    def reply(self, request: Request) -> Reply:
        reply = super().reply(request)
        return replace(reply, body=json.dumps(completion("Hi") | self.served).encode())


@pytest.fixture
def google() -> Iterator[Google]:
    with serving(provider := Google()):
        yield provider


@pytest.fixture
def openai() -> Iterator[OpenAI]:
    with serving(provider := OpenAI()):
        yield provider


@pytest.fixture
def project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Project:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.setenv("THE_KEY", OPENAI_KEY)
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    made = Project(tmp_path, capsys)
    made.evalset(case("greets", turn("Hello", "Hi")))
    return made


@pytest.fixture
def on_google(project: Project, google: Google, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", google.url)
    project.config(GOOGLE)
    return project


def store(project: Project) -> None:
    assert project.ci_eval("run").code == 0
    assert project.ci_eval("baseline", "save").code == 0


def changes(project: Project) -> list[dict[str, object]]:
    found = json.loads(project.read("report.json"))["model_changes"]
    assert isinstance(found, list)
    return found


@pytest.mark.slow
def test_another_version_of_a_model_is_named_in_every_report(
    on_google: Project, google: Google
) -> None:
    store(on_google)
    google.versions["gemini-2.5-flash"] = "gemini-2.5-flash-002"
    ended = on_google.ci_eval("run")

    sentence = (
        "the model behind gemini-2.5-flash changed: gemini-2.5-flash-001 before, "
        "gemini-2.5-flash-002 now (agent bot, judges)"
    )
    assert (ended.code, sentence in ended.out.splitlines()) == (0, True), ended
    for document in ("comment.md", "summary.md"):
        assert sentence in on_google.read(document).replace("\\", ""), document
    assert changes(on_google) == [
        {
            "requested": "gemini-2.5-flash",
            "before": ["gemini-2.5-flash-001"],
            "now": ["gemini-2.5-flash-002"],
            "used_by": ["agent bot", "judges"],
        }
    ]


@pytest.mark.slow
def test_the_same_versions_are_no_change(on_google: Project) -> None:
    store(on_google)
    ended = on_google.ci_eval("run")
    assert (ended.code, "the model behind" in ended.err, changes(on_google)) == (0, False, [])


def test_the_model_of_a_simulated_user_is_watched(on_google: Project, google: Google) -> None:
    on_google.evalset(TALK)
    on_google.config(GOOGLE.replace("{final_response_match_v2: 0.5}", "{ci/contains: {text: Hi}}"))
    store(on_google)
    google.versions["gemini-2.5-pro"] = "gemini-2.5-pro-002"
    ended = on_google.ci_eval("run")
    assert [each["used_by"] for each in changes(on_google)] == [["simulated users"]], ended
    assert changes(on_google)[0]["now"] == ["gemini-2.5-pro-002"]


def test_a_cassette_replays_the_version_that_it_recorded(
    on_google: Project, google: Google
) -> None:
    on_google.traces(case("greets", turn("Hello", "Hi")))
    on_google.config(
        GOOGLE.replace("{gemini: gemini-2.5-flash}", "{recorded: traces.jsonl}").replace(
            "mode: 'off'", "cassette: c.jsonl"
        )
    )
    store(on_google)
    google.versions["gemini-2.5-flash"] = "gemini-2.5-flash-002"
    assert on_google.ci_eval("run").code == 0
    assert changes(on_google) == []
    (score,) = on_google.run_json()["results"][0]["scores"]
    assert score["judging"]["cached"] == 1
    assert [each["version"] for each in score["judging"]["models"]] == ["gemini-2.5-flash-001"]


def test_a_changed_fingerprint_of_the_same_version_is_a_change(
    project: Project, openai: OpenAI
) -> None:
    openai.needs_key = False
    project.config(OPENAI.replace("BASE", f"{openai.url}/v1"))
    openai.served = {"model": "gpt-4o-mini-2024-07-18", "system_fingerprint": "fp_1"}
    store(project)
    openai.served["system_fingerprint"] = "fp_2"
    ended = project.ci_eval("run")
    assert (
        "the model behind gpt-4o-mini changed: gpt-4o-mini-2024-07-18 (fp_1) before, "
        "gpt-4o-mini-2024-07-18 (fp_2) now (agent bot)"
    ) in ended.out.splitlines()


def test_the_fingerprint_of_a_judge_is_kept(project: Project, openai: OpenAI) -> None:
    verdict = json.dumps({"reasoning": "so", "is_the_agent_response_valid": "valid"})
    openai.served = {"system_fingerprint": "fp_1", **completion(verdict)}
    project.traces(case("greets", turn("Hello", "Hi")))
    project.config(
        "agents: {bot: {recorded: traces.jsonl}}\n"
        "evalsets: {smoke: smoke.evalset.json}\n"
        "criteria: {final_response_match_v2: 0.5}\n"
        "judge: {provider: openai, model: gpt-4.1-mini, samples: 1, api_key_env: THE_KEY, "
        f"base_url: '{openai.url}/v1'}}\n"
    )
    assert project.ci_eval("run").code == 0
    report = json.loads(project.read("report.json"))
    assert report["totals"]["models"] == [
        {
            "role": "judge",
            "agent": "",
            "requested": "gpt-4.1-mini",
            "version": "gpt-4.1-mini-2025-04-14",
            "fingerprint": "fp_1",
        }
    ]


@pytest.mark.slow
def test_a_hostile_version_changes_no_document(on_google: Project, google: Google) -> None:
    store(on_google)
    google.versions["gemini-2.5-flash"] = "v2\n\n# Approved\x1b[2J<img src=x>" + "x" * 5000
    ended = on_google.ci_eval("run")
    assert ended.code == 0
    assert "\x1b" not in ended.err
    (line,) = [line for line in ended.out.splitlines() if "the model behind" in line]
    assert len(line) < 400
    for document in ("comment.md", "summary.md"):
        assert "\n# Approved" not in on_google.read(document)
        assert "<img" not in on_google.read(document)
