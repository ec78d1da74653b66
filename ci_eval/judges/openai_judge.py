"""OpenAI's models, and servers with a compatible API: vLLM, Ollama, gateways, Azure."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from ci_eval.judges._openai_judge_calls import REFUSED_BY, Api, Call, RefusedError, Structured
from ci_eval.llm.providers.model_connection import Connection, sendable
from ci_eval.llm.providers.model_failures import Failures
from ci_eval.llm.providers.model_settings import Settings, checked
from ci_eval.plugins.points import Judge, JudgeClient, judge
from ci_eval.records.cases import Json
from ci_eval.records.errors import JudgeError
from ci_eval.records.questions import Answer, Question
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import KeyName
from ci_eval.runtime.http import Address, address
from ci_eval.runtime.retry import retry_after, seconds

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

_PACKAGE = "the package openai: pip install 'ci-eval[openai]'"
_PUBLIC = "https://api.openai.com/v1"
_NO_KEY = "none"
"""Placeholder key: the package requires a key, but self-hosted servers do not."""
_SPENT = ("insufficient_quota", "billing_hard_limit_reached")
"""Error codes for an exhausted budget."""


@judge("openai")
class OpenAI(Judge):
    """An OpenAI model, or any model behind a compatible API.

    Needs the package openai: `pip install 'ci-eval[openai]'`.  The environment variables of that
    package configure the access: `OPENAI_API_KEY`, `OPENAI_BASE_URL`, `OPENAI_ORG_ID` and
    `OPENAI_PROJECT_ID`.  With a base URL of your own, no key is needed.

    Azure is used if `azure_endpoint` is set, or if `AZURE_OPENAI_ENDPOINT` is set without
    `OPENAI_BASE_URL` and `OPENAI_API_KEY`; it needs `AZURE_OPENAI_API_KEY`, and the model is the
    name of the deployment.  The options below take precedence over the environment.
    """

    extra = "openai"
    secrets = ("OPENAI_API_KEY",)

    base_url: Address | None = None
    """Base URL of the API (default: `OPENAI_BASE_URL`, or else OpenAI)."""
    api_key_env: KeyName | None = None
    """Variable with the key (default: `OPENAI_API_KEY` or `AZURE_OPENAI_API_KEY`)."""
    azure_endpoint: Address | None = None
    """Endpoint of an Azure resource (default: `AZURE_OPENAI_ENDPOINT`)."""
    api_version: str | None = Field(default=None, min_length=1)
    """Version of Azure's API (default: `OPENAI_API_VERSION`)."""
    api: Api = "chat"
    """API to use: `chat` completions, which every server has, or `responses`."""
    structured: Structured = "schema"
    """How to request the format of the answer: as JSON `schema`; as any `json`, with the schema in
    the instructions; or `none`, with the instructions alone."""
    extra_body: Mapping[str, Json] = Field(default_factory=dict)
    """Further members of the request body, such as `{reasoning_effort: low}`."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.base_url and self.azure_endpoint:
            raise ValueError("takes 'base_url' or 'azure_endpoint', not both")
        try:
            checked(Settings, self.settings, REFUSED_BY[self.api])
        except ValueError as exc:
            raise ValueError(f"settings: {exc}") from exc
        return self

    @classmethod
    def recognises(cls, model: str) -> bool:
        """Return True if `model` is an OpenAI model."""
        return bool(re.match(r"gpt-|o[0-9]", model))

    def serves(self, model: str) -> bool:
        """Return True if `model` is an OpenAI model, or an address of your own is set."""
        return self.recognises(model) or bool(self.base_url or self.azure_endpoint)

    def missing(self, env: Mapping[str, str]) -> str:
        """Return the missing variables and packages."""
        access = _Access.of(self, env)
        found = [] if find_spec("openai") else [_PACKAGE]
        if not access.key and (access.is_known or self.api_key_env):
            found.append(access.key_name)
        if access.azure and not access.api_version:
            found.append("OPENAI_API_VERSION")
        try:
            address(access.url)
        except ValueError:
            name = "AZURE_OPENAI_ENDPOINT" if access.azure else "OPENAI_BASE_URL"
            found.append(f"an address such as {_PUBLIC!r} in {name}")
        return " and ".join(found)

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[JudgeClient]:
        """Connect; leaving the context closes the connection."""
        client = _Client(self, context)
        async with client.connection:
            await client.connection.client()
            yield client


class _Access(NamedTuple):
    """Access to the model, independent of `os.environ`."""

    azure: bool
    url: str
    key: str
    key_name: str
    api_version: str
    organization: str | None
    project: str | None

    @classmethod
    def of(cls, judge: OpenAI, env: Mapping[str, str]) -> "_Access":
        base_url = judge.base_url or env.get("OPENAI_BASE_URL", "")
        azure_url = judge.azure_endpoint or env.get("AZURE_OPENAI_ENDPOINT", "")
        is_other = base_url or env.get("OPENAI_API_KEY")
        azure = bool(judge.azure_endpoint or (azure_url and not is_other))
        name = judge.api_key_env or ("AZURE_OPENAI_API_KEY" if azure else "OPENAI_API_KEY")
        return cls(
            azure=azure,
            url=azure_url if azure else base_url or _PUBLIC,
            key=env.get(name, "").strip(),
            key_name=name,
            api_version=judge.api_version or env.get("OPENAI_API_VERSION", ""),
            organization=env.get("OPENAI_ORG_ID") or None,
            project=env.get("OPENAI_PROJECT_ID") or None,
        )

    @property
    def is_known(self) -> bool:
        """Whether the server is OpenAI or Azure, which require a key."""
        host = urlsplit(self.url).hostname or ""
        return self.azure or host == "openai.com" or host.endswith(".openai.com")

    @property
    def credentials(self) -> str:
        return f"the key comes from {self.key_name}" if self.key else f"{self.key_name} is not set"

    def client(self) -> "AsyncOpenAI":
        """Return the client; importing it takes a second or two."""
        from openai import AsyncAzureOpenAI, AsyncOpenAI

        key = sendable(self.key, self.key_name)
        client: AsyncOpenAI
        if self.azure:
            client = AsyncAzureOpenAI(
                azure_endpoint=address(self.url),
                api_version=self.api_version,
                api_key=key,
                timeout=None,
                max_retries=0,
            )
        else:
            client = AsyncOpenAI(
                base_url=address(self.url), api_key=key or _NO_KEY, timeout=None, max_retries=0
            )
        # Set afterwards, because the constructor replaces `None` by environment variables.
        client.organization, client.project = self.organization, self.project
        return client


class _Client:
    """A client of the package openai."""

    def __init__(self, judge: OpenAI, context: RunContext) -> None:
        self._judge = judge
        self._now = context.now
        self._access = _Access.of(judge, context.env)
        self.connection = Connection(self._connect, lambda made: made.client.close())

    async def answer(self, question: Question) -> Answer:
        """Make one call."""
        connected = await self.connection.client()
        failures = self._failures(question.model)
        try:
            call = self._call(question)
        except ValueError as exc:
            raise failures.unasked(exc) from exc
        body = await self._send(connected, call.parameters(question), failures)
        try:
            return call.read(body)
        except RefusedError as exc:
            raise failures.refused(exc.status, str(exc)) from exc
        except ValueError as exc:
            raise failures.unreadable(exc, body) from exc

    async def _send(
        self, connected: "_Connected", parameters: Mapping[str, Any], failures: Failures
    ) -> str:
        """Return the body of the response."""
        import openai

        try:
            reply = await connected.create(**parameters)
        except openai.APIStatusError as exc:
            raise self._refused(exc, failures) from exc
        except openai.APIConnectionError as exc:
            raise failures.unreached(exc.__cause__ or exc) from exc
        except openai.OpenAIError as exc:
            raise failures.unasked(exc) from exc
        text: str = reply.http_response.text
        return text

    def _connect(self) -> "_Connected":
        if not find_spec("openai"):
            raise self._failures("openai").unasked(f"it needs {_PACKAGE}")
        try:
            client = self._access.client()
        except ValueError as exc:
            raise self._failures("openai").unasked(exc) from exc
        asked = client.chat.completions if self._judge.api == "chat" else client.responses
        return _Connected(client, asked.with_raw_response.create)

    def _failures(self, model: str) -> Failures:
        return Failures(model, self._access.credentials, self._access.key)

    def _call(self, question: Question) -> Call:
        """Return the parameters of the call for a question.

        Raises:
            ValueError: a setting is invalid.

        """
        judge = self._judge
        return Call(
            model=question.model,
            api=judge.api,
            structured=judge.structured,
            settings=checked(Settings, question.settings, REFUSED_BY[judge.api]),
            # Other servers may not support the newer name.
            length="max_completion_tokens" if self._access.is_known else "max_tokens",
            extra_body=judge.extra_body,
        )

    def _refused(self, exc: "APIStatusError", failures: Failures) -> JudgeError:
        headers, body = exc.response.headers, exc.body
        said = body.get("message") if isinstance(body, dict) else body
        kind = str(exc.code or exc.type or "")
        milliseconds = seconds(headers.get("retry-after-ms"))
        after_s = retry_after(headers, self._now())
        return failures.refused(
            exc.status_code,
            str(said or exc.response.text),
            kind=kind,
            after_s=after_s if milliseconds is None else milliseconds / 1000,
            spent=bool({exc.code, exc.type} & set(_SPENT)),
        )


class _Connected(NamedTuple):
    client: "AsyncOpenAI"
    create: Callable[..., Awaitable[Any]]
    """Makes a call; looked up once, because the lookup imports more modules."""
