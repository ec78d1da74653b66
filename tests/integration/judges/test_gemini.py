"""google-genai against a server on this machine, with each package that it sends with."""

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import google.auth
import pytest
from google.auth.credentials import AnonymousCredentials
from servers.gemini import KEY, VERDICT, FakeGemini, answer, error, quota, retry_info
from servers.loopback import CUT, DROPPED, HTML, Reply, as_json, closed_port
from support.agent_sessions import LONG_S

from ci_eval.judges.gemini_judge import Gemini
from ci_eval.records.errors import JudgeError
from ci_eval.records.questions import Answer, Question
from ci_eval.runtime.context import RunContext

# google-genai makes a class of its own of aiohttp's session.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["verdict"],
}
QUESTION = Question("adk/final_response_match_v2", "Judge it.", "Is it so?", SCHEMA)
SENT = {
    "contents": [{"role": "user", "parts": [{"text": "Is it so?"}]}],
    "systemInstruction": {"role": "user", "parts": [{"text": "Judge it."}]},
    "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA},
}


@pytest.fixture(autouse=True, params=["aiohttp", "httpx"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let google-genai find aiohttp, or not."""
    monkeypatch.setattr("google.genai._api_client.has_aiohttp", request.param == "aiohttp")


def context(env: dict[str, str]) -> RunContext:
    return RunContext(env=env, root=Path(), now=lambda: 1_750_000_000.0)


def ask(
    gemini: FakeGemini, *questions: Question, env: dict[str, str] | None = None, **fields: Any
) -> list[Answer]:
    """Ask all at once, over one client."""
    judge = Gemini.model_validate({"model": "gemini-2.5-flash", "base_url": gemini.url, **fields})

    async def asked() -> list[Answer]:
        async with judge.start(context({"GOOGLE_API_KEY": KEY} if env is None else env)) as client:
            asked = (put(judge, each) for each in questions or [QUESTION])
            return await asyncio.gather(*map(client.answer, asked))

    return asyncio.run(asked())


def put(judge: Gemini, question: Question = QUESTION) -> Question:
    """Return the question as it is put to the model of `judge`."""
    return replace(question, model=str(judge.model), settings=judge.settings)


def failure(gemini: FakeGemini, *script: Reply, **more: Any) -> JudgeError:
    gemini.script.extend(script)
    with pytest.raises(JudgeError) as caught:
        ask(gemini, **more)
    assert KEY not in str(caught.value)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)
    return caught.value


# --- What is sent and what is read ------------------------------------------------------------


def test_a_question_is_one_request_and_its_answer_is_read(gemini: FakeGemini) -> None:
    found = ask(gemini)

    assert gemini.request.path == "/v1beta/models/gemini-2.5-flash:generateContent"
    assert gemini.request.headers["x-goog-api-key"] == KEY
    assert gemini.request.body == SENT
    assert found == [
        Answer(text=VERDICT, input_tokens=11, output_tokens=12, model="gemini-2.5-flash-001")
    ]


def test_the_fake_answers_what_google_genai_reads() -> None:
    from google.genai import errors, types

    read = types.GenerateContentResponse.model_validate(answer())

    assert read.text == VERDICT
    assert read.candidates
    assert read.candidates[0].finish_reason is types.FinishReason.STOP
    refused = error(429, "RESOURCE_EXHAUSTED", "Too fast.", retry_info("3s"))
    told = errors.APIError(429, json.loads(refused.body))
    assert (told.status, told.message) == ("RESOURCE_EXHAUSTED", "Too fast.")


def test_settings_of_either_spelling_reach_the_model(gemini: FakeGemini) -> None:
    settings = {
        "temperature": 0,
        "topP": 0.9,
        "max_output_tokens": 512,
        "stopSequences": ["END"],
        "seed": 7,
        "safety_settings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        "httpOptions": {"headers": {"x-team": "shop"}, "retryOptions": {"attempts": 5}},
        "labels": None,
    }
    ask(gemini, settings=settings)

    assert gemini.request.body["generationConfig"] == {
        **SENT["generationConfig"],
        "temperature": 0.0,
        "topP": 0.9,
        "maxOutputTokens": 512,
        "stopSequences": ["END"],
        "seed": 7,
    }
    assert gemini.request.body["safetySettings"] == settings["safety_settings"]
    assert gemini.request.headers["x-team"] == "shop"


def test_retries_that_the_settings_ask_for_are_not_made(gemini: FakeGemini) -> None:
    retries = {"http_options": {"retry_options": {"attempts": 5, "initial_delay": 0.01}}}

    assert failure(gemini, error(503, "UNAVAILABLE", "Busy."), settings=retries).passing
    assert len(gemini.requests) == 1


def test_a_client_asks_many_questions_at_once(gemini: FakeGemini) -> None:
    gemini.together = threading.Barrier(6, timeout=LONG_S)
    found = ask(gemini, *[QUESTION] * 6)

    assert [each.text for each in found] == [VERDICT] * 6
    assert len(gemini.requests) == 6
    assert gemini.most_at_once == 6


def test_a_cancelled_call_ends_at_once(gemini: FakeGemini) -> None:
    gemini.script.append(as_json(answer(), delay_s=2 * LONG_S))

    async def asked() -> None:
        env = {"GOOGLE_API_KEY": KEY}
        judge = Gemini(model="gemini-2.5-flash", base_url=gemini.url)
        async with judge.start(context(env)) as client:
            call = asyncio.create_task(client.answer(put(judge)))
            await asyncio.to_thread(gemini.arrived.wait, LONG_S)
            call.cancel()
            async with asyncio.timeout(LONG_S):
                with pytest.raises(asyncio.CancelledError):
                    await call
            assert (await client.answer(put(judge))).text == VERDICT

    asyncio.run(asked())


# --- Where it goes ----------------------------------------------------------------------------


def test_the_environment_of_the_process_does_not_leak_in(
    gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {
        "GOOGLE_API_KEY": "AIzaSy-the-wrong-key",
        "GEMINI_API_KEY": "AIzaSy-another-wrong-key",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_CLOUD_PROJECT": "wrong",
        "GOOGLE_CLOUD_LOCATION": "wrong",
        "GOOGLE_GENAI_API_VERSION": "wrong",
        "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{closed_port()}",
    }
    for name, value in wrong.items():
        monkeypatch.setenv(name, value)
    env = {"GEMINI_API_KEY": f" {KEY}\n", "GOOGLE_GEMINI_BASE_URL": gemini.url}
    ask(gemini, env=env, base_url=None)

    assert gemini.request.headers["x-goog-api-key"] == KEY
    assert gemini.request.path.startswith("/v1beta/models/")


def test_the_key_may_have_a_name_of_its_own(gemini: FakeGemini) -> None:
    env = {"GOOGLE_API_KEY": "AIzaSy-not-this-key", "JUDGE_KEY": KEY}
    ask(gemini, env=env, api_key_env="JUDGE_KEY")

    assert gemini.request.headers["x-goog-api-key"] == KEY


def test_vertex_ai_is_asked_with_a_key(gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "wrong")
    env = {"GOOGLE_GENAI_USE_VERTEXAI": "True", "GOOGLE_API_KEY": KEY}
    (found,) = ask(gemini, env=env)

    path = "/v1beta1/publishers/google/models/gemini-2.5-flash:generateContent"
    assert gemini.request.path == path
    assert found.text == VERDICT


def test_vertex_ai_is_asked_in_a_project(
    gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Credentials(AnonymousCredentials):
        quota_project_id = None

        def __init__(self) -> None:
            super().__init__()
            self.token = "ya29.token"

    monkeypatch.setattr(google.auth, "default", lambda **_: (Credentials(), "other"))
    env = {"GOOGLE_API_KEY": KEY, "GOOGLE_CLOUD_PROJECT": "shop"}
    ask(gemini, env=env, vertex=True, location="europe-west4")

    where = "/v1beta1/projects/shop/locations/europe-west4/publishers/google/models/"
    assert gemini.request.path == f"{where}gemini-2.5-flash:generateContent"
    assert gemini.request.headers["authorization"] == "Bearer ya29.token"
    assert "x-goog-api-key" not in gemini.request.headers


def test_vertex_ai_without_credentials_says_so(
    gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "absent.json"))
    found = failure(gemini, vertex=True, env={"GOOGLE_CLOUD_PROJECT": "shop"})

    assert "cannot be called: no Google Cloud credentials: " in str(found)
    assert not found.passing


# --- Faults -----------------------------------------------------------------------------------


@pytest.mark.parametrize("reply", [DROPPED, CUT, HTML, Reply(), as_json({"other": 1}), as_json([])])
def test_what_is_no_answer_may_pass_and_is_one_request(gemini: FakeGemini, reply: Reply) -> None:
    found = failure(gemini, reply)

    assert found.passing
    assert not found.throttled
    assert len(gemini.requests) == 1


def test_a_page_in_the_place_of_an_answer_is_quoted(gemini: FakeGemini) -> None:
    said = "'gemini-2.5-flash' returned something other than an answer: it is not JSON: "
    assert str(failure(gemini, HTML)).startswith(said)
    assert "<body>Sign in" in str(failure(gemini, HTML))


def test_a_refused_connection_may_pass(gemini: FakeGemini) -> None:
    found = failure(gemini, base_url=f"http://127.0.0.1:{closed_port()}")

    assert "could not be reached" in str(found)
    assert found.passing


def test_a_timeout_of_the_settings_may_pass(gemini: FakeGemini) -> None:
    slow = as_json(answer(), delay_s=60)
    found = failure(gemini, slow, settings={"http_options": {"timeout": 100}})

    assert "could not be reached" in str(found)
    assert found.passing


@pytest.mark.parametrize(
    ("status", "name", "passing"),
    [
        (400, "INVALID_ARGUMENT", False),
        (401, "UNAUTHENTICATED", False),
        (403, "PERMISSION_DENIED", False),
        (404, "NOT_FOUND", False),
        (408, "DEADLINE_EXCEEDED", True),
        (500, "INTERNAL", True),
        (503, "UNAVAILABLE", True),
        (504, "DEADLINE_EXCEEDED", True),
    ],
)
def test_an_error_says_whether_it_may_pass(
    gemini: FakeGemini, status: int, name: str, passing: bool
) -> None:
    found = failure(gemini, error(status, name, f"It is\n\n{name} for {KEY}. " + "word " * 500))

    said = f"'gemini-2.5-flash' gave no answer: {status} {name}: It is {name} for [key]."
    assert str(found).startswith(said)
    assert (found.passing, found.throttled) == (passing, False)
    assert len(gemini.requests) == 1


def test_an_error_that_is_a_page_is_told_by_its_code(gemini: FakeGemini) -> None:
    found = failure(gemini, Reply(b"<html>Bad Gateway</html>", 502, "text/html"))

    assert "502" in str(found)
    assert "Bad Gateway" in str(found)
    assert found.passing


def test_an_error_that_is_broken_json_may_pass(gemini: FakeGemini) -> None:
    assert failure(gemini, Reply(b'{"error": ', 500)).passing


@pytest.mark.parametrize(
    ("reply", "after_s"),
    [
        (error(429, "RESOURCE_EXHAUSTED", "m"), None),
        (error(429, "RESOURCE_EXHAUSTED", "m", headers={"Retry-After": "7"}), 7.0),
        (
            error(
                429,
                "RESOURCE_EXHAUSTED",
                "m",
                headers={"Retry-After": "Sun, 15 Jun 2025 15:06:50 GMT"},
            ),
            10.0,
        ),
        (error(429, "RESOURCE_EXHAUSTED", "m", retry_info("20.5s")), 20.5),
        (
            error(
                429,
                "RESOURCE_EXHAUSTED",
                "m",
                quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"),
                retry_info("3s"),
            ),
            3.0,
        ),
        (Reply(b"slow down", 429, "text/plain"), None),
    ],
)
def test_too_many_requests_throttle(
    gemini: FakeGemini, reply: Reply, after_s: float | None
) -> None:
    found = failure(gemini, reply)

    assert (found.throttled, found.passing, found.after_s) == (True, True, after_s)
    assert len(gemini.requests) == 1


@pytest.mark.parametrize(
    "violation",
    [
        quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
        quota("GenerateContentInputTokensPerModelPerMinute-FreeTier", "0"),
    ],
)
def test_a_quota_that_is_spent_for_the_day_does_not_pass(
    gemini: FakeGemini, violation: dict[str, Any]
) -> None:
    found = failure(
        gemini, error(429, "RESOURCE_EXHAUSTED", "You exceeded it.", violation, retry_info("20s"))
    )

    assert (found.throttled, found.passing, found.after_s) == (False, False, None)
    assert str(found).endswith("this quota does not reset soon, so no more calls are made")


def test_a_wrong_key_is_told_with_its_variable(gemini: FakeGemini) -> None:
    found = failure(gemini, env={"GEMINI_API_KEY": "AIzaSy-the-wrong-key"})

    assert "400 API_KEY_INVALID: API key not valid." in str(found)
    assert str(found).endswith("; the key comes from GEMINI_API_KEY")
    assert not found.passing


@pytest.mark.parametrize("key", ["sk-two\nlines-of-it", "sk-pasted twice", "sk-clé-of-this"])
def test_a_key_that_cannot_be_sent_is_not_shown_either(gemini: FakeGemini, key: str) -> None:
    found = failure(gemini, env={"GOOGLE_API_KEY": key})

    wrong = "a space, a line break or a non-ASCII character"
    assert str(found) == f"'gemini' cannot be called: GOOGLE_API_KEY has {wrong}"
    assert not found.passing
    assert gemini.requests == []


def test_an_unknown_model_is_told_with_the_way_out(gemini: FakeGemini) -> None:
    found = failure(gemini, model="gemini-absent")

    assert str(found).startswith("'gemini-absent' gave no answer: 404 NOT_FOUND: ")
    assert str(found).endswith("; name another model with 'model' of the judge")
    assert not found.passing


def test_a_setting_that_google_genai_refuses_is_named(gemini: FakeGemini) -> None:
    found = failure(gemini, settings={"thinking_config": {"thinking_budgit": 3}})

    said = "'gemini-2.5-flash' cannot be called: thinking_config.thinking_budgit: unknown key"
    assert str(found).startswith(said)
    assert not found.passing
    assert gemini.requests == []


def test_a_setting_of_vertex_ai_alone_is_named(gemini: FakeGemini) -> None:
    found = failure(gemini, settings={"routing_config": {"manual_mode": {"model_name": "m"}}})

    assert "cannot be called: routing_config " in str(found)
    assert not found.passing
    assert gemini.requests == []


def test_an_address_of_the_environment_that_is_none_is_told(gemini: FakeGemini) -> None:
    env = {"GOOGLE_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": "localhost:8080"}
    found = failure(gemini, env=env, base_url=None)

    assert "expected an address such as 'https://example.com/v1'" in str(found)
    assert not found.passing
