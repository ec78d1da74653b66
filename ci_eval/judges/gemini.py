"""Gemini, through google-genai: the Gemini API, and Vertex AI."""

import asyncio
import importlib
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pydantic import Field, ValidationError, field_validator

from ci_eval.errors import JudgeError
from ci_eval.judges._connection import Connection, sendable
from ci_eval.judges._failures import Failures, retry_after
from ci_eval.judges._gemini_replies import is_key_wrong, is_spent, read_answer, retry_delay
from ci_eval.judges._settings import Settings, SettingsRecord, checked, explained
from ci_eval.net import Address, address, client_session
from ci_eval.plugins import Judge, JudgeClient, judge
from ci_eval.questions import Answer, Question
from ci_eval.records import Json
from ci_eval.world import World

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from google.genai import Client
    from google.genai.errors import APIError
    from google.genai.types import GenerateContentConfig

_KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
"""Where the key is, in the order in which google-genai looks."""
_PUBLIC = "https://generativelanguage.googleapis.com/"
_VERSIONS = ("v1beta", "v1beta1")
"""Of the Gemini API and of Vertex AI: those which know a schema of the answer."""


class HttpOptions(SettingsRecord):
    """How one call is sent."""

    base_url: Address | None = None
    api_version: str | None = None
    headers: dict[str, str] | None = None
    extra_body: dict[str, Json] | None = None
    timeout: int | None = Field(default=None, ge=1)
    """In milliseconds."""
    retry_options: Json = Field(default=None, exclude=True)
    """Read and not used: calls are made again by `judge`, which counts them."""


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


@judge("gemini")
class Gemini(Judge):
    """A model of Google's, by the Gemini API or by Vertex AI.

    The environment says how to reach it, with the variables that google-genai reads:
    `GOOGLE_API_KEY` or `GEMINI_API_KEY`, and `GOOGLE_GEMINI_BASE_URL`; or
    `GOOGLE_GENAI_USE_VERTEXAI=true` with `GOOGLE_CLOUD_PROJECT`, `GOOGLE_CLOUD_LOCATION` and
    `GOOGLE_VERTEX_BASE_URL`, where Application Default Credentials are used, or a key of Vertex
    AI's express mode.  What is set here comes before the environment.
    """

    secrets: ClassVar[tuple[str, ...]] = ("GOOGLE_API_KEY",)

    base_url: Address | None = None
    """Where requests go: a proxy or a gateway; left out, `GOOGLE_GEMINI_BASE_URL`, else Google."""
    vertex: bool | None = None
    """Whether Vertex AI is asked; left out, `GOOGLE_GENAI_USE_VERTEXAI` says so."""
    project: str | None = Field(default=None, min_length=1)
    """The project of Google Cloud, for Vertex AI; left out, `GOOGLE_CLOUD_PROJECT`."""
    location: str | None = Field(default=None, min_length=1)
    """The region, for Vertex AI; left out, `GOOGLE_CLOUD_LOCATION`, else `global`."""
    api_key_env: str | None = Field(default=None, min_length=1)
    """The variable that holds the key; left out, `GOOGLE_API_KEY`, then `GEMINI_API_KEY`."""

    @field_validator("settings")
    @classmethod
    def _settings_fit(cls, settings: Mapping[str, Json]) -> Mapping[str, Json]:
        checked(GeminiSettings, settings)
        return settings

    @classmethod
    def recognises(cls, model: str) -> bool:
        """Say whether `model` is one of Gemini."""
        return model.startswith("gemini-")

    def serves(self, model: str) -> bool:
        """Say whether `model` is one of Gemini, or asked for at an address of your own."""
        return self.recognises(model) or self.base_url is not None

    def missing(self, env: Mapping[str, str]) -> str:
        """Say which variable is missing."""
        access = _Access.of(self, env)
        if access.key or access.project:
            return ""
        if access.vertex and not self.api_key_env:
            return "GOOGLE_CLOUD_PROJECT"
        return self.api_key_env or " or ".join(_KEYS)

    @asynccontextmanager
    async def start(self, world: World) -> AsyncIterator[JudgeClient]:
        """Connect, and close the connection at the end."""
        # A second or two, in which agents would stand still.
        await asyncio.to_thread(importlib.import_module, "google.genai")
        async with client_session(world.env) as session:
            client = _Client(self, world, session)
            async with client.connection:
                await client.connection.client()
                yield client


class _Access(NamedTuple):
    """How the model is reached, whatever else `os.environ` says."""

    vertex: bool
    key: str
    key_name: str
    project: str
    location: str
    base_url: str
    api_version: str

    @classmethod
    def of(cls, judge: Gemini, env: Mapping[str, str]) -> "_Access":
        names = (judge.api_key_env,) if judge.api_key_env else _KEYS
        name = next((each for each in names if env.get(each, "").strip()), names[0])
        key = env.get(name, "").strip()
        vertex = _is_vertex(env) if judge.vertex is None else judge.vertex
        project = judge.project or env.get("GOOGLE_CLOUD_PROJECT", "")
        # As google-genai has it, a project comes before a key; not before one that was named.
        by_project = vertex and bool(project) and not judge.api_key_env
        variable = "GOOGLE_VERTEX_BASE_URL" if vertex else "GOOGLE_GEMINI_BASE_URL"
        version = env.get("GOOGLE_GENAI_API_VERSION", "")
        return cls(
            vertex=vertex,
            key="" if by_project else key,
            key_name=name,
            project=project if by_project else "",
            location=judge.location or env.get("GOOGLE_CLOUD_LOCATION", "") or "global",
            base_url=judge.base_url or env.get(variable, "") or ("" if vertex else _PUBLIC),
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


class _Client:
    """A client of google-genai."""

    def __init__(self, judge: Gemini, world: World, session: "ClientSession") -> None:
        self._session = session
        self._now = world.now
        self._access = _Access.of(judge, world.env)
        self._configs: dict[str, GenerateContentConfig] = {}
        """What holds for every call with the same settings."""
        self.connection = Connection(self._connect, _close)

    async def answer(self, question: Question) -> Answer:
        """Ask once."""
        client = await self.connection.client()
        failures = self._failures(question.model)
        body = await self._send(client, question, failures)
        try:
            return read_answer(body)
        except ValueError as exc:
            raise failures.unreadable(exc, body) from exc

    async def _send(self, client: "Client", question: Question, failures: Failures) -> str:
        """Return the body of the response."""
        from google.auth.exceptions import GoogleAuthError
        from google.genai.errors import APIError

        try:
            reply = await client.aio.models.generate_content(
                model=question.model, contents=question.prompt, config=self._config(question)
            )
        except APIError as exc:
            raise self._refused(exc, failures) from exc
        except GoogleAuthError as exc:
            raise _unauthorised(exc, failures) from exc
        except (json.JSONDecodeError, UnicodeDecodeError) as exc:
            raise failures.unreadable(ValueError("is an error that is no JSON")) from exc
        except _unreached() as exc:
            raise failures.unreached(exc) from exc
        except ValueError as exc:  # a setting that this API does not have
            raise failures.unasked(exc) from exc
        return (reply.sdk_http_response and reply.sdk_http_response.body) or ""

    def _connect(self) -> "Client":
        try:
            return self._access.client(self._session)
        except ValueError as exc:
            raise self._failures("gemini").unasked(exc) from exc

    def _failures(self, model: str) -> Failures:
        return Failures(model, self._access.credentials, self._access.key)

    def _config(self, question: Question) -> "GenerateContentConfig":
        """Return what is said beside the text.

        Raises:
            ValueError: a setting is wrong.

        """
        known = json.dumps(dict(question.settings), sort_keys=True)
        if known not in self._configs:
            self._configs[known] = _config(question.settings)
        return self._configs[known].model_copy(
            update={
                "system_instruction": question.instructions or None,
                "response_json_schema": dict(question.schema),
            }
        )

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


def _config(settings: Mapping[str, Json]) -> "GenerateContentConfig":
    """Return what holds for every call.

    Raises:
        ValueError: a setting is wrong.

    """
    from google.genai.types import GenerateContentConfig

    class Config(GenerateContentConfig):
        # google-genai asks for each of forty fields whether it is `in` the config, which pydantic
        # answers by going through all of them: a third of the time that a call takes here.
        def __contains__(self, _: object) -> bool:
            return False  # then it looks for an attribute

    given = checked(GeminiSettings, settings).model_dump(exclude_none=True)
    try:
        return Config.model_validate(
            {
                **given,
                "response_mime_type": "application/json",
                "automatic_function_calling": {"disable": True},
                "should_return_http_response": True,  # we read it with patience, and just once
            }
        )
    except ValidationError as exc:
        raise ValueError("; ".join(explained(exc, GenerateContentConfig))) from exc


async def _close(client: "Client") -> None:
    await client.aio.aclose()
    client.close()


def _unreached() -> tuple[type[Exception], ...]:
    """Return what is raised by the packages that google-genai sends with, where it finds them."""
    errors = {"aiohttp": "ClientError", "httpx": "HTTPError", "httpx2": "HTTPError"}
    found = (getattr(sys.modules[name], errors[name]) for name in errors if name in sys.modules)
    return (OSError, *found)  # a timeout is one, too
