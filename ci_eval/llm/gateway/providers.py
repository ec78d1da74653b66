"""The providers behind the gateway: their routes, addresses, keys and environment variables.

A request is never passed on unchecked: its path must match a route, and the gateway sets the
address, the key and the headers.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ci_eval.llm.gateway.gateway_options import ProviderName
from ci_eval.records.cases import Json

_VERSION_HEADERS = ("anthropic-version", "anthropic-beta", "openai-beta")
"""Headers of clients that are passed on, because they determine the format of the answer."""
_QUERY = re.compile("(alt|beta)=[a-z]{1,9}")
"""Query parameters that are passed on."""
_MODEL = r"(?P<model>[A-Za-z0-9][A-Za-z0-9._-]{0,127})"
_CHARS_PER_MODEL = 200


@dataclass(frozen=True)
class Provider:
    """A provider of models."""

    name: ProviderName
    place: str
    """The path of its routes below the address of the gateway."""
    address: str
    """Its default address."""
    addresses: tuple[str, ...]
    """Variables that may set another address; the provider's clients read them, too."""
    keys: Mapping[str, tuple[str, str]]
    """Variables with its key, each with the header for the key and the prefix in that header."""
    routes: tuple[tuple[re.Pattern[str], str], ...]
    """Patterns of paths, each with the name of the API."""
    variables: tuple[tuple[str, str], ...]
    """Variables that point clients to the gateway, each with the path to append."""

    @property
    def client_variables(self) -> set[str]:
        """The variables that its clients read."""
        return {*self.keys, *(name for name, _ in self.variables)}

    def upstream(self, env: Mapping[str, str]) -> str:
        """Return the address to call."""
        name = self.address_variable(env)
        return (env[name] if name else self.address).rstrip("/")

    def address_variable(self, env: Mapping[str, str]) -> str | None:
        """Return the variable with another address; `None` if there is none."""
        return next((name for name in self.addresses if env.get(name)), None)

    def key_variable(self, env: Mapping[str, str]) -> str | None:
        """Return the variable with the key; `None` if there is no key."""
        return next((name for name in self.keys if env.get(name)), None)

    def key(self, env: Mapping[str, str]) -> tuple[str, str] | None:
        """Return the header with the key; `None` if there is no key."""
        name = self.key_variable(env)
        if name is None:
            return None
        header, before = self.keys[name]
        return header, before + env[name]


_GEMINI_VERBS = "generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents"

PROVIDERS: Mapping[str, Provider] = {
    each.name: each
    for each in (
        Provider(
            name="gemini",
            place="/gemini",
            address="https://generativelanguage.googleapis.com",
            addresses=("GOOGLE_GEMINI_BASE_URL",),
            keys={
                "GOOGLE_API_KEY": ("x-goog-api-key", ""),
                "GEMINI_API_KEY": ("x-goog-api-key", ""),
            },
            routes=(
                (re.compile(rf"/v1(?:alpha|beta)?/models/{_MODEL}:(?:{_GEMINI_VERBS})"), "gemini"),
            ),
            # LiteLLM adds no version.
            variables=(("GOOGLE_GEMINI_BASE_URL", ""), ("GEMINI_API_BASE", "/v1beta")),
        ),
        Provider(
            name="openai",
            place="/openai/v1",
            address="https://api.openai.com/v1",
            addresses=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
            keys={"OPENAI_API_KEY": ("authorization", "Bearer ")},
            routes=(
                (re.compile("/chat/completions"), "chat"),
                (re.compile("/responses"), "responses"),
                (re.compile("/embeddings"), "embeddings"),
            ),
            variables=(("OPENAI_BASE_URL", ""), ("OPENAI_API_BASE", "")),
        ),
        Provider(
            name="anthropic",
            place="/anthropic",
            address="https://api.anthropic.com",
            addresses=("ANTHROPIC_BASE_URL",),
            keys={
                "ANTHROPIC_API_KEY": ("x-api-key", ""),
                "ANTHROPIC_AUTH_TOKEN": ("authorization", "Bearer "),
            },
            routes=(
                (re.compile("/v1/messages"), "messages"),
                (re.compile("/v1/messages/count_tokens"), "count"),
            ),
            variables=(
                ("ANTHROPIC_BASE_URL", ""),
                ("ANTHROPIC_API_URL", ""),  # LangChain's
                ("ANTHROPIC_API_BASE", ""),  # LiteLLM's
            ),
        ),
    )
}
_FOR_ALL = {
    # The SDK sends traces, which carry the key, to a fixed address.
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    # LiteLLM would wait for prices from the network.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
_UNPROXIED = ("NO_PROXY", "no_proxy")
"""Variables that keep requests to loopback addresses, and their paths, away from a proxy."""
ADDRESS = "CI_EVAL_MODELS"
"""The variable with the gateway's address, for ci-eval's own code in workers."""
KEYS = frozenset(name for each in PROVIDERS.values() for name in each.keys)
"""The variables with keys; agents behind the gateway never get them."""


class Call(NamedTuple):
    """A checked model call."""

    provider: Provider
    api: str
    path: str
    """The path below the address of the provider, with the query."""
    model: str
    body: dict[str, Json]
    versions: Mapping[str, str]
    """Headers that determine the format of the answer."""

    @property
    def is_streamed(self) -> bool:
        """True if the client requests a stream."""
        return ":stream" in self.path or self.body.get("stream") is True

    @property
    def is_free(self) -> bool:
        """True if the provider does not charge for it."""
        return self.api == "count" or ":countTokens" in self.path

    @property
    def shown(self) -> str:
        """The call as shown in messages."""
        return f"{self.provider.name} {self.model}"


def route(
    path: str, query: str, providers: Sequence[str]
) -> tuple[Provider, str, str, str | None] | None:
    """Return the provider, the API, the path to call, and the model if the path names it.

    `None` means that the gateway does not serve the path.
    """
    for provider in (PROVIDERS[name] for name in providers):
        rest = path.removeprefix(provider.place)
        if rest == path:
            continue
        for pattern, api in provider.routes:
            if found := pattern.fullmatch(rest):
                kept = "&".join(filter(_QUERY.fullmatch, query.split("&")))
                asked = f"{rest}?{kept}" if kept else rest
                return provider, api, asked, found.groupdict().get("model")
    return None


def checked_call(
    routed: tuple[Provider, str, str, str | None], body: Json, headers: Mapping[str, str]
) -> Call | None:
    """Return the call; `None` if the body is not an object that names a model."""
    provider, api, path, model = routed
    if not isinstance(body, dict):
        return None
    named = model or body.get("model")
    if not isinstance(named, str) or not 0 < len(named) <= _CHARS_PER_MODEL:
        return None
    versions = {name: headers[name] for name in _VERSION_HEADERS if name in headers}
    return Call(provider, api, path, named, body, versions)


def variables(
    base: str, dummy: str, names: Sequence[str], given: Mapping[str, str | None]
) -> dict[str, str]:
    """Return the environment that points clients of providers to the gateway at `base`.

    `dummy` stands in for each key: under the key variables that are `given` to the agent, or else
    the provider's usual one.
    """
    direct = [each for name in _UNPROXIED if (each := given.get(name))]
    unproxied = ",".join(dict.fromkeys([*direct, "127.0.0.1", "localhost"]))
    found = {**_FOR_ALL, ADDRESS: base, **dict.fromkeys(_UNPROXIED, unproxied)}
    for provider in (PROVIDERS[name] for name in names):
        at = base + provider.place
        found |= {name: at + added for name, added in provider.variables}
        keys = [name for name in provider.keys if name in given] or [next(iter(provider.keys))]
        found |= dict.fromkeys(keys, dummy)
    return found


def held(env: Mapping[str, str]) -> Iterator[str]:
    """Yield the keys in an environment, which stay in our process."""
    yield from (env[name] for name in sorted(KEYS) if env.get(name))


def error_body(message: str) -> dict[str, Json]:
    """Return an error that the clients of all providers understand."""
    error = {"type": "invalid_request_error", "status": "INVALID_ARGUMENT", "code": 400}
    return {"type": "error", "error": {"message": message, "param": None, **error}}
