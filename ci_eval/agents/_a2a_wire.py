"""The Agent2Agent protocol on the wire, as JSON-RPC: a common reader for versions 0.3 and 1.0.

https://a2a-protocol.org/latest/specification/ and …/v0.3.0/specification/.  The two differ in the
names of methods and states, in how they distinguish parts, and in how they wrap a result.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import AliasGenerator, BeforeValidator, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from ci_eval.agents._agent_input import Attachment, attachment
from ci_eval.records.cases import Content, FunctionCall, FunctionResponse, Json, Part, Stored
from ci_eval.records.errors import TrialError
from ci_eval.text.json_text import with_leaves

JSONRPC = "JSONRPC"
JSON_TYPE = "application/json"
INPUT_REQUIRED = "input_required"
"""The name of the pending call for an agent that requires input in any form."""
_ENDED = ("completed", "failed", "canceled", "rejected")
SETTLED = frozenset({*_ENDED, "input-required", "auth-required"})
"""The states of a task that has ended, or waits for input."""


class _Wire(Stored):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=AliasGenerator(validation_alias=to_camel), populate_by_name=True
    )


def _in_old_spelling(value: Any) -> Any:
    """Return a state or a role in the spelling of 0.3; 1.0 has `TASK_STATE_INPUT_REQUIRED`."""
    if not isinstance(value, str):
        return value
    name = value.removeprefix("TASK_STATE_").removeprefix("ROLE_")
    return name.lower().replace("_", "-")


_Name = Annotated[str, BeforeValidator(_in_old_spelling)]


class _File(_Wire):
    bytes: str | None = None
    uri: str | None = None
    mime_type: str | None = None


def _with_integers(value: Any) -> Any:
    """Return `value` with whole numbers as integers; protobuf servers send `3.0`."""
    return with_leaves(
        value, lambda leaf: int(leaf) if isinstance(leaf, float) and leaf.is_integer() else leaf
    )


class WirePart(_Wire):
    """A piece of a message or an artifact."""

    text: str | None = None
    data: Annotated[Json, BeforeValidator(_with_integers)] = None
    raw: str | None = None
    url: str | None = None
    file: _File | None = None
    media_type: str | None = None
    metadata: dict[str, Json] | None = None

    @property
    def tool(self) -> Part | None:
        """The tool call or tool response, if it is one; ADK's servers mark it in metadata."""
        kind = (self.metadata or {}).get("adk_type")
        if isinstance(self.data, dict) and kind == "function_call":
            return Part(function_call=FunctionCall(**_picked(self.data, "id", "name", "args")))
        if isinstance(self.data, dict) and kind == "function_response":
            answer = FunctionResponse(**_picked(self.data, "id", "name", "response"))
            return Part(function_response=answer)
        return None

    @property
    def waits_for(self) -> FunctionCall | None:
        """The call that waits for an external answer, if it is one."""
        is_waiting = (self.metadata or {}).get("adk_is_long_running") is True
        return self.tool.function_call if self.tool and is_waiting else None

    def as_part(self, *, data_as_text: bool = False) -> Part:
        """Convert it to our `Part`."""
        if self.text is not None:
            thought = (self.metadata or {}).get("adk_thought") is True
            return Part(text=self.text, thought=thought or None)
        if self.tool:
            return self.tool
        file = self.file or _File(bytes=self.raw, uri=self.url, mime_type=self.media_type)
        if file.uri is not None:
            return Part(file_data={"mime_type": file.mime_type, "file_uri": file.uri})
        written = json.dumps(self.data, ensure_ascii=False)
        if file.bytes is None and data_as_text:
            return Part(text=written)
        encoded = b64encode(written.encode()).decode() if file.bytes is None else file.bytes
        return Part(inline_data={"mime_type": file.mime_type or JSON_TYPE, "data": encoded})


def as_parts(given: Iterable[WirePart]) -> tuple[Part, ...]:
    """Convert parts to ours; if no part is text, data become text."""
    parts = list(given)
    alone = all(part.text is None for part in parts)
    return tuple(part.as_part(data_as_text=alone) for part in parts)


def _picked(data: Mapping[str, Json], *keys: str) -> dict[str, Json]:
    """Return the values of a call under `keys` that have the expected types."""
    kinds = (str, str, dict)
    found = zip(keys, kinds, strict=True)
    return {key: data[key] for key, kind in found if isinstance(data.get(key), kind)}


class _Update(_Wire):
    context_id: str | None = None
    metadata: dict[str, Json] | None = None


class Message(_Update):
    """A message of the user or the agent."""

    message_id: str = ""
    task_id: str | None = None
    role: _Name = "agent"
    parts: tuple[WirePart, ...] = ()


class Status(_Wire):
    """The status of a task."""

    state: _Name = "unknown"
    message: Message | None = None


class Artifact(_Wire):
    """An output of a task."""

    artifact_id: str = ""
    parts: tuple[WirePart, ...] = ()
    metadata: dict[str, Json] | None = None


class Task(_Update):
    """An agent's work on a message."""

    id: str
    status: Status = Status()
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[Message, ...] = ()


class StatusUpdate(_Update):
    """A change of a task's status."""

    task_id: str
    status: Status


class ArtifactUpdate(_Update):
    """A new artifact, or a piece of one."""

    task_id: str
    artifact: Artifact
    append: bool | None = None


Update = Task | Message | StatusUpdate | ArtifactUpdate
_KINDS: Mapping[str, tuple[str, type[Update]]] = {
    "task": ("task", Task),
    "message": ("message", Message),
    "status-update": ("statusUpdate", StatusUpdate),
    "artifact-update": ("artifactUpdate", ArtifactUpdate),
}
"""The types of results, by their `kind` in 0.3, with the key that wraps them in 1.0."""


def read_update(result: Json) -> Update:
    """Parse a result.

    Raises:
        ValueError: its type is unknown.

    """
    if isinstance(result, dict):
        for kind, (key, model) in _KINDS.items():
            if isinstance(result.get(key), dict):
                return _validated(model, result[key])
            if result.get("kind") == kind:
                return _validated(model, result)
        if "status" in result and "id" in result:
            return _validated(Task, result)  # as in `GetTask` of 1.0
    raise ValueError("holds neither a task nor a message")


def _validated(model: type[Update], value: Json) -> Update:
    try:
        return model.model_validate(value)
    except ValidationError as exc:
        where = ".".join(map(str, exc.errors()[0]["loc"]))
        raise ValueError(f"does not fit the protocol: see {where!r}") from None


# --- Requests ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Version:
    """The names and formats of one version of the protocol."""

    number: str
    send: str
    stream: str
    get: str
    user: str
    has_kinds: bool

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request; 0.3 has none."""
        return {} if self.has_kinds else {"A2A-Version": self.number}

    def message(self, content: Content, ids: Mapping[str, str]) -> dict[str, Json]:
        """Return `content` as a user message.

        Raises:
            TrialError: the protocol does not support a part of it.

        """
        parts = [self._part(part) for part in content.parts or ()]
        kind = {"kind": "message"} if self.has_kinds else {}
        return {**kind, **ids, "role": self.user, "parts": parts}

    def _part(self, part: Part) -> dict[str, Json]:
        if part.text is not None:
            return self._of_kind("text", {"text": part.text})
        if part.function_response:
            return self._answer(part.function_response)
        if file := attachment(part):
            return self._file(file)
        named = ", ".join(part.model_dump(exclude_none=True))
        message = f"an A2A message can have texts, files and answers; this one has {named}"
        raise TrialError("unsupported", message)

    def _answer(self, answer: FunctionResponse) -> dict[str, Json]:
        response = answer.response or {}
        if answer.name == INPUT_REQUIRED:
            value = next(iter(response.values())) if len(response) == 1 else response
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            return self._of_kind("text", {"text": text})
        data = {"id": answer.id, "name": answer.name, "response": response}
        metadata = {"adk_type": "function_response"}
        return self._of_kind("data", {"data": data, "metadata": metadata})

    def _file(self, file: Attachment) -> dict[str, Json]:
        uri, data, kind = file.uri, file.data, file.mime_type
        if self.has_kinds:
            held = {"uri": uri} if uri else {"bytes": data}
            return {"kind": "file", "file": {**held, "mimeType": kind}}
        return {"url": uri, "mediaType": kind} if uri else {"raw": data, "mediaType": kind}

    def _of_kind(self, kind: str, part: dict[str, Json]) -> dict[str, Json]:
        return {"kind": kind, **part} if self.has_kinds else part


V03 = Version("0.3", "message/send", "message/stream", "tasks/get", "user", has_kinds=True)
V10 = Version("1.0", "SendMessage", "SendStreamingMessage", "GetTask", "ROLE_USER", has_kinds=False)


# --- Agent cards ------------------------------------------------------------------------------


class Interface(NamedTuple):
    """An agent's address, protocol version and features."""

    url: str
    version: Version
    tenant: str = ""
    streams: bool = False


class _Offer(_Wire):
    url: str = ""
    transport: str | None = None
    protocol_binding: str | None = None
    protocol_version: str | None = None
    tenant: str = ""

    @property
    def binding(self) -> str:
        return self.protocol_binding or self.transport or JSONRPC


class _Capabilities(_Wire):
    streaming: bool | None = None


class Card(_Wire):
    """An agent card, in either version."""

    name: str = ""
    url: str | None = None
    preferred_transport: str | None = None
    protocol_version: str | None = None
    additional_interfaces: tuple[_Offer, ...] = ()
    supported_interfaces: tuple[_Offer, ...] = ()
    capabilities: _Capabilities = _Capabilities()

    def interface(self) -> Interface:
        """Return the interface with the newest version that it offers as JSON-RPC.

        Raises:
            ValueError: it does not offer JSON-RPC; the message is a verb phrase.

        """
        offers = list(self._offers())
        supported = [each for each in offers if each.binding.upper() == JSONRPC and each.url]
        if not supported:
            named = ", ".join(sorted({each.binding for each in offers})) or "nothing"
            raise ValueError(f"offers {named}; ci-eval only supports {JSONRPC}")
        best = max(supported, key=lambda each: _version(each) is V10)
        streams = bool(self.capabilities.streaming)
        return Interface(best.url, _version(best), best.tenant, streams)

    def _offers(self) -> Iterator[_Offer]:
        yield from self.supported_interfaces
        own = [_Offer(url=self.url, transport=self.preferred_transport)] if self.url else []
        for each in (*own, *self.additional_interfaces):
            yield each.model_copy(update={"protocol_version": self.protocol_version})


def _version(offer: _Offer) -> Version:
    """Return the version of an offer; the default is 0.3."""
    return V10 if (offer.protocol_version or "").startswith("1") else V03
