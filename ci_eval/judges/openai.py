"""OpenAI's models, and all that are asked in its way: vLLM, Ollama, gateways, Azure."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from ci_eval.judges._openai_calls import REFUSED_BY, Api, Call, RefusedError, Structured
from ci_eval.llm.providers.connection import Connection, sendable
from ci_eval.llm.providers.failures import Failures
from ci_eval.llm.providers.settings import Settings, checked
from ci_eval.plugins.points import Judge, JudgeClient, judge
from ci_eval.records.errors import JudgeError
from ci_eval.records.model import Json
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
"""What is sent in the place of a key: servers of one's own need none, and the package does."""
_SPENT = ("insufficient_quota", "billing_hard_limit_reached")
"""Codes of errors that say: pay first."""


@judge("openai")
class OpenAI(Judge):
    """A model of OpenAI's, or one that is asked in the same way, at any address.

    Needs the package openai: `pip install 'ci-eval[openai]'`.  The environment says how to
    reach it, with the variables that the package reads: `OPENAI_API_KEY`, `OPENAI_BASE_URL`,
    `OPENAI_ORG_ID` and `OPENAI_PROJECT_ID`.  At an address of your own no key is needed.

    Azure is asked where `azure_endpoint` is set, or `AZURE_OPENAI_ENDPOINT` without
    `OPENAI_BASE_URL` and `OPENAI_API_KEY`; with `AZURE_OPENAI_API_KEY`, and the deployment as
    the model.  What is set here comes before the environment.
    """

    extra: ClassVar[str] = "openai"
    secrets: ClassVar[tuple[str, ...]] = ("OPENAI_API_KEY",)

    base_url: Address | None = None
    """Where requests go; left out, `OPENAI_BASE_URL`, else OpenAI."""
    api_key_env: KeyName | None = None
    """The variable that holds the key; left out, `OPENAI_API_KEY` or `AZURE_OPENAI_API_KEY`."""
    azure_endpoint: Address | None = None
    """The address of a resource of Azure; left out, `AZURE_OPENAI_ENDPOINT`."""
    api_version: str | None = Field(default=None, min_length=1)
    """The version of Azure's API; left out, `OPENAI_API_VERSION`."""
    api: Api = "chat"
    """Which API is asked: `chat` completions, which all have, or `responses`."""
    structured: Structured = "schema"
    """How the form of the answer is asked for: by its JSON `schema`; as any `json`, with the
    schema in the instructions; or with `none` but the instructions."""
    extra_body: Mapping[str, Json] = Field(default_factory=dict)
    """What a request has beside that, such as `{reasoning_effort: low}`."""

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
        """Say whether `model` is one of OpenAI."""
        return bool(re.match(r"gpt-|o[0-9]", model))

    def serves(self, model: str) -> bool:
        """Say whether `model` is one of OpenAI, or asked for at an address of your own."""
        return self.recognises(model) or bool(self.base_url or self.azure_endpoint)

    def missing(self, env: Mapping[str, str]) -> str:
        """Say which variable is missing, or that the package is."""
        access = _Access.of(self, env)
        found = [] if find_spec("openai") else [_PACKAGE]
        if not access.key and (access.is_known or self.api_key_env):
            found.append(access.key_name)
        if access.azure and not access.api_version:
            found.append("OPENAI_API_VERSION")
        return " and ".join(found)

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[JudgeClient]:
        """Connect, and close the connection at the end."""
        client = _Client(self, context)
        async with client.connection:
            await client.connection.client()
            yield client


class _Access(NamedTuple):
    """How the model is reached, whatever else `os.environ` says."""

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
        """Whether OpenAI itself is asked, or Azure: both want a key."""
        host = urlsplit(self.url).hostname or ""
        return self.azure or host == "openai.com" or host.endswith(".openai.com")

    @property
    def credentials(self) -> str:
        return f"the key comes from {self.key_name}" if self.key else f"{self.key_name} is not set"

    def client(self) -> "AsyncOpenAI":
        """Return the client; the import takes a second or two."""
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
                base_url=address(self.url),
                api_key=key or _NO_KEY,
                timeout=None,
                max_retries=0,
            )
        # Not handed over, for of what is `None` it looks into the environment itself.
        client.organization, client.project = self.organization, self.project
        return client


class _Client:
    """A client of the package openai."""

    def __init__(self, judge: OpenAI, context: RunContext) -> None:
        self._judge = judge
        self._now = context.now
        self._access = _Access.of(judge, context.env)
        self.connection = Connection(self._connect, _close)

    async def answer(self, question: Question) -> Answer:
        """Ask once."""
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
        """Return how the question's model is asked.

        Raises:
            ValueError: a setting is wrong.

        """
        judge = self._judge
        return Call(
            model=question.model,
            api=judge.api,
            structured=judge.structured,
            settings=checked(Settings, question.settings, REFUSED_BY[judge.api]),
            # Elsewhere the newer name is not always known.
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
    """What makes a call; where it is looked up, more is imported, which takes its time, too."""


async def _close(connected: _Connected) -> None:
    await connected.client.close()
