"""Requests and responses of OpenAI's two APIs: chat completions and responses.

https://platform.openai.com/docs/api-reference/chat and …/responses
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ci_eval.llm.providers.model_settings import REFUSED, Settings
from ci_eval.records.cases import Json, Stored
from ci_eval.records.questions import Answer, Question
from ci_eval.text.json_text import parse_json

Api = Literal["chat", "responses"]
Structured = Literal["schema", "json", "none"]

_ABSENT = "this API has no such setting; pass its equivalent in 'extra_body'"
_GEMINI = (
    *("top_k", "thinking_config", "safety_settings", "http_options", "media_resolution"),
    *("service_tier", "labels", "cached_content", "routing_config", "model_selection_config"),
    *("model_armor_config", "response_logprobs", "logprobs"),
)
_CHAT_ALONE = ("seed", "stop_sequences", "presence_penalty", "frequency_penalty")
REFUSED_BY: Mapping[Api, Mapping[str, str]] = {
    "chat": {**REFUSED, **dict.fromkeys(_GEMINI, _ABSENT)},
    "responses": {**REFUSED, **dict.fromkeys((*_GEMINI, *_CHAT_ALONE), _ABSENT)},
}
"""Settings that cannot be translated, and why."""


class RefusedError(Exception):
    """An error response with the status code of a success."""

    def __init__(self, status: int, said: str) -> None:
        self.status = status
        super().__init__(said)


class Call(NamedTuple):
    """The parameters of all calls to one model."""

    model: str
    api: Api
    structured: Structured
    settings: Settings
    length: str
    """Name of the length limit: `max_completion_tokens` or `max_tokens`."""
    extra_body: Mapping[str, Json]

    def parameters(self, question: Question) -> dict[str, Any]:
        """Return the arguments of the API's `create` method."""
        instructions = question.instructions
        if self.structured != "schema" and question.schema:
            instructions = f"{instructions}\n\n{_schema_instructions(question.schema)}".strip()
        given = self.settings.model_dump(exclude_none=True)
        if self.api == "chat":
            parameters = self._chat(question, instructions, given)
        else:
            parameters = self._responses(question, instructions, given)
        if self.extra_body:
            parameters["extra_body"] = dict(self.extra_body)
        return {"model": self.model, **parameters}

    def _chat(self, question: Question, instructions: str, given: dict[str, Any]) -> dict[str, Any]:
        names = {"max_output_tokens": self.length, "stop_sequences": "stop"}
        form = self._form(question)
        system = [{"role": "system", "content": instructions}] if instructions else []
        return {
            "messages": [*system, {"role": "user", "content": question.prompt}],
            **({"response_format": form} if form else {}),
            **{names.get(name, name): value for name, value in given.items()},
        }

    def _responses(
        self, question: Question, instructions: str, given: dict[str, Any]
    ) -> dict[str, Any]:
        form = self._form(question)
        return {
            "input": question.prompt,
            "store": False,  # OpenAI must not store the conversation
            **({"instructions": instructions} if instructions else {}),
            **({"text": {"format": form}} if form else {}),
            **given,
        }

    def _form(self, question: Question) -> dict[str, Any]:
        """Return the format of the answer; empty if it is not requested."""
        if not question.schema or self.structured == "none":
            return {}
        if self.structured == "json":
            return {"type": "json_object"}
        named = _named_schema(question)
        return {"type": "json_schema", **({"json_schema": named} if self.api == "chat" else named)}

    def read(self, body: str) -> Answer:
        """Parse the answer in the body of a response.

        Raises:
            RefusedError: it is an error.
            ValueError: it is not a response of this API.

        """
        value = parse_json(body)
        if self.api == "chat":
            return _read_completion(_Completion.model_validate(value))
        return _read_response(_Response.model_validate(value))


# --- Questions --------------------------------------------------------------------------------


def _schema_instructions(schema: Mapping[str, Json]) -> str:
    text = json.dumps(schema, ensure_ascii=False)
    return f"Answer with one JSON object that fits this JSON schema, and with nothing else:\n{text}"


def _named_schema(question: Question) -> dict[str, Any]:
    """Return the answer's schema under a name that the API accepts."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", question.about)[:64] or "answer"
    return {"name": name, "schema": strict(question.schema), "strict": True}


def strict(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Convert `schema` for strict mode: objects have exactly the listed properties.

    https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
    """
    found = dict(schema)
    for key in ("properties", "$defs"):
        if isinstance(found.get(key), dict):
            found[key] = {name: strict(inner) for name, inner in found[key].items()}
    if isinstance(found.get("items"), dict):
        found["items"] = strict(found["items"])
    if isinstance(found.get("anyOf"), list):
        found["anyOf"] = [strict(inner) for inner in found["anyOf"]]
    if "properties" in found:
        found |= {"required": list(found["properties"]), "additionalProperties": False}
    return found


# --- Answers ----------------------------------------------------------------------------------


class _Error(Stored):
    message: str | None = None
    code: int | str | None = None


class _Message(Stored):
    content: str | None = None
    refusal: str | None = None


class _Choice(Stored):
    message: _Message = _Message()
    finish_reason: str | None = None


class _ChatUsage(Stored):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(Stored):
    choices: tuple[_Choice, ...] | None = None
    usage: _ChatUsage | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    error: _Error | None = None


_FINISHES: Mapping[str | None, Literal["stop", "length", "blocked"]] = {
    "stop": "stop",
    "completed": "stop",
    "length": "length",
    "max_output_tokens": "length",
    "content_filter": "blocked",
}


def _read_completion(found: _Completion) -> Answer:
    if not found.choices:
        raise _refused(found.error, "has no 'choices'")
    choice, usage = found.choices[0], found.usage or _ChatUsage()
    finish = _FINISHES.get(choice.finish_reason, "other")
    return Answer(
        text=choice.message.content or "",
        finish="blocked" if choice.message.refusal else finish,
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        model=found.model or "",
        fingerprint=found.system_fingerprint or "",
    )


class _OutputPart(Stored):
    type: str = ""
    text: str | None = None


class _Output(Stored):
    type: str = ""
    content: tuple[_OutputPart, ...] | None = None


class _Incomplete(Stored):
    reason: str | None = None


class _ResponseUsage(Stored):
    input_tokens: int | None = None
    output_tokens: int | None = None


class _Response(Stored):
    status: str | None = None
    output: tuple[_Output, ...] | None = None
    incomplete_details: _Incomplete | None = None
    usage: _ResponseUsage | None = None
    model: str | None = None
    error: _Error | None = None


def _read_response(found: _Response) -> Answer:
    if found.error or found.output is None:
        raise _refused(found.error, "has no 'output'")
    parts = list(_parts(found.output))
    reason = found.incomplete_details.reason if found.incomplete_details else found.status
    usage = found.usage or _ResponseUsage()
    refused = any(part.type == "refusal" for part in parts)
    return Answer(
        text="".join(part.text or "" for part in parts if part.type == "output_text"),
        finish="blocked" if refused else _FINISHES.get(reason, "other"),
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        model=found.model or "",
    )


def _parts(output: tuple[_Output, ...]) -> Iterator[_OutputPart]:
    for each in output:
        if each.type == "message":
            yield from each.content or ()


_CODES = {"rate_limit_exceeded": 429, "invalid_prompt": 400}
"""Error codes in responses, and the equivalent HTTP status codes."""


def _refused(error: _Error | None, why: str) -> Exception:
    """Return the error for a response without an answer; gateways use HTTP status codes."""
    if error is None:
        return ValueError(why)
    code = error.code if isinstance(error.code, int) else _CODES.get(error.code or "", 500)
    return RefusedError(code, error.message or str(error.code or ""))
