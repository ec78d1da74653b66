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

from ci_eval.llm.providers.model_connection import Connection, sendable
from ci_eval.llm.providers.model_failures import Failures
from ci_eval.llm.providers.model_settings import Settings, SettingsRecord, explained
from ci_eval.records.cases import Json, Record
from ci_eval.records.errors import JudgeError
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import KeyName
from ci_eval.runtime.http import MAX_BODY, Address, address, client_session
from ci_eval.runtime.retry import retry_after, seconds
from ci_eval.text.json_text import objects_in, parse_json

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from google.genai import Client
    from google.genai.errors import APIError
    from google.genai.types import Content, GenerateContentConfig

_KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
"""Variables of the key, in the order in which google-genai reads them."""
_PUBLIC = "https://generativelanguage.googleapis.com/"
_VERSIONS = ("v1beta", "v1beta1")
"""Versions of the Gemini API and of Vertex AI that support response schemas."""


# --- Settings ---------------------------------------------------------------------------------


class HttpOptions(SettingsRecord):
    """HTTP options of one call."""

    base_url: Address | None = None
    api_version: str | None = None
    headers: dict[str, str] | None = None
    extra_body: dict[str, Json] | None = None
    timeout: int | None = Field(default=None, ge=1)
    """In milliseconds."""
    retry_options: Json = Field(default=None, exclude=True)
    """Ignored: `judge.attempts` controls retries."""


class GeminiSettings(Settings):
    """Settings of Gemini; google-genai checks the contents of nested ones."""

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
    """Return the configuration of calls.

    Raises:
        ValueError: a setting is invalid.

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
        # google-genai tests for forty fields whether they are `in` the config, and pydantic goes
        # through all fields each time: a third of our CPU time per call.
        def __contains__(self, _: object) -> bool:
            return False  # then google-genai reads the attribute

    return Config


# --- Access -----------------------------------------------------------------------------------


class GeminiAccess(Record):
    """Access to Gemini; defaults come from the environment."""

    base_url: Address | None = None
    """URL of a proxy or gateway. Default: `GOOGLE_GEMINI_BASE_URL`, else Google."""
    vertex: bool | None = None
    """True to use Vertex AI. Default: `GOOGLE_GENAI_USE_VERTEXAI`."""
    project: str | None = Field(default=None, min_length=1)
    """The Google Cloud project, for Vertex AI. Default: `GOOGLE_CLOUD_PROJECT`."""
    location: str | None = Field(default=None, min_length=1)
    """The region, for Vertex AI. Default: `GOOGLE_CLOUD_LOCATION`, else `global`."""
    api_key_env: KeyName | None = None
    """The variable with the key. Default: `GOOGLE_API_KEY`, then `GEMINI_API_KEY`."""

    def missing(self, env: Mapping[str, str]) -> str:
        """Return the name of the missing variable; empty if there is none."""
        reached = _ResolvedAccess.by(self, env)
        if reached.key or reached.project:
            return ""
        if reached.vertex and not self.api_key_env:
            return "GOOGLE_CLOUD_PROJECT"
        return self.api_key_env or " or ".join(_KEYS)


class _ResolvedAccess(NamedTuple):
    """Resolved access, so that google-genai reads nothing from `os.environ`."""

    vertex: bool
    key: str
    key_name: str
    project: str
    location: str
    base_url: str
    api_version: str

    @classmethod
    def by(cls, access: GeminiAccess, env: Mapping[str, str]) -> "_ResolvedAccess":
        names = (access.api_key_env,) if access.api_key_env else _KEYS
        name = next((each for each in names if env.get(each, "").strip()), names[0])
        key = env.get(name, "").strip()
        vertex = _is_vertex(env) if access.vertex is None else access.vertex
        project = access.project or env.get("GOOGLE_CLOUD_PROJECT", "")
        # As in google-genai, a project takes precedence over a key, unless `api_key_env` is set.
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
            return f"the key comes from {self.key_name}"
        return "the key comes from Application Default Credentials"

    def client(self, session: "ClientSession") -> "Client":
        """Return a client that sends with `session`."""
        from google import genai

        options: dict[str, Any] = {
            "api_version": self.api_version,
            "retry_options": {"attempts": 1},  # by default it retries if there is no response
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
    names = ("GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI")  # the newer name first
    said = next((env[name] for name in names if name in env), "")
    return said.lower() in ("true", "1")


# --- Calls ------------------------------------------------------------------------------------


@asynccontextmanager
async def reaching(
    access: GeminiAccess, context: RunContext, *, named_by: str = "'model' of the judge"
) -> AsyncIterator["GeminiClient"]:
    """Connect, and disconnect at the end; `named_by` is the field that sets the model."""
    # In a thread: the import takes a second or two, and would block the event loop.
    await asyncio.to_thread(importlib.import_module, "google.genai")
    async with client_session(context.env) as session:
        client = GeminiClient(access, context, session, named_by)
        async with client.connection:
            yield client


class GeminiClient:
    """A client of google-genai that sends one request per call."""

    def __init__(
        self, access: GeminiAccess, context: RunContext, session: "ClientSession", named_by: str
    ) -> None:
        self._session = session
        self._named_by = named_by
        self._now = context.now
        self._resolved = _ResolvedAccess.by(access, context.env)
        self.connection = Connection(self._connect, _close)

    def failures(self, model: str) -> Failures:
        """Return the builder of errors for `model`."""
        reached = self._resolved
        return Failures(model, reached.credentials, reached.key, self._named_by)

    async def generate(
        self, model: str, contents: "str | list[Content]", config: "GenerateContentConfig"
    ) -> str:
        """Return the body of the response.

        Raises:
            JudgeError: the call failed.

        """
        client = await self.connection.client()
        config = config.model_copy(update={"should_return_http_response": True})
        with self._errors_converted(model):
            reply = await client.aio.models.generate_content(
                model=model, contents=contents, config=config
            )
        return (reply.sdk_http_response and reply.sdk_http_response.body) or ""

    async def stream(
        self, model: str, contents: "list[Content]", config: "GenerateContentConfig"
    ) -> AsyncGenerator[Json, None]:
        """Yield the chunks of the response, in snake_case.

        Raises:
            JudgeError: the call failed, or the stream broke off.

        """
        client = await self.connection.client()
        size = 0
        with self._errors_converted(model):
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
            return self._resolved.client(self._session)
        except ValueError as exc:
            raise self.failures("gemini").unasked(exc) from exc

    @contextmanager
    def _errors_converted(self, model: str) -> Iterator[None]:
        """Convert exceptions of google-genai to `JudgeError`."""
        from google.auth.exceptions import GoogleAuthError
        from google.genai.errors import APIError, UnknownApiResponseError

        failures = self.failures(model)
        try:
            yield
        except APIError as exc:
            raise self._refused(exc, failures) from exc
        except GoogleAuthError as exc:
            raise failures.unauthorised(exc) from exc
        except (json.JSONDecodeError, UnicodeDecodeError) as exc:
            raise failures.unreadable(ValueError("is an error that is not JSON")) from exc
        except UnknownApiResponseError as exc:
            raise failures.unreadable(ValueError("is a stream that is not JSON")) from exc
        except _unreached() as exc:
            raise failures.unreached(exc) from exc
        except ValidationError as exc:  # only chunks of streams are parsed by google-genai
            raise failures.unreadable(exc) from exc
        except ValueError as exc:  # a setting that this API does not support
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


async def _close(client: "Client") -> None:
    await client.aio.aclose()
    client.close()


def _unreached() -> tuple[type[Exception], ...]:
    """Return the exceptions of the HTTP packages that google-genai may use."""
    errors = {"aiohttp": "ClientError", "httpx": "HTTPError", "httpx2": "HTTPError"}
    found = (getattr(sys.modules[name], errors[name]) for name in errors if name in sys.modules)
    return (OSError, *found)  # a timeout is an OSError


# --- Error bodies, see https://cloud.google.com/apis/design/errors ------------------------------


def is_key_wrong(body: Json) -> bool:
    """Return True if the key is invalid; the HTTP code alone does not tell."""
    return any(each.get("reason") == "API_KEY_INVALID" for each in _details(body))


def is_spent(body: Json) -> bool:
    """Return True if the quota resets tomorrow at the earliest.

    That is the case for a daily quota, and for a quota of 0, as the free tier has for paid models.
    """
    violations = [
        each for detail in _details(body) for each in objects_in(detail.get("violations"))
    ]
    return any(
        "PerDay" in str(each.get("quotaId")) or str(each.get("quotaValue")) == "0"
        for each in violations
    )


def retry_delay(body: Json) -> float | None:
    """Return the seconds until the next attempt that a `RetryInfo` asks for."""
    found = (seconds(each.get("retryDelay")) for each in _details(body))
    return next((delay for delay in found if delay is not None), None)


def _details(body: Json) -> list[dict[str, Any]]:
    error = body.get("error") if isinstance(body, dict) else None
    return objects_in(error.get("details") if isinstance(error, dict) else None)
