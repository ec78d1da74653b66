"""Normalised requests, which are the same for equal calls, and their digest.

Parts that vary without changing an answer are left out: ids of calls, signatures that clients
echo, and certain settings.  Messages and tools keep their order.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from pydantic.alias_generators import to_camel

from ci_eval.llm.gateway.providers import Call
from ci_eval.records.cases import Json
from ci_eval.text.json_text import NotJsonError, parse_json, with_leaves
from ci_eval.text.patterns import replaced

MASK = "…"
"""Replaces text that is left out."""
_UNIMPORTANT = frozenset(
    {
        *("labels", "metadata", "user", "safety_identifier", "prompt_cache_key", "service_tier"),
        *("store", "stream_options", "serviceTier", "prompt_cache_retention"),
    }
)
"""Keys of requests that do not change the answer."""
_ECHOED = frozenset({"thoughtSignature", "thought_signature", "encrypted_content", "cache_control"})
"""Keys anywhere in messages that some clients send and others do not."""
_IDS = frozenset({"id", "tool_call_id", "call_id", "tool_use_id"})
_DATA = frozenset(
    {
        *("args", "response", "arguments", "parameters", "parametersJsonSchema", "responseSchema"),
        *("input_schema", "schema", "json_schema", "responseJsonSchema", "prompt", "conversation"),
    }
)
"""Keys whose values the agent defines: nothing in them is left out or renamed."""
_SPECIAL = _IDS | _DATA | {"input"}
"""Keys whose values are normalised in a special way."""
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def normalised(call: Call, ignore: Sequence[str], base: str) -> dict[str, Json]:
    """Return the normalised request.

    `ignore` are patterns of text to leave out; so is `base`, the gateway's address, which ends with
    a secret.

    Raises:
        TrialError: a pattern took too long.

    """
    secret = base.rpartition("/")[2]

    def text(value: str) -> str:
        if secret in value:
            value = value.replace(base, MASK).replace(secret, MASK)
        for pattern in ignore:
            value = replaced(pattern, value, MASK)
        return value

    walk = _Walk(text, is_gemini=call.provider.name == "gemini")
    kept = {
        key: value
        for key, value in walk.visit(call.body).items()
        if key not in _UNIMPORTANT and value not in ([], {})
    }
    verb = call.path.partition("?")[0].rpartition(":")[2] if walk.is_gemini else call.api
    return {"api": f"{call.provider.name} {verb}", **kept, "model": call.model, **call.versions}


def digest_of(request: dict[str, Json]) -> str:
    """Return the digest of a normalised request."""
    return hashlib.sha256(_ENCODER.encode(request).encode()).hexdigest()[:32]


class _Walk:
    """Normalises one body."""

    def __init__(self, text: Callable[[str], str], *, is_gemini: bool) -> None:
        self._text = text
        self.is_gemini = is_gemini
        self._ids: dict[str, int] = {}

    def visit(self, value: Any) -> Any:
        """Return a part of the request, normalised."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self.visit(each) for each in value]
        if not isinstance(value, dict):
            return value
        found = {}
        for key, each in value.items():
            name = to_camel(key) if self.is_gemini and "_" in key else key
            is_echoed = name in _ECHOED or (name == "signature" and value.get("type") == "thinking")
            if each is not None and not is_echoed:
                special = name in _SPECIAL
                found[name] = self._part(name, each, value) if special else self.visit(each)
        return found

    def _part(self, key: str, value: Any, of: dict[str, Any]) -> Any:
        if key in _IDS and isinstance(value, str):
            return self._ids.setdefault(value, len(self._ids) + 1)
        if key == "arguments" and isinstance(value, str):
            try:
                value = parse_json(value)
            except NotJsonError:
                return self._text(value)
        is_data = key in _DATA or (key == "input" and of.get("type") == "tool_use")
        return with_leaves(value, self._leaf) if is_data else self.visit(value)

    def _leaf(self, value: Any) -> Any:
        return self._text(value) if isinstance(value, str) else value
