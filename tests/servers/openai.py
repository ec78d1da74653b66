"""A stand-in for OpenAI's API, and for servers that speak it, as its reference describes it.

https://platform.openai.com/docs/api-reference/chat, …/responses, …/guides/error-codes and
https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
"""

import re
from collections.abc import Iterator
from typing import Any

from servers.loopback import Loopback, Reply, Request, as_json

KEY = "sk-the-right-key-of-this-test"
VERDICT = '{"verdict": "yes"}'
_PATH = re.compile(
    r"(?:/v1|(?P<azure>/openai)/deployments/[\w.-]+|(?P<azure_other>/openai))"
    r"/(?P<api>chat/completions|responses)"
)
_FIELDS = {
    "chat/completions": {
        *("model", "messages", "temperature", "top_p", "seed", "stop", "reasoning_effort"),
        *("presence_penalty", "frequency_penalty", "max_completion_tokens", "max_tokens"),
        "response_format",
    },
    "responses": {
        *("model", "input", "instructions", "text", "store", "temperature", "top_p"),
        *("max_output_tokens", "reasoning"),
    },
}


def completion(
    content: str | None = VERDICT, finish: str = "stop", refusal: str | None = None
) -> dict[str, Any]:
    """Return a chat completion."""
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1750000000,
        "model": "gpt-4.1-mini-2025-04-14",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def response(
    text: str = VERDICT, status: str = "completed", reason: str | None = None, **more: Any
) -> dict[str, Any]:
    """Return a response that thought before."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": status}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1750000000,
        "model": "gpt-4.1-mini-2025-04-14",
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "output": [
            {"id": "rs_1", "type": "reasoning", "summary": []},
            {**message, "content": [part]},
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 11,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 5},
            "total_tokens": 18,
        },
        **more,
    }


def error(
    status: int, message: str, *, code: str | None = None, kind: str = "error", **more: Any
) -> Reply:
    """Return an error as OpenAI has it."""
    body = {"message": message, "type": kind, "param": None, "code": code}
    return as_json({"error": body}, status, **more)


class FakeOpenAI(Loopback):
    """Answers every question with `VERDICT`; a name with `absent` in it is no model."""

    needs_key = True

    def reply(self, request: Request) -> Reply:
        found = _PATH.fullmatch(request.path)
        if not found or (request.path.startswith("/openai") and "api-version" not in request.query):
            return Reply(b'{"detail":"Not Found"}', 404)
        sent = request.headers.get("api-key") or request.headers.get("authorization", "")
        if self.needs_key and sent not in (KEY, f"Bearer {KEY}"):
            said = f"Incorrect API key provided: {sent}. You can find your API key at …"
            return error(401, said, code="invalid_api_key", kind="invalid_request_error")
        body = request.body
        if "absent" in body["model"]:
            said = f"The model `{body['model']}` does not exist or you do not have access to it."
            return error(404, said, code="model_not_found", kind="invalid_request_error")
        if unknown := body.keys() - _FIELDS[found["api"]]:
            said = f"Unknown parameter: {sorted(unknown)}."
            return error(400, said, code="unknown_parameter", kind="invalid_request_error")
        if loose := list(_loose(_schema(body))):
            said = f"Invalid schema for response_format: {loose}"
            return error(400, said, kind="invalid_request_error")
        return as_json(completion() if found["api"] == "chat/completions" else response())


def _schema(body: dict[str, Any]) -> Any:
    """Return the strict schema of the answer, if there is one."""
    form = body.get("text", {}).get("format", {})
    form = form or body.get("response_format", {}).get("json_schema", {})
    if form and form.get("strict"):
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", form["name"])
        return form["schema"]
    return {}


def _loose(schema: Any) -> Iterator[str]:
    """Yield what the strict mode refuses."""
    if isinstance(schema, list):
        for each in schema:
            yield from _loose(each)
    elif isinstance(schema, dict):
        if schema.get("type") == "object":
            if schema.get("additionalProperties") is not False:
                yield "'additionalProperties' is required to be supplied and to be false"
            if set(schema.get("required", ())) != set(schema.get("properties", ())):
                yield "'required' is required to include every key in properties"
        for each in schema.values():
            yield from _loose(each)
