"""Providers' answers: how they are stored, the usage they report, and what clients receive."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
from pydantic_core import to_json

from ci_eval.llm.gateway.nearest_request import leaves
from ci_eval.llm.gateway.providers import Call
from ci_eval.llm.prices import Tokens
from ci_eval.records.bounds import MAX_COUNT
from ci_eval.records.cases import Json
from ci_eval.runtime.http import EventParser
from ci_eval.text.json_text import NotJsonError, parse_json
from ci_eval.text.redact import MIN_CHARS
from ci_eval.text.sanitize import one_line

STREAM = "text/event-stream"
MAX_MODEL_CHARS = 100
CONTENT_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}", re.ASCII)
_OF_THE_REQUEST = ("invalid", "image", "content")
"""How the codes of errors begin that the provider would report again for the same request."""
_OF_THE_KEY = re.compile("key|auth|organi[sz]ation|project")
"""Words in codes of errors that another key would not meet."""
_OF_PROXIES = {"errors", "detail", "message", "code", "status"}
"""The keys of errors that are none of a model's API, but of servers in front of it."""
_MAX_ERROR_CHARS = 200
_FINAL = ("response.completed", "response.incomplete", "response.failed")


@dataclass(frozen=True)
class Answer:
    """A complete answer to a call."""

    status: int
    type: str
    """The content type, without parameters."""
    body: bytes

    @property
    def is_stream(self) -> bool:
        """True if it consists of server-sent events."""
        return self.type == STREAM

    @property
    def trouble(self) -> str:
        """Why a success is no answer of a model nevertheless; empty if it is one.

        A proxy or a wrong address may answer without JSON objects, a provider may report an error,
        and a stream may lack the event that ends it.
        """
        if self.status >= 400:
            return ""
        objects = [*self.objects()]
        if not objects:
            return "not with a JSON object"
        if not self.is_stream and objects[0].keys() <= _OF_PROXIES:
            return f"is not an answer of a model: {one_line(str(objects[0]), _MAX_ERROR_CHARS)}"
        if error := next(filter(None, map(_error, objects)), ""):
            return f"reports an error: {one_line(error, _MAX_ERROR_CHARS)}"
        has_end = self.body.rstrip().endswith(b"[DONE]") or any(map(_is_last, objects))
        return "the stream ended early" if self.is_stream and not has_end else ""

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield the JSON objects: events, or the body, or the items of a list (Gemini streams)."""
        if self.is_stream:
            yield from data_of(self.body)
        else:
            whole = self.json if isinstance(self.json, list) else [self.json]
            yield from (each for each in whole if isinstance(each, dict))

    @cached_property
    def json(self) -> Json:
        """The body, parsed; `None` if it is not JSON."""
        try:
            return parse_json(self.body)
        except NotJsonError:
            return None

    def kept(self) -> dict[str, Json]:
        """Return the answer for a cassette: a stream as events, JSON as it is, or a text."""
        kept: dict[str, Json] = {"status": self.status, "type": self.type}
        if not self.is_stream and self.json is not None:
            return {**kept, "body": self.json}
        text = self.body.decode(errors="replace")
        return {**kept, "events": [*blocks(text)]} if self.is_stream else {**kept, "text": text}


class _Line(msgspec.Struct):
    """The fields of a line of a cassette that a replay checks or needs."""

    request: dict[str, msgspec.Raw]
    answer: msgspec.Raw


_line = msgspec.json.Decoder(_Line).decode


def answer_in(line: bytes) -> Answer:
    """Return the answer in a line of a cassette, without building the request.

    Raises:
        LookupError, RecursionError, TypeError, ValueError: the line holds no answer that a
            provider could send.

    """
    return restored(parse_json(bytes(_line(line).answer)))


def restored(kept: Mapping[str, Json]) -> Answer:
    """Return the answer that a cassette holds.

    Raises:
        LookupError, TypeError, ValueError: `kept` is not an answer that a provider could send.

    """
    status, kind = kept["status"], kept["type"]
    if not isinstance(status, int) or not 200 <= status < 600 or not CONTENT_TYPE.fullmatch(kind):
        raise ValueError
    if "body" in kept:
        answer = Answer(status, kind, to_json(kept["body"]))
        vars(answer)["json"] = kept["body"]  # parsed already
        return answer
    if "events" in kept:
        text = "".join(f"{block}\n\n" for block in kept["events"])
    else:
        text = str(kept["text"])
    return Answer(status, kind, text.encode(errors="replace"))


def blocks(stream: str) -> Iterator[str]:
    """Yield the events of a stream as they were sent, without the blank lines between them."""
    for block in stream.replace("\r\n", "\n").replace("\r", "\n").split("\n\n"):
        if block.strip("\n"):
            yield block.strip("\n")


def data_of(body: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a stream."""
    parser = EventParser()
    for event in (*parser.feed(body), *parser.end()):
        try:
            found = parse_json(event)
        except NotJsonError:
            continue
        if isinstance(found, dict):
            yield found


def texts_of(answer: Answer) -> Iterator[str]:
    """Yield the texts that the events of a stream add up to, by their place in the events."""
    found: dict[str, list[str]] = {}
    for event in answer.objects():
        for path, value in leaves(event):
            if isinstance(value, str):
                found.setdefault(path, []).append(value)
    yield from map("".join, found.values())


def _error(found: dict[str, Any]) -> str:
    """Return the error in an object, unless the request itself causes it."""
    if isinstance(found.get("response"), dict):
        found = found["response"]
    is_error = "error" in (found.get("type"), found.get("object"))
    error = found.get("error") or (found if is_error else None)
    if not isinstance(error, dict):
        return str(error or ("finish_reason 'error'" if "error" in _ends(found) else ""))
    named = [str(error.get(key, "")).lower() for key in ("code", "type", "status")]
    is_of_key = any(_OF_THE_KEY.search(each) for each in named)
    if not is_of_key and any(each.startswith(_OF_THE_REQUEST) for each in named):
        return ""
    return str(error.get("message") or " ".join(filter(None, named)) or error)


def _is_last(event: dict[str, Any]) -> bool:
    """Return True if an event says that, or why, an answer ends, in any of the APIs."""
    if event.get("type") in (*_FINAL, "message_stop", "error"):
        return True
    return bool(event.get("promptFeedback") or event.get("error") or [*_ends(event)])


def _ends(event: dict[str, Any]) -> Iterator[str]:
    """Yield why the parts of an answer end."""
    parts = event.get("choices") or event.get("candidates")
    for each in parts if isinstance(parts, list) else ():
        why = isinstance(each, dict) and (each.get("finish_reason") or each.get("finishReason"))
        if why:
            yield str(why)


# --- Usage ----------------------------------------------------------------------------------------


class Used(NamedTuple):
    """The model and the tokens that an answer states."""

    model: str
    """The model that answered; empty if it is not named."""
    tokens: Tokens | None
    """`None` if they are not stated."""
    thoughts: int = 0


def used(call: Call, answer: Answer) -> Used:
    """Return the usage that an answer states; every number in it is untrusted."""
    body = _last(call, answer)
    model = body.get("modelVersion") or body.get("model") or ""
    named = model[:MAX_MODEL_CHARS] if isinstance(model, str) else ""
    key = "usageMetadata" if call.api == "gemini" else "usage"
    usage = body.get(key)
    if call.is_free:
        return Used(named, Tokens(0, 0))
    if not isinstance(usage, dict):
        return Used(named, None)
    counts = _Counts(usage)
    needed, read = _TOKENS[call.api]
    return Used(named, *read(counts)) if counts.state(needed) else Used(named, None)


class _Counts:
    """The numbers in a usage object."""

    def __init__(self, usage: Mapping[str, Any]) -> None:
        self._usage = usage

    def state(self, names: Iterable[str]) -> bool:
        """Return True if all these numbers are stated."""
        return all(self._count(each) is not None for each in names)

    def __getitem__(self, path: str) -> int:
        return self._count(path) or 0

    def of_audio(self, key: str) -> int:
        """Return the tokens of audio in a list by modality, which Gemini states."""
        listed = self._usage.get(key)
        rows = filter(_is_audio, listed if isinstance(listed, list) else ())
        return sum(_Counts(row)["tokenCount"] for row in rows)

    def _count(self, path: str) -> int | None:
        value: Any = self._usage
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        is_count = isinstance(value, int) and not isinstance(value, bool)
        return value if is_count and 0 <= value <= MAX_COUNT else None


def _is_audio(row: Any) -> bool:
    return isinstance(row, dict) and row.get("modality") == "AUDIO"


def _gemini(each: _Counts) -> tuple[Tokens, int]:
    thoughts = each["thoughtsTokenCount"]
    read = each["promptTokenCount"] + each["toolUsePromptTokenCount"]
    written = each["candidatesTokenCount"] + thoughts
    audio = each.of_audio("promptTokensDetails") - each.of_audio("cacheTokensDetails")
    return Tokens(read, written, each["cachedContentTokenCount"], audio=max(audio, 0)), thoughts


def _chat(each: _Counts) -> tuple[Tokens, int]:
    cached = each["prompt_tokens_details.cached_tokens"]
    thoughts = each["completion_tokens_details.reasoning_tokens"]
    return Tokens(each["prompt_tokens"], each["completion_tokens"], cached), thoughts


def _responses(each: _Counts) -> tuple[Tokens, int]:
    cached = each["input_tokens_details.cached_tokens"]
    thoughts = each["output_tokens_details.reasoning_tokens"]
    return Tokens(each["input_tokens"], each["output_tokens"], cached), thoughts


def _messages(each: _Counts) -> tuple[Tokens, int]:
    cached, written = each["cache_read_input_tokens"], each["cache_creation_input_tokens"]
    read = each["input_tokens"] + cached + written
    longer = each["cache_creation.ephemeral_1h_input_tokens"]
    return Tokens(read, each["output_tokens"], cached, written, longer), 0


_BOTH = ("input_tokens", "output_tokens")
_TOKENS = {
    "gemini": (("promptTokenCount",), _gemini),
    "chat": (("prompt_tokens", "completion_tokens"), _chat),
    "embeddings": (("prompt_tokens",), _chat),
    "responses": (_BOTH, _responses),
    "messages": (_BOTH, _messages),
    "count": (_BOTH, _messages),
}
"""For each API, the numbers that a usage must state, and how it is read."""


def _last(call: Call, answer: Answer) -> dict[str, Any]:
    """Return the body; for a stream, the last model and usage that its events state."""
    whole = None if answer.is_stream else answer.json
    if isinstance(whole, dict):
        return whole
    found: dict[str, Any] = {}
    for event in answer.objects():
        part: Any = event
        if call.api == "responses":
            part = event.get("response") if event.get("type") in _FINAL else None
        elif call.api == "messages" and event.get("type") == "message_start":
            part = event.get("message")
        for key, value in part.items() if isinstance(part, dict) else ():
            if key in ("model", "modelVersion") and value:
                found[key] = value
            elif key in ("usage", "usageMetadata") and isinstance(value, dict):
                # Totals in a later event replace those in an earlier one.
                stated = {name: each for name, each in value.items() if each is not None}
                found[key] = {**found.get(key, {}), **stated}
    return found


# --- Usage in streams of chat completions ---------------------------------------------------------


def asks_for_usage(call: Call) -> dict[str, Json] | None:
    """Return a body that also requests the usage of a stream; `None` if there is no need."""
    options = call.body.get("stream_options")
    asked = options.get("include_usage") if isinstance(options, dict) else None
    if call.api != "chat" or not call.is_streamed or asked:
        return None
    given = options if isinstance(options, dict) else {}
    return {**call.body, "stream_options": {**given, "include_usage": True}}


class WithoutUsage:
    """Passes on the events of a stream, except the usage that the client did not request."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> bytes:
        """Return the events for the client that are complete so far."""
        whole, found, rest = (self._rest + chunk).replace(b"\r\n", b"\n").rpartition(b"\n\n")
        self._rest = rest
        events = whole.split(b"\n\n") if found else []
        return b"".join(each + b"\n\n" for each in events if _is_asked(each))

    def end(self) -> bytes:
        """Return the rest after the last event."""
        return self._rest if _is_asked(self._rest) else b""


def _is_asked(event: bytes) -> bool:
    if b'"usage"' not in event:
        return True
    return not any(data.get("usage") and data.get("choices") == [] for data in data_of(event))


# --- Our key in answers ---------------------------------------------------------------------------


class WithoutKey:
    """Replaces the key in an answer by `shown`: some servers echo the headers of a request."""

    def __init__(self, key: str, shown: str) -> None:
        self._key = key.encode() if len(key) >= MIN_CHARS else b""
        self._shown = shown.encode()
        self._rest = b""

    def feed(self, chunk: bytes) -> bytes:
        """Return the text so far, without a tail that may be the beginning of the key."""
        if not self._key:
            return chunk
        whole = (self._rest + chunk).replace(self._key, self._shown)
        sizes = range(min(len(self._key) - 1, len(whole)), 0, -1)
        begun = next((size for size in sizes if whole.endswith(self._key[:size])), 0)
        known = len(whole) - begun
        self._rest = whole[known:]
        return whole[:known]

    def end(self) -> bytes:
        """Return the rest."""
        rest, self._rest = self._rest, b""
        return rest
