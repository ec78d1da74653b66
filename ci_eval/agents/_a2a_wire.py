"""The Agent2Agent protocol on the wire, as JSON-RPC: versions 0.3 and 1.0, read as one.

https://a2a-protocol.org/latest/specification/ and …/v0.3.0/specification/.  The two differ in the
names of methods and of states, in how parts are told apart, and in what wraps a result.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import AliasGenerator, BeforeValidator, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from ci_eval.agents._request import Attachment, attachment
from ci_eval.records.errors import TrialError
from ci_eval.records.model import Content, FunctionCall, FunctionResponse, Json, Part, Stored

JSONRPC = "JSONRPC"
JSON_TYPE = "application/json"
INPUT_REQUIRED = "input_required"
"""The name of the call that an agent waits for which asks for input, and does not say how."""
ENDED = frozenset({"completed", "failed", "canceled", "rejected"})
"""The states in which a task is over."""
STOPPED = frozenset({"input-required", "auth-required"})
"""The states in which it waits for somebody."""


class _Wire(Stored):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=AliasGenerator(validation_alias=to_camel), populate_by_name=True
    )


def _as_state(value: Any) -> Any:
    """Return `input-required` for `TASK_STATE_INPUT_REQUIRED`, too."""
    if not isinstance(value, str):
        return value
    return value.removeprefix("TASK_STATE_").lower().replace("_", "-")


def _as_role(value: Any) -> Any:
    return value.removeprefix("ROLE_").lower() if isinstance(value, str) else value


class _File(_Wire):
    bytes: str | None = None
    uri: str | None = None
    mime_type: str | None = None


def _whole(value: Any) -> Any:
    """Return `value` with whole numbers as such: servers that hold data in protobuf say `3.0`."""
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class WirePart(_Wire):
    """A piece of a message or an artifact."""

    text: str | None = None
    data: Annotated[Json, BeforeValidator(_whole)] = None
    raw: str | None = None
    url: str | None = None
    file: _File | None = None
    media_type: str | None = None
    metadata: dict[str, Json] | None = None

    @property
    def tool(self) -> Part | None:
        """The call of a tool, or its answer, where it is one: ADK's servers say so in metadata."""
        kind = (self.metadata or {}).get("adk_type")
        if isinstance(self.data, dict) and kind == "function_call":
            return Part(function_call=FunctionCall(**_picked(self.data, "id", "name", "args")))
        if isinstance(self.data, dict) and kind == "function_response":
            answer = FunctionResponse(**_picked(self.data, "id", "name", "response"))
            return Part(function_response=answer)
        return None

    @property
    def waits_for(self) -> FunctionCall | None:
        """The call that somebody outside has to answer, where it is one."""
        is_waiting = (self.metadata or {}).get("adk_is_long_running") is True
        return self.tool.function_call if self.tool and is_waiting else None

    def as_part(self, *, data_as_text: bool = False) -> Part:
        """Return it as a part of ours."""
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
    """Return parts as ours; data that no text goes with are a text themselves."""
    parts = list(given)
    alone = all(part.text is None for part in parts)
    return tuple(part.as_part(data_as_text=alone) for part in parts)


def _picked(data: Mapping[str, Json], *keys: str) -> dict[str, Json]:
    """Return what a call has under `keys`, without what is of another kind."""
    kinds = (str, str, dict)
    found = zip(keys, kinds, strict=True)
    return {key: data[key] for key, kind in found if isinstance(data.get(key), kind)}


class Message(_Wire):
    """What one side said."""

    message_id: str = ""
    context_id: str | None = None
    task_id: str | None = None
    role: Annotated[str, BeforeValidator(_as_role)] = "agent"
    parts: tuple[WirePart, ...] = ()
    metadata: dict[str, Json] | None = None


class Status(_Wire):
    """How a task is doing."""

    state: Annotated[str, BeforeValidator(_as_state)] = "unknown"
    message: Message | None = None


class Artifact(_Wire):
    """Something that a task made."""

    artifact_id: str = ""
    parts: tuple[WirePart, ...] = ()
    metadata: dict[str, Json] | None = None


class Task(_Wire):
    """What an agent does on a message."""

    id: str
    context_id: str | None = None
    status: Status = Status()
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[Message, ...] = ()
    metadata: dict[str, Json] | None = None


class StatusUpdate(_Wire):
    """That a task is doing otherwise."""

    task_id: str
    context_id: str | None = None
    status: Status
    metadata: dict[str, Json] | None = None


class ArtifactUpdate(_Wire):
    """That a task made something, or a piece of it."""

    task_id: str
    context_id: str | None = None
    artifact: Artifact
    append: bool | None = None
    metadata: dict[str, Json] | None = None


Update = Task | Message | StatusUpdate | ArtifactUpdate
_KINDS: Mapping[str, tuple[str, type[Update]]] = {
    "task": ("task", Task),
    "message": ("message", Message),
    "status-update": ("statusUpdate", StatusUpdate),
    "artifact-update": ("artifactUpdate", ArtifactUpdate),
}
"""What a result can be: the kind that it names in 0.3, and the key that wraps it in 1.0."""


def read_update(result: Json) -> Update:
    """Return what a result tells.

    Raises:
        ValueError: nothing that is known.

    """
    if isinstance(result, dict):
        for kind, (key, model) in _KINDS.items():
            if isinstance(result.get(key), dict):
                return _validated(model, result[key])
            if result.get("kind") == kind:
                return _validated(model, result)
        if "status" in result and "id" in result:
            return _validated(Task, result)  # as `GetTask` of 1.0 has it
    raise ValueError("holds neither a task nor a message")


def _validated(model: type[Update], value: Json) -> Update:
    try:
        return model.model_validate(value)
    except ValidationError as exc:
        where = ".".join(map(str, exc.errors()[0]["loc"]))
        raise ValueError(f"is none of the protocol: see {where!r}") from None


# --- What is sent -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Version:
    """What one version of the protocol calls things."""

    number: str
    send: str
    stream: str
    get: str
    user: str
    has_kinds: bool

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries; 0.3 has no such header."""
        return {} if self.has_kinds else {"A2A-Version": self.number}

    def message(self, content: Content, ids: Mapping[str, str]) -> dict[str, Json]:
        """Return `content` as a message of the user.

        Raises:
            TrialError: a part of it has no place in one.

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
        message = f"a message of A2A takes texts, files and answers; this one has {named}"
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
    """Where an agent can be spoken to, and how."""

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
    """What an agent says of itself, in either version."""

    name: str = ""
    url: str | None = None
    preferred_transport: str | None = None
    protocol_version: str | None = None
    additional_interfaces: tuple[_Offer, ...] = ()
    supported_interfaces: tuple[_Offer, ...] = ()
    capabilities: _Capabilities = _Capabilities()

    def interface(self) -> Interface:
        """Return how to speak to it: in the newest version that it offers as JSON-RPC.

        Raises:
            ValueError: it offers nothing of that kind; says so as a verb.

        """
        offers = list(self._offers())
        spoken = [each for each in offers if each.binding.upper() == JSONRPC and each.url]
        if not spoken:
            named = ", ".join(sorted({each.binding for each in offers})) or "nothing"
            raise ValueError(f"offers {named}; here only {JSONRPC} is spoken")
        best = max(spoken, key=lambda each: _version(each) is V10)
        return Interface(
            best.url, _version(best), best.tenant, streams=bool(self.capabilities.streaming)
        )

    def _offers(self) -> Iterator[_Offer]:
        yield from self.supported_interfaces
        if self.url:
            yield _Offer(
                url=self.url,
                transport=self.preferred_transport,
                protocol_version=self.protocol_version,
            )
        for each in self.additional_interfaces:
            yield each.model_copy(update={"protocol_version": self.protocol_version})


def _version(offer: _Offer) -> Version:
    """Return the version of an offer; one that says nothing is of 0.3."""
    return V10 if (offer.protocol_version or "").startswith("1") else V03
