"""The package openai against a server on this machine."""

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from servers.loopback import CUT, DROPPED, HTML, Reply, as_json, closed_port
from servers.openai import KEY, VERDICT, FakeOpenAI, completion, error, response
from support.agent_sessions import LONG_S

from ci_eval.judges.openai_judge import OpenAI
from ci_eval.records.errors import JudgeError
from ci_eval.records.questions import Answer, Question
from ci_eval.runtime.context import RunContext

SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string"}, "why": {"type": "string"}},
    "required": ["verdict"],
}
STRICT = {**SCHEMA, "required": ["verdict", "why"], "additionalProperties": False}
QUESTION = Question("adk/final_response_match_v2", "Judge it.", "Is it so?", SCHEMA)
FORM = {"name": "adk_final_response_match_v2", "schema": STRICT, "strict": True}
MESSAGES = [{"role": "system", "content": "Judge it."}, {"role": "user", "content": "Is it so?"}]
APIS = ["chat", "responses"]
MODEL = "gpt-4.1-mini"


def ask(
    openai: FakeOpenAI, *questions: Question, env: dict[str, str] | None = None, **fields: Any
) -> list[Answer]:
    """Ask all at once, over one client."""
    judge = OpenAI.model_validate({"model": MODEL, "base_url": f"{openai.url}/v1", **fields})
    given = {"OPENAI_API_KEY": KEY} if env is None else env
    context = RunContext(env=given, root=Path(), now=lambda: 1_750_000_000.0)

    async def asked() -> list[Answer]:
        async with judge.start(context) as client:
            asked = (put(judge, each) for each in questions or [QUESTION])
            return await asyncio.gather(*map(client.answer, asked))

    return asyncio.run(asked())


def put(judge: OpenAI, question: Question = QUESTION) -> Question:
    """Return the question as it is put to the model of `judge`."""
    return replace(question, model=str(judge.model), settings=judge.settings)


def failure(openai: FakeOpenAI, *script: Reply, **more: Any) -> JudgeError:
    openai.script.extend(script)
    with pytest.raises(JudgeError) as caught:
        ask(openai, **more)
    assert KEY not in str(caught.value)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)
    return caught.value


# --- What is sent and what is read ------------------------------------------------------------


@pytest.mark.slow
def test_a_question_is_one_chat_completion_and_its_answer_is_read(openai: FakeOpenAI) -> None:
    (found,) = ask(openai)

    assert openai.request.path == "/v1/chat/completions"
    assert openai.request.headers["authorization"] == f"Bearer {KEY}"
    assert openai.request.body == {
        "model": MODEL,
        "messages": MESSAGES,
        "response_format": {"type": "json_schema", "json_schema": FORM},
    }
    assert found == Answer(
        text=VERDICT, input_tokens=11, output_tokens=7, model="gpt-4.1-mini-2025-04-14"
    )


def test_a_question_is_one_response_and_its_answer_is_read(openai: FakeOpenAI) -> None:
    (found,) = ask(openai, api="responses")

    assert openai.request.path == "/v1/responses"
    assert openai.request.body == {
        "model": MODEL,
        "instructions": "Judge it.",
        "input": "Is it so?",
        "store": False,
        "text": {"format": {"type": "json_schema", **FORM}},
    }
    assert found == Answer(
        text=VERDICT, input_tokens=11, output_tokens=7, model="gpt-4.1-mini-2025-04-14"
    )


def test_the_fake_answers_what_openai_reads() -> None:
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response

    assert ChatCompletion.model_validate(completion()).choices[0].message.content == VERDICT
    assert Response.model_validate(response()).output_text == VERDICT


def test_settings_are_translated_for_chat_completions(openai: FakeOpenAI) -> None:
    settings = {
        "temperature": 0,
        "topP": 0.9,
        "max_output_tokens": 512,
        "stopSequences": ["END"],
        "seed": 7,
        "presence_penalty": 1,
        "frequencyPenalty": -1,
    }
    ask(openai, settings=settings, extra_body={"reasoning_effort": "low"})

    body = openai.request.body
    assert {key: body[key] for key in body.keys() - {"model", "messages", "response_format"}} == {
        "temperature": 0.0,
        "top_p": 0.9,
        "max_tokens": 512,
        "stop": ["END"],
        "seed": 7,
        "presence_penalty": 1.0,
        "frequency_penalty": -1.0,
        "reasoning_effort": "low",
    }


def test_settings_are_translated_for_responses(openai: FakeOpenAI) -> None:
    settings = {"temperature": 0, "topP": 0.9, "max_output_tokens": 512}
    ask(openai, settings=settings, api="responses", extra_body={"reasoning": {"effort": "low"}})

    body = openai.request.body
    assert (body["temperature"], body["top_p"], body["max_output_tokens"]) == (0.0, 0.9, 512)
    assert body["reasoning"] == {"effort": "low"}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("structured", "form"), [("json", {"type": "json_object"}), ("none", {})])
def test_the_form_of_the_answer_can_stand_in_the_instructions(
    openai: FakeOpenAI, api: str, structured: str, form: dict[str, str]
) -> None:
    ask(openai, api=api, structured=structured)

    body = openai.request.body
    said = body["instructions"] if api == "responses" else body["messages"][0]["content"]
    told = body.get("text", {}).get("format", {}) if api == "responses" else {}
    assert said.startswith("Judge it.\n\nAnswer with one JSON object that fits")
    assert json.loads(said.splitlines()[-1]) == SCHEMA
    assert (told or body.get("response_format", {})) == form


def test_a_client_asks_many_questions_at_once(openai: FakeOpenAI) -> None:
    openai.together = threading.Barrier(6, timeout=LONG_S)
    found = ask(openai, *[QUESTION] * 6)

    assert [each.text for each in found] == [VERDICT] * 6
    assert len(openai.requests) == 6
    assert openai.most_at_once == 6


def test_a_cancelled_call_ends_at_once(openai: FakeOpenAI) -> None:
    openai.script.append(as_json(completion(), delay_s=2 * LONG_S))
    judge = OpenAI(model=MODEL, base_url=f"{openai.url}/v1")

    async def asked() -> None:
        context = RunContext(env={"OPENAI_API_KEY": KEY}, root=Path(), now=lambda: 0.0)
        async with judge.start(context) as client:
            call = asyncio.create_task(client.answer(put(judge)))
            await asyncio.to_thread(openai.arrived.wait, LONG_S)
            call.cancel()
            async with asyncio.timeout(LONG_S):
                with pytest.raises(asyncio.CancelledError):
                    await call
            assert (await client.answer(put(judge))).text == VERDICT

    asyncio.run(asked())


# --- Where it goes ----------------------------------------------------------------------------


def test_the_environment_of_the_process_does_not_leak_in(
    openai: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {
        "OPENAI_API_KEY": "sk-the-wrong-key",
        "OPENAI_ORG_ID": "org-wrong",
        "OPENAI_PROJECT_ID": "proj-wrong",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{closed_port()}",
        "AZURE_OPENAI_ENDPOINT": f"http://127.0.0.1:{closed_port()}",
    }
    for name, value in wrong.items():
        monkeypatch.setenv(name, value)
    env = {"OPENAI_API_KEY": f" {KEY}\n", "OPENAI_BASE_URL": f"{openai.url}/v1"}
    ask(openai, env=env, base_url=None)

    assert openai.request.headers["authorization"] == f"Bearer {KEY}"
    assert not {"openai-organization", "openai-project"} & openai.request.headers.keys()


def test_organization_and_project_are_those_of_the_environment(openai: FakeOpenAI) -> None:
    ask(openai, env={"OPENAI_API_KEY": KEY, "OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "p-1"})

    headers = openai.request.headers
    assert (headers["openai-organization"], headers["openai-project"]) == ("org-1", "p-1")


def test_a_server_of_ones_own_needs_no_key(
    openai: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-this-server")
    openai.needs_key = False
    ask(openai, env={}, model="qwen3:8b")

    assert openai.request.headers["authorization"] == "Bearer none"
    assert openai.request.body["model"] == "qwen3:8b"


@pytest.mark.parametrize("api", APIS)
def test_azure_is_asked_for_a_deployment(openai: FakeOpenAI, api: str) -> None:
    env = {
        "AZURE_OPENAI_API_KEY": KEY,
        "AZURE_OPENAI_ENDPOINT": openai.url,
        "OPENAI_API_VERSION": "2025-03-01-preview",
    }
    ask(openai, env=env, base_url=None, model="judge", api=api, settings={"max_output_tokens": 9})

    path = "/openai/deployments/judge/chat/completions" if api == "chat" else "/openai/responses"
    length = "max_completion_tokens" if api == "chat" else "max_output_tokens"
    assert openai.request.path == path
    assert openai.request.query == {"api-version": ["2025-03-01-preview"]}
    assert openai.request.headers["api-key"] == KEY
    assert openai.request.body[length] == 9


# --- Faults -----------------------------------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("reply", [DROPPED, CUT, HTML, Reply(), as_json({"a": 1}), as_json([])])
def test_what_is_no_answer_may_pass_and_is_one_request(
    openai: FakeOpenAI, reply: Reply, api: str
) -> None:
    found = failure(openai, reply, api=api)

    assert found.passing
    assert not found.throttled
    assert len(openai.requests) == 1


def test_a_page_in_the_place_of_an_answer_is_quoted(openai: FakeOpenAI) -> None:
    said = (
        "'gpt-4.1-mini' returned something other than an answer: it is not JSON: expecting value: "
    )
    assert str(failure(openai, HTML)) == f"{said}<html><body>Sign in</body></html>"


def test_a_refused_connection_may_pass(openai: FakeOpenAI) -> None:
    found = failure(openai, base_url=f"http://127.0.0.1:{closed_port()}")

    assert "could not be reached: ConnectError" in str(found)
    assert found.passing


@pytest.mark.parametrize(
    ("status", "passing"),
    [
        *((400, False), (401, False), (403, False), (404, False), (422, False)),
        *((408, True), (409, True), (500, True), (503, True), (529, True)),
    ],
)
def test_an_error_says_whether_it_may_pass(openai: FakeOpenAI, status: int, passing: bool) -> None:
    found = failure(openai, error(status, f"It is\n\nso for {KEY}. " + "word " * 500, code="why"))

    assert str(found).startswith(
        f"'gpt-4.1-mini' gave no answer: {status} why: It is so for [key]."
    )
    assert (found.passing, found.throttled) == (passing, False)
    assert len(openai.requests) == 1


def test_an_error_that_is_a_page_is_told_by_its_code(openai: FakeOpenAI) -> None:
    found = failure(openai, Reply(b"<html>Bad Gateway</html>", 502, "text/html"))

    assert str(found).endswith("gave no answer: 502: <html>Bad Gateway</html>")
    assert found.passing


@pytest.mark.parametrize(
    ("headers", "after_s"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "Sun, 15 Jun 2025 15:06:50 GMT"}, 10.0),
        ({"Retry-After": "7", "retry-after-ms": "6500"}, 6.5),
    ],
)
def test_too_many_requests_throttle(
    openai: FakeOpenAI, headers: dict[str, str], after_s: float | None
) -> None:
    found = failure(openai, error(429, "Slow.", code="rate_limit_exceeded", headers=headers))

    assert (found.throttled, found.passing, found.after_s) == (True, True, after_s)
    assert len(openai.requests) == 1


def test_a_quota_that_is_spent_does_not_pass(openai: FakeOpenAI) -> None:
    spent = error(429, "You exceeded it.", code="insufficient_quota", kind="insufficient_quota")
    found = failure(openai, spent)

    assert (found.throttled, found.passing) == (False, False)
    assert str(found).endswith("this quota does not reset soon, so no more calls are made")


def test_a_wrong_key_is_told_with_its_variable(openai: FakeOpenAI) -> None:
    found = failure(openai, env={"JUDGE_KEY": "sk-the-wrong-key"}, api_key_env="JUDGE_KEY")

    assert "sk-the-wrong-key" not in str(found)
    assert "401 invalid_api_key: Incorrect API key provided: Bearer [key]." in str(found)
    assert str(found).endswith("; the key comes from JUDGE_KEY")


def test_a_missing_key_is_told_with_its_variable(openai: FakeOpenAI) -> None:
    assert str(failure(openai, env={})).endswith("; OPENAI_API_KEY is not set")


@pytest.mark.parametrize("key", ["sk-two\nlines-of-it", "sk-pasted twice", "sk-clé-of-this"])
def test_a_key_that_cannot_be_sent_is_not_shown_either(openai: FakeOpenAI, key: str) -> None:
    found = failure(openai, env={"OPENAI_API_KEY": key})

    wrong = "a space, a line break or a non-ASCII character"
    assert str(found) == f"'openai' cannot be called: OPENAI_API_KEY has {wrong}"
    assert not found.passing
    assert openai.requests == []


def test_an_unknown_model_is_told_with_the_way_out(openai: FakeOpenAI) -> None:
    found = failure(openai, model="gpt-absent")

    assert str(found).startswith("'gpt-absent' gave no answer: 404 model_not_found: ")
    assert str(found).endswith("; name another model with 'model' of the judge")
    assert not found.passing


@pytest.mark.parametrize(("code", "throttled"), [(429, True), (502, False)])
def test_an_error_that_a_gateway_calls_a_success_is_one(
    openai: FakeOpenAI, code: int, throttled: bool
) -> None:
    found = failure(openai, as_json({"error": {"message": "Upstream.", "code": code}}))

    assert str(found) == f"'gpt-4.1-mini' gave no answer: {code}: Upstream."
    assert (found.passing, found.throttled) == (True, throttled)


@pytest.mark.parametrize(
    ("code", "passing", "throttled"),
    [
        ("rate_limit_exceeded", True, True),
        ("server_error", True, False),
        ("invalid_prompt", False, False),
    ],
)
def test_a_response_that_failed_is_an_error(
    openai: FakeOpenAI, code: str, passing: bool, throttled: bool
) -> None:
    failed = response(status="failed", error={"code": code, "message": "No."}, output=[])
    found = failure(openai, as_json(failed), api="responses")

    assert (found.passing, found.throttled) == (passing, throttled)


def test_settings_that_came_later_are_checked_before_anything_is_sent(openai: FakeOpenAI) -> None:
    judge = OpenAI(model=MODEL, base_url=f"{openai.url}/v1")
    changed = judge.model_copy(update={"settings": {"top_k": 3}})

    async def asked() -> None:
        context = RunContext(env={"OPENAI_API_KEY": KEY}, root=Path(), now=lambda: 0.0)
        async with changed.start(context) as client:
            await client.answer(put(changed))

    with pytest.raises(JudgeError, match=r"cannot be called: 'top_k' cannot be set"):
        asyncio.run(asked())
    assert openai.requests == []
