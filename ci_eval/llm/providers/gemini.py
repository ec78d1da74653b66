"""Gemini, through google-genai: the Gemini API, and Vertex AI."""

import asyncio
import importlib
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field, ValidationError

from ci_eval.llm.providers.connection import Connection, sendable
from ci_eval.llm.providers.failures import Failures
from ci_eval.llm.providers.gemini_errors import is_key_wrong, is_spent, retry_delay
from ci_eval.llm.providers.settings import Settings, SettingsRecord, explained
from ci_eval.records.errors import JudgeError
from ci_eval.records.model import Json, Record
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import KeyName
from ci_eval.runtime.http import MAX_BODY, Address, address, client_session
from ci_eval.runtime.retry import retry_after
from ci_eval.text.json_text import parse_json

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from google.genai import Client
    from google.genai.errors import APIError
    from google.genai.types import Content, GenerateContentConfig

_KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
"""Where the key is, in the order in which google-genai looks."""
_PUBLIC = "https://generativelanguage.googleapis.com/"
_VERSIONS = ("v1beta", "v1beta1")
"""Of the Gemini API and of Vertex AI: those which know a schema of the answer."""


# --- Settings ---------------------------------------------------------------------------------


class HttpOptions(SettingsRecord):
    """How one call is sent."""

    base_url: Address | None = None
    api_version: str | None = None
    headers: dict[str, str] | None = None
    extra_body: dict[str, Json] | None = None
    timeout: int | None = Field(default=None, ge=1)
    """In milliseconds."""
    retry_options: Json = Field(default=None, exclude=True)
    """Read and not used: calls are made again by who makes them, and counted."""


class GeminiSettings(Settings):
    """The settings that Gemini knows; google-genai checks what is in those of any shape."""

    top_k: float | None = Field(default=None, ge=1)
    thinking_config: dict[str, Json] | None = None
    safety_settings: tuple[dict[str, Json], ...] | None = None
    http_options: HttpOptions | None = None
    media_resolution: str | None = None
    service_tier: str | None = None
    labels: dict[str, str] | None = None
    cached_content: str | None = None
    routing_config: dict[str, Json] | None = None
    model_selection_config: dict[str, Json] | None = None
    model_armor_config: dict[str, Json] | None = None


def generation_config(given: Mapping[str, Json]) -> "GenerateContentConfig":
    """Return what is said beside the messages, for any number of calls.

    Raises:
        ValueError: something in it is wrong.

    """
    config = _config_class()
    try:
        return config.model_validate({**given, "automatic_function_calling": {"disable": True}})
    except ValidationError as exc:
        raise ValueError("; ".join(explained(exc, config))) from exc


@cache
def _config_class() -> "type[GenerateContentConfig]":
    from google.genai.types import GenerateContentConfig

    class Config(GenerateContentConfig):
        # google-genai asks for each of forty fields whether it is `in` the config, which pydantic
        # answers by going through all of them: a third of the time that a call takes here.
        def __contains__(self, _: object) -> bool:
            return False  # then it looks for an attribute

    return Config


# --- Access -----------------------------------------------------------------------------------


class GeminiAccess(Record):
    """What can be set of how Gemini is reached; the rest is in the environment."""

    base_url: Address | None = None
    """Where requests go: a proxy or a gateway; left out, `GOOGLE_GEMINI_BASE_URL`, else Google."""
    vertex: bool | None = None
    """Whether Vertex AI is asked; left out, `GOOGLE_GENAI_USE_VERTEXAI` says so."""
    project: str | None = Field(default=None, min_length=1)
    """The project of Google Cloud, for Vertex AI; left out, `GOOGLE_CLOUD_PROJECT`."""
    location: str | None = Field(default=None, min_length=1)
    """The region, for Vertex AI; left out, `GOOGLE_CLOUD_LOCATION`, else `global`."""
    api_key_env: KeyName | None = None
    """The variable that holds the key; left out, `GOOGLE_API_KEY`, then `GEMINI_API_KEY`."""

    def missing(self, env: Mapping[str, str]) -> str:
        """Say which variable is missing; nothing where all are there."""
        reached = _Reached.by(self, env)
        if reached.key or reached.project:
            return ""
        if reached.vertex and not self.api_key_env:
            return "GOOGLE_CLOUD_PROJECT"
        return self.api_key_env or " or ".join(_KEYS)


class _Reached(NamedTuple):
    """How the model is reached, whatever else `os.environ` says."""

    vertex: bool
    key: str
    key_name: str
    project: str
    location: str
    base_url: str
    api_version: str

    @classmethod
    def by(cls, access: GeminiAccess, env: Mapping[str, str]) -> "_Reached":
        names = (access.api_key_env,) if access.api_key_env else _KEYS
        name = next((each for each in names if env.get(each, "").strip()), names[0])
        key = env.get(name, "").strip()
        vertex = _is_vertex(env) if access.vertex is None else access.vertex
        project = access.project or env.get("GOOGLE_CLOUD_PROJECT", "")
        # As google-genai has it, a project comes before a key; not before one that was named.
        by_project = vertex and bool(project) and not access.api_key_env
        variable = "GOOGLE_VERTEX_BASE_URL" if vertex else "GOOGLE_GEMINI_BASE_URL"
        version = env.get("GOOGLE_GENAI_API_VERSION", "")
        return cls(
            vertex=vertex,
            key="" if by_project else key,
            key_name=name,
            project=project if by_project else "",
            location=access.location or env.get("GOOGLE_CLOUD_LOCATION", "") or "global",
            base_url=access.base_url or env.get(variable, "") or ("" if vertex else _PUBLIC),
            api_version=version if version not in ("", "beta") else _VERSIONS[vertex],
        )

    @property
    def credentials(self) -> str:
        if self.key:
            return f"the key is that in {self.key_name}"
        return "the key is that of Application Default Credentials"

    def client(self, session: "ClientSession") -> "Client":
        """Return the client, which sends with `session`."""
        from google import genai

        options: dict[str, Any] = {
            "api_version": self.api_version,
            "retry_options": {"attempts": 1},  # without them it sends again what got no answer
            "aiohttp_client": session,
        }
        if self.base_url:
            options["base_url"] = address(self.base_url)
        return genai.Client(
            vertexai=self.vertex,
            api_key=sendable(self.key, self.key_name) or None,
            project=self.project or None,
            location=self.location if self.project else None,
            http_options=genai.types.HttpOptions.model_validate(options),
        )


def _is_vertex(env: Mapping[str, str]) -> bool:
    names = ("GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI")  # its newer name first
    said = next((env[name] for name in names if name in env), "")
    return said.lower() in ("true", "1")


# --- Calls ------------------------------------------------------------------------------------


@asynccontextmanager
async def reaching(
    access: GeminiAccess, context: RunContext, *, named_by: str = "'model' of the judge"
) -> AsyncIterator["GeminiClient"]:
    """Connect, and close the connection at the end; `named_by` says where models are named."""
    # A second or two, in which agents would stand still.
    await asyncio.to_thread(importlib.import_module, "google.genai")
    async with client_session(context.env) as session:
        client = GeminiClient(access, context, session, named_by)
        async with client.connection:
            yield client


class GeminiClient:
    """A client of google-genai, each call of which is one request."""

    def __init__(
        self, access: GeminiAccess, context: RunContext, session: "ClientSession", named_by: str
    ) -> None:
        self._session = session
        self._named_by = named_by
        self._now = context.now
        self._reached = _Reached.by(access, context.env)
        self.connection = Connection(self._connect, _close)

    def failures(self, model: str) -> Failures:
        """Return what makes errors of what goes wrong with `model`."""
        reached = self._reached
        return Failures(model, reached.credentials, reached.key, self._named_by)

    async def generate(
        self, model: str, contents: "str | list[Content]", config: "GenerateContentConfig"
    ) -> str:
        """Return the body of the response.

        Raises:
            JudgeError: there is none.

        """
        client = await self.connection.client()
        config = config.model_copy(update={"should_return_http_response": True})
        with self._told(model):
            reply = await client.aio.models.generate_content(
                model=model, contents=contents, config=config
            )
        return (reply.sdk_http_response and reply.sdk_http_response.body) or ""

    async def stream(
        self, model: str, contents: "list[Content]", config: "GenerateContentConfig"
    ) -> AsyncGenerator[Json, None]:
        """Yield what each chunk of the response says, in snake_case.

        Raises:
            JudgeError: there is none, or it breaks off.

        """
        client = await self.connection.client()
        size = 0
        with self._told(model):
            chunks = await client.aio.models.generate_content_stream(
                model=model, contents=contents, config=config
            )
            async for chunk in chunks:
                text = chunk.model_dump_json(exclude_none=True, exclude={"sdk_http_response"})
                size += len(text)
                if size > MAX_BODY:
                    long = ValueError(f"is a stream of more than {MAX_BODY >> 20} MiB")
                    raise self.failures(model).unreadable(long)
                yield parse_json(text)

    def _connect(self) -> "Client":
        try:
            return self._reached.client(self._session)
        except ValueError as exc:
            raise self.failures("gemini").unasked(exc) from exc

    @contextmanager
    def _told(self, model: str) -> Iterator[None]:
        """Turn what google-genai raises into our error."""
        from google.auth.exceptions import GoogleAuthError
        from google.genai.errors import APIError, UnknownApiResponseError

        failures = self.failures(model)
        try:
            yield
        except APIError as exc:
            raise self._refused(exc, failures) from exc
        except GoogleAuthError as exc:
            raise _unauthorised(exc, failures) from exc
        except (json.JSONDecodeError, UnicodeDecodeError) as exc:
            raise failures.unreadable(ValueError("is an error that is no JSON")) from exc
        except UnknownApiResponseError as exc:
            raise failures.unreadable(ValueError("is a stream that is no JSON")) from exc
        except _unreached() as exc:
            raise failures.unreached(exc) from exc
        except ValidationError as exc:  # only a chunk of a stream is read by google-genai
            raise failures.unreadable(exc) from exc
        except ValueError as exc:  # a setting that this API does not have
            raise failures.unasked(exc) from exc

    def _refused(self, exc: "APIError", failures: Failures) -> JudgeError:
        body, headers = exc.details, getattr(exc.response, "headers", {})
        after_s = retry_after(headers, self._now())
        return failures.refused(
            exc.code,
            str(exc.message or body),
            kind="API_KEY_INVALID" if is_key_wrong(body) else str(exc.status or ""),
            after_s=retry_delay(body) if after_s is None else after_s,
            spent=is_spent(body),
        )


def _unauthorised(exc: Exception, failures: Failures) -> JudgeError:
    """Return the error for credentials that could not be had."""
    if getattr(exc, "retryable", False):
        return failures.unreached(exc)
    return failures.unasked(f"no credentials of Google Cloud: {exc}")


async def _close(client: "Client") -> None:
    await client.aio.aclose()
    client.close()


def _unreached() -> tuple[type[Exception], ...]:
    """Return what is raised by the packages that google-genai sends with, where it finds them."""
    errors = {"aiohttp": "ClientError", "httpx": "HTTPError", "httpx2": "HTTPError"}
    found = (getattr(sys.modules[name], errors[name]) for name in errors if name in sys.modules)
    return (OSError, *found)  # a timeout is one, too
