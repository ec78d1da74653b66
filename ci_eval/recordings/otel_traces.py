"""Traces in OpenTelemetry's conventions for generative AI."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ci_eval.formats.event_lists import as_args, as_response
from ci_eval.plugins.points import RecordingReader, recording
from ci_eval.recordings._span_attributes import text_in
from ci_eval.recordings._span_messages import INPUT, OUTPUT, messages_of
from ci_eval.recordings._span_tree import Kind, Step
from ci_eval.recordings._trace_conversations import conversations
from ci_eval.recordings._trace_spans import Span, is_openinference, names_in, read_spans
from ci_eval.records.bounds import MAX_COUNT
from ci_eval.records.cases import FunctionCall, Json
from ci_eval.records.trials import Recording

_KINDS: Final[Mapping[str, Kind]] = {
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
    "chat": "model",
    "generate_content": "model",
    "text_completion": "model",
    "execute_tool": "tool",
}
"""Kind of span by operation name."""
_USAGE: Final = {
    "prompt_token_count": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    "candidates_token_count": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    "cached_content_token_count": ("gen_ai.usage.cache_read.input_tokens",),
}
_MERGED: Final = "(merged tools)"
"""ADK's name for a span that repeats the tools that ran concurrently."""


@recording("otel")
class OpenTelemetry(RecordingReader):
    """Traces of agents in OpenTelemetry's conventions for generative AI, exported as JSON.

    Supports OTLP/JSON from the collector's file exporter and the OTLP exporters (one export, or
    one per line), and spans from Python's console exporter: alone, in a list, one per line, or one
    after the other.  Files of up to 64 MiB.

    **Kinds of spans.** `gen_ai.operation.name` decides: `invoke_agent` and `invoke_workflow` are
    agents, `chat`, `generate_content` and `text_completion` are models, `execute_tool` is a tool.
    Without it, a span with `gen_ai.tool.name` is a tool, and a span with `gen_ai.request.model` or
    messages is a model.

    **Invocations.** Each outermost agent span is an invocation; in a trace without agents, each
    root is one.  Consecutive spans with the same user message, or without one, are one invocation.
    The user's message is the last one in the input of the agent, or of the first model in it.  The
    spans inside are ordered by start time: a model contributes its output (the first choice), a
    tool its call and its result.  A call recorded by both a model and a tool counts once; the two
    are matched by `gen_ai.tool.call.id`, or else by name.  A result without a tool span is taken
    from the next model's input.  The final response is the output of the agent, or the last text of
    a model without calls.

    **Conversations.** Invocations with the same `gen_ai.conversation.id` (or `session.id`) are
    one conversation, ordered by time; without it, each trace is one.

    **Cases.** The attribute `ci_eval.case` or `eval_id` of any span, or of the resource, names the
    case; otherwise the conversation's id may be the id of a case, or the user's messages must be
    exactly those of the case.

    **Errors.** Status ERROR on the span of an agent or a root makes the recording an error; on the
    span of a tool, it makes the result `{"error": …}`.  The text is that of the status, or of the
    last `exception` event.

    **Times and tokens.** The duration is that of the agent's span; model time is the time during
    which at least one model runs, tool time that during which a tool but no model runs.  Tokens are
    the models' `gen_ai.usage.input_tokens` (or `prompt_tokens`) and `output_tokens` (or
    `completion_tokens`).

    **Messages** are read from `gen_ai.input.messages` and `gen_ai.output.messages` (version
    1.37 and later, on the span or on its event `gen_ai.client.inference.operation.details`), from
    the events `gen_ai.user.message`, …, `gen_ai.choice` (up to 1.36), from the events
    `gen_ai.content.prompt` and `gen_ai.content.completion` (up to 1.27), from `gen_ai.prompt.0.…`
    and `gen_ai.completion.0.…` (OpenLLMetry), and from `gcp.vertex.agent.llm_request`,
    `llm_response`, `tool_call_args` and `tool_response` (ADK).

    **Files** may also be Jaeger's JSON, or Tempo's (`batches`, `trace`).

    Source: https://opentelemetry.io/docs/specs/semconv/gen-ai/, which is still in development.
    """

    syntaxes = frozenset({"json", "jsonl"})
    verbatim = False

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True if it begins with spans that are not OpenInference's."""
        names = names_in(head)
        return names is not None and not is_openinference(names)

    def read(self, path: Path, *, shown: str) -> Iterator[Recording]:
        """Yield the conversations of the file at `path`."""
        return conversations(read_spans(path, shown=shown), step_of)


def step_of(span: Span) -> Step:
    """Interpret `span`."""
    kind = _kind(span)
    name = span.get("gen_ai.tool.name")
    return Step(
        kind=kind,
        author=text_in(span.get("gen_ai.agent.name")) or "",
        inputs=messages_of(span, INPUT),
        outputs=messages_of(span, OUTPUT),
        call=_call(span, name) if kind == "tool" and isinstance(name, str) else None,
        answer=_answer(span),
        usage=_usage(span) if kind == "model" else None,
        model=text_in(span.get("gen_ai.response.model", "gen_ai.request.model")),
        finish=_finish(span.get("gen_ai.response.finish_reasons")) if kind == "model" else None,
        session=text_in(
            span.get("gen_ai.conversation.id", "gcp.vertex.agent.session_id", "session.id")
        ),
        case=text_in(span.get("ci_eval.case", "eval_id")),
    )


def _finish(value: Json) -> str | None:
    """Return the finish reason of the first answer."""
    return text_in(value[0] if isinstance(value, list) and value else value)


def _kind(span: Span) -> Kind:
    operation = span.get("gen_ai.operation.name")
    if operation is not None:
        known = isinstance(operation, str) and span.get("gen_ai.tool.name") != _MERGED
        return _KINDS.get(operation, "other") if known else "other"
    if span.get("gen_ai.tool.name"):
        return "tool"
    is_model = span.get("gen_ai.request.model", "gen_ai.input.messages", "gen_ai.output.messages")
    return "model" if is_model is not None else "other"


def _call(span: Span, name: str) -> FunctionCall:
    given = span.get("gen_ai.tool.call.id")
    is_id = isinstance(given, str) and given and not given.startswith("<")
    arguments = span.get("gen_ai.tool.call.arguments", "gcp.vertex.agent.tool_call_args")
    return FunctionCall(
        id=given if is_id else None,
        name=name,
        args=None if arguments is None else as_args(arguments),
    )


def _answer(span: Span) -> dict[str, Json] | None:
    found = span.get("gen_ai.tool.call.result", "gcp.vertex.agent.tool_response")
    return None if found is None else as_response(found)


def _usage(span: Span) -> dict[str, Json]:
    found = {name: span.get(*keys) for name, keys in _USAGE.items()}
    return {
        name: count
        for name, count in found.items()
        if type(count) is int and 0 <= count <= MAX_COUNT
    }
