"""A stand-in for all three providers behind the model gateway, which never answers twice alike.

It calls the tool `weather` of a client that has tools, and says what the tool answered.
"""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from servers import gemini, openai
from servers.loopback import Loopback, Reply, Request, as_json

KEYS = {
    "GOOGLE_API_KEY": "AIzaSy-the-real-key-of-gemini-0001",
    "OPENAI_API_KEY": "sk-the-real-key-of-openai-0002",
    "ANTHROPIC_API_KEY": "sk-ant-the-real-key-of-anthropic-0003",
}
TOOL = "weather"


class Turn(NamedTuple):
    """What the model does next: it says a text, or calls the tool with a city."""

    text: str = ""
    city: str = ""

    @property
    def args(self) -> str:
        return json.dumps({"city": self.city})


class Models(Loopback):
    """Answers with what it was asked last, and how often that was asked before."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()
        self._counting = threading.Lock()

    def environment(self) -> dict[str, str]:
        """Return the variables with which our process calls it."""
        return KEYS | addresses(self.url)

    def reply(self, request: Request) -> Reply:
        if not self._has_key(request):
            return as_json({"error": {"message": "wrong key"}}, 401)
        body = request.body
        if request.path.endswith(("generateContent", "streamGenerateContent")):
            return self._gemini(request, body)
        answers = {
            "/v1/chat/completions": self._chat,
            "/v1/responses": self._responses,
            "/v1/embeddings": self._embeddings,
            "/v1/messages": self._messages,
        }
        if request.path not in answers:
            return as_json({"error": {"message": f"no {request.path}"}}, 404)
        return answers[request.path](body)

    def said(self, text: str) -> str:
        with self._counting:  # requests come in threads
            self.asked[text] += 1
            return f"{text} #{self.asked[text]}"

    def _turn(self, asked: Any, result: Any, body: Any) -> Turn:
        """Return the turn after a question, or after the result of the tool."""
        if result is not None:
            return Turn(f"It is {result}.")
        said = self.said(asked)
        return Turn(city=said) if body.get("tools") else Turn(said)

    def _has_key(self, request: Request) -> bool:
        keys = (request.headers.get(name, "") for name in ("x-goog-api-key", "x-api-key"))
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        return bool({*keys, bearer} & {*KEYS.values()})

    def _gemini(self, request: Request, body: Any) -> Reply:
        last = body["contents"][-1]["parts"][-1]
        given = last.get("functionResponse") or last.get("function_response")  # LiteLLM's
        turn = self._turn(last.get("text"), given and _report(given["response"]), body)
        call = {"functionCall": {"name": TOOL, "args": {"city": turn.city}}}
        answer = gemini.answer(turn.text, parts=[call] if turn.city else None)
        answer["modelVersion"] = "gemini-2.5-flash"
        return gemini.streamed(answer) if "stream" in request.path else as_json(answer)

    def _chat(self, body: Any) -> Reply:
        last = body["messages"][-1]
        asked, result = _text(last["content"]), None
        if last["role"] == "tool":
            result = _report(asked)
        turn = self._turn(asked, result, body)
        whole = openai.completion(turn.text or None, "tool_calls" if turn.city else "stop")
        call = {"name": TOOL, "arguments": turn.args}
        calls = [{"id": "call_1", "type": "function", "function": call}] if turn.city else []
        if calls:
            whole["choices"][0]["message"]["tool_calls"] = calls
        if not body.get("stream"):
            return as_json(whole)
        chunks = [
            _chunk([{"index": 0, "delta": {"role": "assistant", "content": each}}])
            for each in _words(turn.text)
        ]
        if calls:
            delta = {"role": "assistant", "tool_calls": [{"index": 0, **calls[0]}]}
            chunks = [_chunk([{"index": 0, "delta": delta}])]
        finish = whole["choices"][0]["finish_reason"]
        chunks.append(_chunk([{"index": 0, "delta": {}, "finish_reason": finish}]))
        if (body.get("stream_options") or {}).get("include_usage"):
            chunks.append({**_chunk([]), "usage": whole["usage"]})
        lines = [f"data: {json.dumps(each)}\n\n" for each in chunks]
        text = "".join([*lines, "data: [DONE]\n\n"])
        return Reply(text.encode(), content_type="text/event-stream")

    def _embeddings(self, body: Any) -> Reply:
        data = [{"object": "embedding", "index": 0, "embedding": [0.25, 0.5]}]
        usage = {"prompt_tokens": 3, "total_tokens": 3}
        return as_json({"object": "list", "data": data, "model": body["model"], "usage": usage})

    def _responses(self, body: Any) -> Reply:
        given = body["input"]
        last = {"content": given} if isinstance(given, str) else given[-1]
        result = _report(_text(last["output"])) if "output" in last else None
        turn = self._turn(_text(last.get("content", "")), result, body)
        whole = openai.response(turn.text)
        if turn.city:
            call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": TOOL}
            whole["output"][-1] = {**call, "arguments": turn.args, "status": "completed"}
        return _events(_of_response(whole)) if body.get("stream") else as_json(whole)

    def _messages(self, body: Any) -> Reply:
        content = body["messages"][-1]["content"]
        last = {"type": "text", "text": content} if isinstance(content, str) else content[-1]
        result = _report(_text(last["content"])) if last["type"] == "tool_result" else None
        turn = self._turn(last.get("text"), result, body)
        part: dict[str, Any] = {"type": "text", "text": turn.text}
        delta = {"type": "text_delta", "text": turn.text}
        if turn.city:
            args = {"city": turn.city}
            part = {"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": args}
            delta = {"type": "input_json_delta", "partial_json": turn.args}
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [part],
            "stop_reason": "tool_use" if turn.city else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 11, "output_tokens": 7, "cache_read_input_tokens": 50},
        }
        return _events(_of_message(message, delta)) if body.get("stream") else as_json(message)


def addresses(url: str) -> dict[str, str]:
    """Return the variables with which our process calls providers at `url`."""
    return {
        "GOOGLE_GEMINI_BASE_URL": url,
        "OPENAI_BASE_URL": f"{url}/v1",
        "ANTHROPIC_BASE_URL": url,
    }


def _text(content: Any) -> str:
    """Return the text of a message, or of its last part."""
    return content if isinstance(content, str) else str(content[-1]["text"])


def _report(result: Any) -> Any:
    """Return the report of the tool, which some clients send as a text."""
    try:
        found = json.loads(result) if isinstance(result, str) else result
    except ValueError:
        return result
    return found.get("report", found) if isinstance(found, dict) else found


def _words(text: str) -> list[str]:
    first, *others = text.split(" ")
    return [first, *(f" {word}" for word in others)]


def _events(events: Iterator[dict[str, Any]]) -> Reply:
    body = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
    return Reply(body.encode(), content_type="text/event-stream")


def _of_message(message: Any, delta: Any) -> Iterator[dict[str, Any]]:
    (part,) = message["content"]
    begun = {**part, "text": ""} if "text" in part else {**part, "input": {}}
    used = {**message["usage"], "output_tokens": 1}
    start = {**message, "content": [], "stop_reason": None, "usage": used}
    yield {"type": "message_start", "message": start}
    yield {"type": "content_block_start", "index": 0, "content_block": begun}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    end = {"stop_reason": message["stop_reason"]}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop"}


def _of_response(whole: Any) -> Iterator[dict[str, Any]]:
    *_, item = whole["output"]
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "sequence_number": 0, "response": begun}
    at = {"output_index": 0, "item_id": item["id"]}
    added = {**item, "content": []} if "content" in item else {**item, "arguments": ""}
    yield {"type": "response.output_item.added", **at, "sequence_number": 1, "item": added}
    if "content" in item:
        (part,) = item["content"]
        where = {**at, "content_index": 0}
        empty = {**part, "text": ""}
        yield {"type": "response.content_part.added", **where, "sequence_number": 2, "part": empty}
        for number, delta in enumerate(_words(part["text"]), 3):
            told = {"delta": delta, "logprobs": [], "sequence_number": number}
            yield {"type": "response.output_text.delta", **where, **told}
    else:
        told = {"delta": item["arguments"], "sequence_number": 2}
        yield {"type": "response.function_call_arguments.delta", **at, **told}
    yield {"type": "response.output_item.done", **at, "sequence_number": 90, "item": item}
    done = {**whole, "output": [item]}
    yield {"type": "response.completed", "sequence_number": 91, "response": done}


def _chunk(choices: list[Any]) -> dict[str, Any]:
    return {
        "id": "c-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-4.1-mini-2025-04-14",
        "choices": choices,
    }
