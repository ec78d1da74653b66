"""A stand-in for all three providers behind the model gateway, which never answers twice alike."""

import json
from collections import Counter
from typing import Any

from servers import gemini, openai
from servers.loopback import Loopback, Reply, Request, as_json

KEYS = {
    "GOOGLE_API_KEY": "AIzaSy-the-real-key-of-gemini-0001",
    "OPENAI_API_KEY": "sk-the-real-key-of-openai-0002",
    "ANTHROPIC_API_KEY": "sk-ant-the-real-key-of-anthropic-0003",
}


class Models(Loopback):
    """Answers with what it was asked last, and how often that was asked before."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    def environment(self) -> dict[str, str]:
        """Return the variables with which our process calls it."""
        return {
            **KEYS,
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "ANTHROPIC_BASE_URL": self.url,
        }

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
        self.asked[text] += 1
        return f"{text} #{self.asked[text]}"

    def _has_key(self, request: Request) -> bool:
        keys = (request.headers.get(name, "") for name in ("x-goog-api-key", "x-api-key"))
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        return bool({*keys, bearer} & {*KEYS.values()})

    def _gemini(self, request: Request, body: Any) -> Reply:
        last = body["contents"][-1]["parts"][-1]
        if "functionResponse" in last:
            text = f"It is {last['functionResponse']['response']['report']}."
        elif body.get("tools"):
            call = {"functionCall": {"name": "weather", "args": {"city": self.said(last["text"])}}}
            return self._of_gemini(request, gemini.answer(parts=[call]))
        else:
            text = self.said(last["text"])
        return self._of_gemini(request, gemini.answer(text))

    def _of_gemini(self, request: Request, answer: Any) -> Reply:
        answer["modelVersion"] = "gemini-2.5-flash"
        return gemini.streamed(answer) if "stream" in request.path else as_json(answer)

    def _chat(self, body: Any) -> Reply:
        whole = openai.completion(self.said(body["messages"][-1]["content"]))
        if not body.get("stream"):
            return as_json(whole)
        words = whole["choices"][0]["message"]["content"].split(" ")
        chunks = [
            _chunk([{"index": 0, "delta": {"role": "assistant", "content": each}}])
            for each in (words[0], *(f" {word}" for word in words[1:]))
        ]
        chunks.append(_chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}]))
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
        asked = body["input"] if isinstance(body["input"], str) else body["input"][-1]["content"]
        asked = asked if isinstance(asked, str) else asked[-1]["text"]
        return as_json(openai.response(self.said(asked)))

    def _messages(self, body: Any) -> Reply:
        content = body["messages"][-1]["content"]
        text = self.said(content if isinstance(content, str) else content[-1]["text"])
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 11, "output_tokens": 7, "cache_read_input_tokens": 50},
        }
        if not body.get("stream"):
            return as_json(message)
        start = {**message, "content": [], "usage": {**message["usage"], "output_tokens": 1}}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": start},
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "text", "text": ""},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": text},
            },
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": 7},
            },
            {"type": "message_stop"},
        ]
        body = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
        return Reply(body.encode(), content_type="text/event-stream")


def _chunk(choices: list[Any]) -> dict[str, Any]:
    return {
        "id": "c-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-4.1-mini-2025-04-14",
        "choices": choices,
    }
