"""A stand-in for the Gemini API and Vertex AI, as their references describe `generateContent`.

`streamGenerateContent` answers with server-sent events, as it does with `alt=sse`.

https://ai.google.dev/api/generate-content, https://cloud.google.com/apis/design/errors and
https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference
"""

import json
import re
from typing import Any

from servers.loopback import Loopback, Reply, Request, as_json

KEY = "AIzaSy-the-right-key-of-this-test"
VERDICT = '{"verdict": "yes"}'
_PATH = re.compile(
    r"/(?P<version>v1|v1beta|v1beta1)/"
    r"(?:(?:projects/(?P<project>[\w-]+)/locations/(?P<location>[\w-]+)/)?publishers/google/)?"
    r"models/(?P<model>[\w.-]+):(?P<verb>generateContent|streamGenerateContent)"
)
_FIELDS = {
    *("contents", "systemInstruction", "generationConfig", "safetySettings", "labels"),
    *("tools", "toolConfig", "cachedContent", "serviceTier"),
}
_CONFIG = {
    *("temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "seed"),
    *("presencePenalty", "frequencyPenalty", "candidateCount", "thinkingConfig"),
    *("responseMimeType", "responseSchema", "responseJsonSchema", "mediaResolution"),
}


def answer(
    text: str = VERDICT, finish: str = "STOP", *, parts: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return a `GenerateContentResponse`."""
    content = {"role": "model", "parts": [{"text": text}] if parts is None else parts}
    return {
        "candidates": [{"content": content, "finishReason": finish, "index": 0}],
        "usageMetadata": {
            "promptTokenCount": 11,
            "candidatesTokenCount": 7,
            "thoughtsTokenCount": 5,
            "totalTokenCount": 23,
        },
        "modelVersion": "gemini-2.5-flash-001",
        "responseId": "r-1",
    }


def streamed(*chunks: dict[str, Any], **more: Any) -> Reply:
    """Return `chunks` as server-sent events."""
    body = "".join(f"data: {json.dumps(each)}\r\n\r\n" for each in chunks)
    return Reply(body.encode(), content_type="text/event-stream", **more)


def error(status: int, name: str, message: str, *details: dict[str, Any], **more: Any) -> Reply:
    """Return an error as all APIs of Google have it."""
    body = {"code": status, "message": message, "status": name}
    return as_json({"error": body | ({"details": details} if details else {})}, status, **more)


def quota(quota_id: str, value: str = "15") -> dict[str, Any]:
    violation = {
        "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
        "quotaId": quota_id,
        "quotaValue": value,
    }
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}


def retry_info(delay: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


KEY_INVALID = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": "API_KEY_INVALID",
    "domain": "googleapis.com",
    "metadata": {"service": "generativelanguage.googleapis.com"},
}


class FakeGemini(Loopback):
    """Answers every question with `VERDICT`; a name with `absent` in it is no model."""

    def reply(self, request: Request) -> Reply:
        found = _PATH.fullmatch(request.path)
        if not found:
            return Reply(b"Not Found", 404, "text/plain")
        if not found["project"] and request.headers.get("x-goog-api-key") != KEY:
            said = "API key not valid. Please pass a valid API key."
            return error(400, "INVALID_ARGUMENT", said, KEY_INVALID)
        if "absent" in found["model"]:
            said = (
                f"models/{found['model']} is not found for API version {found['version']}, "
                "or is not supported for generateContent."
            )
            return error(404, "NOT_FOUND", said)
        config = request.body.get("generationConfig", {})
        unknown = [*(request.body.keys() - _FIELDS), *(config.keys() - _CONFIG)]
        if unknown or not request.body.get("contents"):
            said = f"Invalid JSON payload received. Unknown name {unknown}: Cannot find field."
            return error(400, "INVALID_ARGUMENT", said)
        return as_json(answer()) if found["verb"] == "generateContent" else streamed(answer())
