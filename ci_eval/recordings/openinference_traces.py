"""Traces in OpenInference's conventions, as exported by Phoenix."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ci_eval.formats.event_lists import USER, as_args, as_response, said
from ci_eval.formats.openai_messages import events_of
from ci_eval.plugins.points import RecordingReader, recording
from ci_eval.recordings._span_attributes import dicts, first, from_json, text_in
from ci_eval.recordings._span_tree import Kind, Step
from ci_eval.recordings._trace_conversations import conversations
from ci_eval.recordings._trace_spans import Span, is_openinference, names_in, read_spans
from ci_eval.records.bounds import MAX_COUNT
from ci_eval.records.cases import FunctionCall, InvocationEvent, Json
from ci_eval.records.trials import Recording
from ci_eval.text.json_text import json_or_text

_KINDS: Final[Mapping[str, Kind]] = {"AGENT": "agent", "LLM": "model", "TOOL": "tool"}
_JSON: Final = "application/json"
_USAGE: Final = {
    "prompt_token_count": "llm.token_count.prompt",
    "candidates_token_count": "llm.token_count.completion",
    "cached_content_token_count": "llm.token_count.prompt_details.cache_read",
}


@recording("openinference")
class OpenInference(RecordingReader):
    """Traces of agents in OpenInference's conventions, as Phoenix exports them.

    Supports OTLP/JSON and the spans of Python's console exporter, as `otel` does, and Phoenix's
    exports: the spans of its client and of its REST API (a list, or an object with `data`), and
    its data frame as `to_json(orient="records")`, with columns such as
    `attributes.llm.input_messages`.  Files of up to 64 MiB.

    **Kinds of spans.** `openinference.span.kind` decides: `AGENT` is an agent, `LLM` a model,
    `TOOL` a tool; all other kinds, such as `CHAIN` and `RETRIEVER`, only group spans.

    Invocations, conversations, matching calls, times and errors follow the rules of `otel`.  A
    conversation is named by `session.id`.  Its case is named by the attribute `ci_eval.case` or
    `eval_id`, or by `eval_id` in `metadata`; otherwise the session's id may be the id of a case, or
    the user's messages must be exactly those of the case.

    **Messages** of a model are `llm.input_messages.N.message.…` and `llm.output_messages.N.…`:
    `role`, `content` or `contents`, `tool_calls.N.tool_call.function.name` and `.arguments`,
    `tool_call_id`, and the older `function_call_name`.  For an agent, or a root if there is no
    agent, `input.value` is the user's message and `output.value` the final response, if they are
    plain text, a JSON string, or JSON with `messages` or a `content`; otherwise the first model's
    messages are used.

    **Tools**: the name is `tool.name`, or else the name of the span; the arguments are
    `tool.parameters`, or else `input.value`; the result is `output.value`.  The id of the call is
    `tool_call.id` or `tool.id`.

    **Tokens** are `llm.token_count.prompt` and `.completion`; **nodes** are `graph.node.id`.

    Source: https://github.com/Arize-ai/openinference/tree/main/spec.
    """

    syntaxes = frozenset({"json", "jsonl"})
    verbatim = False

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True if it begins with spans of OpenInference."""
        names = names_in(head)
        return names is not None and is_openinference(names)

    def read(self, path: Path, *, shown: str) -> Iterator[Recording]:
        """Yield the conversations of the file at `path`."""
        return conversations(read_spans(path, shown=shown), step_of)


def step_of(span: Span) -> Step:
    """Interpret `span`."""
    given = span.get("openinference.span.kind")
    kind = _KINDS.get(given.upper(), "other") if isinstance(given, str) else "other"
    is_tool = kind == "tool"
    return Step(
        kind=kind,
        author=text_in(span.get("agent.name")) or (span.name if kind == "agent" else ""),
        inputs=() if is_tool else _messages_of(span, "input", "user", USER),
        outputs=() if is_tool else _messages_of(span, "output", "assistant", "agent"),
        call=_call(span) if is_tool else None,
        answer=_answer(span) if is_tool else None,
        usage=_usage(span) if kind == "model" else None,
        model=text_in(span.get("llm.model_name")),
        finish=text_in(span.get("llm.finish_reason")) if kind == "model" else None,
        session=text_in(span.get("session.id")),
        case=_case(span),
        node=text_in(span.get("graph.node.id")),
    )


def _case(span: Span) -> str | None:
    named = text_in(span.get("ci_eval.case", "eval_id"))
    return named or text_in(first(from_json(span.get("metadata")), "eval_id"))


def _call(span: Span) -> FunctionCall:
    arguments = span.get("tool.parameters", "input.value")
    return FunctionCall(
        id=text_in(span.get("tool_call.id", "tool.id")),
        name=text_in(span.get("tool.name")) or span.name,
        args=None if arguments is None else as_args(arguments),
    )


def _answer(span: Span) -> dict[str, Json] | None:
    found = span.get("output.value")
    return None if found is None else as_response(found)


def _usage(span: Span) -> dict[str, Json]:
    found = {name: span.get(key) for name, key in _USAGE.items()}
    # A data frame stores integers as floats if some spans have none.
    return {
        name: int(count)
        for name, count in found.items()
        if type(count) in (int, float) and 0 <= count <= MAX_COUNT
    }


# --- Messages -------------------------------------------------------------------------------


def _messages_of(span: Span, which: str, role: str, author: str) -> list[InvocationEvent]:
    """Return the input or the output; `role` and `author` are those of an unnamed message."""
    return _messages(span.get(f"llm.{which}_messages"), role) or _value(span, which, author)


def _messages(given: Json, role: str) -> list[InvocationEvent]:
    """Return the events of messages, each an object with its fields under `message`."""
    found: list[InvocationEvent] = []
    for each in dicts(from_json(given)):
        message = each.get("message", each)
        if isinstance(message, Mapping):
            found += events_of(_as_chat({"role": role, **message}))
    return found


def _as_chat(message: Mapping[str, Json]) -> dict[str, Json]:
    """Return a message with OpenAI's keys."""
    chat = {key: message.get(key) for key in ("role", "content", "name", "tool_call_id")}
    calls = [each.get("tool_call", each) for each in dicts(message.get("tool_calls"))]
    if calls:
        chat["tool_calls"] = calls
    if message.get("function_call_name"):
        arguments = message.get("function_call_arguments_json")
        chat["function_call"] = {"name": message["function_call_name"], "arguments": arguments}
    contents = [each.get("message_content", each) for each in dicts(message.get("contents"))]
    texts = [each for each in contents if isinstance(each, Mapping) and text_in(each.get("text"))]
    if texts and not text_in(chat["content"]):
        chat["content"] = [{"type": "text", "text": each["text"]} for each in texts]
    return chat


def _value(span: Span, which: str, author: str) -> list[InvocationEvent]:
    """Return the messages in `input.value` or `output.value`, if they can be parsed."""
    value = span.get(f"{which}.value")
    if not isinstance(value, str) or not value:
        return []
    is_json = span.get(f"{which}.mime_type") == _JSON
    parsed = json_or_text(value) if is_json else from_json(value)
    if isinstance(parsed, str):
        return [said(author, parsed)] if parsed else []
    if not is_json and not isinstance(parsed, Mapping):
        return [said(author, value)]
    found = _messages(first(parsed, "messages"), "user")
    content = first(parsed, "new_message", "content")
    texts = [text_in(part.get("text")) for part in dicts(first(content, "parts"))]
    if any(texts):
        found.append(said(author, "\n".join(text for text in texts if text)))
    elif isinstance(content, str) and content:
        found.append(said(author, content))
    return found
