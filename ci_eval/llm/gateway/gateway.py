"""The server that stands in for the model providers, on loopback, in our process.

A client must know the secret of a process.  A call that the gateway refuses makes the trial an
error, whatever the agent does about it.
"""

import asyncio
import importlib
import logging
import re
import secrets
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from ci_eval.forge.lineage import from_fork
from ci_eval.llm.gateway.gateway_answering import Answering
from ci_eval.llm.gateway.gateway_options import ModelOptions
from ci_eval.llm.gateway.model_cassette import MERGE_HINT, ModelCassette
from ci_eval.llm.gateway.open_conversations import (
    MARK,
    Conversation,
    Process,
    RefusedCallError,
    called_early,
)
from ci_eval.llm.gateway.providers import (
    PROVIDERS,
    Call,
    checked_call,
    error_body,
    route,
    variables,
)
from ci_eval.llm.line_file import shard_file
from ci_eval.llm.rate_limit import pace_of
from ci_eval.records.errors import TrialError, UsageError
from ci_eval.records.trials import TrialKey
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import MAX_BODY, Net, connecting
from ci_eval.runtime.path_checks import contained
from ci_eval.text.json_text import NotJsonError, parse_json
from ci_eval.text.sanitize import one_line
from ci_eval.text.templates import counted

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest as Request
    from aiohttp.web import StreamResponse

PLACEHOLDER = "ci-eval-placeholder-the-gateway-has-the-key"
"""The value that agents find in place of a key."""
_PATH = re.compile(
    r"/(?P<secret>[A-Za-z0-9_-]{43})(?P<rest>/[^?#]{1,1000})(?:\?(?P<query>.{0,1000}))?"
)
_SHUTDOWN_S = 1.0
_MAX_HEADER = 64 * 1024
"""Maximum length of a header of a request, in bytes."""


class Gateway:
    """The gateway of one agent."""

    def __init__(
        self, options: ModelOptions, context: RunContext, cassette: ModelCassette, net: Net
    ) -> None:
        self._options = options
        self._cassette = cassette
        self._resumes = context.resumes
        self._only_replays = only_replays(options, context.env)
        self._answering = Answering(options, context, cassette, net)
        self._processes: dict[str, Process] = {}
        self._address = ""
        self.calls = 0
        """Number of calls received, answered or not."""
        self.conversations = 0
        """Number of conversations opened."""
        self.needs_apart = False
        """Whether each conversation needs a process of its own, because calls lack marks."""

    def process(self) -> Process:
        """Return a new process, with an address of its own."""
        secret = secrets.token_urlsafe(32)
        self._processes[secret] = Process(f"{self._address}/{secret}")
        return self._processes[secret]

    def at(self, base: str) -> Process:
        """Return the process with this address."""
        return self._processes[base.rpartition("/")[2]]

    def variables(self, process: Process, given: Mapping[str, str | None]) -> dict[str, str]:
        """Return the environment that points the clients in a process to this gateway.

        `given` are the variables that the agent gets without it; a value may be unknown.
        """
        return variables(process.base, PLACEHOLDER, self._options.providers, given)

    @property
    def has_cassette(self) -> bool:
        """True if repeating an interrupted conversation costs nothing."""
        return self._options.mode != "live"

    def open(
        self, process: Process, number: int, key: TrialKey, *, again: int | None = None
    ) -> Conversation:
        """Begin a conversation, and return it.

        If it retries a planned repeat, `again` is that repeat, and its answers are replayed.
        """
        if self._only_replays and again is not None:
            key = key.model_copy(update={"repeat": again})
        conversation = Conversation(key)
        if self._options.mode == "record":
            begun = self._cassette.take_begun(conversation.trial)
            conversation.is_held_again = self._resumes and begun
            if not conversation.is_held_again:
                self._cassette.anew(conversation.trial)
        process.conversations[number] = conversation
        process.has_begun = True
        if process.early:
            conversation.refuse(TrialError("models", called_early(process.early)))
        self.conversations += 1
        return conversation

    def complete(self, conversation: Conversation) -> None:
        """Note that a conversation ran to its end."""
        made = conversation.numbered if conversation.is_recorded else None
        self._cassette.finish(conversation.trial, made)

    # --- The server -------------------------------------------------------------------------------

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Answer requests until the context is left."""
        from aiohttp import web

        loop = asyncio.get_running_loop()
        request = partial(web.BaseRequest, loop=loop, client_max_size=MAX_BODY)
        # Otherwise, input that is not HTTP would be logged unredacted, with our traceback.
        log = logging.getLogger(f"{__name__}.requests")
        log.disabled = True
        # By default, a client that leaves does not cancel its call: the answer is paid for anyway.
        server = web.Server(
            self._handle,
            request_factory=request,
            access_log=None,
            logger=log,
            max_field_size=_MAX_HEADER,
            auto_decompress=False,  # it would refuse unknown encodings before `_handle` knows
        )
        runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_S)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            self._address = f"http://{host}:{port}"
            yield
        finally:
            await runner.cleanup()

    async def _handle(self, request: "Request") -> "StreamResponse":
        from aiohttp.web import Response

        found = _PATH.fullmatch(request.raw_path)
        # Safe from timing attacks: the secret has 256 bits, and a dictionary compares hashes.
        process = self._processes.get(found["secret"]) if found else None
        if found is None or process is None:
            return Response(status=404)
        self.calls += 1
        conversation: Conversation | None = None
        try:
            conversation = process.of(request.headers.get(MARK))
            if conversation is None:
                return _refusal(process.outside(one_line(found["rest"], 200)))
            call = await self._call(request, found["rest"], found["query"] or "")
            return await self._answering.answer(request, call, conversation, process.base)
        except RefusedCallError as exc:
            if conversation is None:
                self.needs_apart = True
            else:
                conversation.refuse(TrialError(exc.kind, str(exc)))
            return _refusal(str(exc))
        except TrialError as exc:
            # A failed connection to a provider may succeed later; other errors are final.
            if conversation and exc.kind != "connection":
                conversation.refuse(exc)
            return _refusal(str(exc), 502 if exc.kind == "connection" else 400)
        except (ConnectionError, asyncio.CancelledError):
            raise  # the client has left, or the gateway is shutting down
        except BaseException as exc:
            if conversation:
                message = f"{type(exc).__name__}: {exc}"
                conversation.refuse(TrialError("internal", message))
            raise

    async def _call(self, request: "Request", path: str, query: str) -> Call:
        """Return the checked call.

        Raises:
            RefusedCallError: the gateway does not serve it.

        """
        from aiohttp.web import HTTPRequestEntityTooLarge, RequestPayloadError

        if request.headers.get("expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        shown = one_line(f"{request.method} {path}", 200)
        routed = route(path, query, self._options.providers)
        if routed is None or request.method != "POST":
            raise RefusedCallError("models", f"the gateway does not serve {shown}")
        try:
            body = parse_json(_decoded(await request.read(), request))
        except HTTPRequestEntityTooLarge:
            message = f"{shown}: the request is larger than {MAX_BODY >> 20} MiB"
            raise RefusedCallError("models", message) from None
        except (RequestPayloadError, _EncodingError) as exc:
            message = f"{shown}: the request cannot be read: {one_line(str(exc), 200)}"
            raise RefusedCallError("models", message) from None
        except NotJsonError as exc:
            raise RefusedCallError("models", f"{shown}: the request {exc}") from None
        call = checked_call(routed, body, request.headers)
        if call is None:
            raise RefusedCallError("models", f"{shown}: the request is not JSON with a model name")
        return call


class _EncodingError(ValueError):
    """The body of a request cannot be decoded."""


def _decoded(body: bytes, request: "Request") -> bytes:
    """Return the body of a request as it was before it was compressed.

    Raises:
        _EncodingError: it is compressed in another way than by gzip, is damaged or too large.

    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        return body
    if encoding not in ("gzip", "deflate"):
        raise _EncodingError(f"its encoding is {encoding!r}; the gateway knows gzip and deflate")
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)  # both kinds of headers
    try:
        found = unpacking.decompress(body, MAX_BODY)
    except zlib.error as exc:
        raise _EncodingError(str(exc)) from None
    if not unpacking.eof:
        raise _EncodingError(f"it is incomplete, or larger than {MAX_BODY >> 20} MiB")
    return found


def _refusal(message: str, status: int = 400) -> "StreamResponse":
    """Return an error that clients do not retry, unless the provider could not be reached."""
    from aiohttp.web import json_response

    headers = {"x-should-retry": "false"} if status == 400 else {}
    return json_response(error_body(message), status=status, headers=headers)


def has_key(options: ModelOptions, env: Mapping[str, str]) -> bool:
    """Return True if there is a key for at least one provider that an agent may call."""
    return any(PROVIDERS[name].key(env) for name in options.providers)


def only_replays(options: ModelOptions, env: Mapping[str, str]) -> bool:
    """Return True if all answers must come from the cassette."""
    return options.mode == "replay" or (options.mode == "auto" and not has_key(options, env))


def cassette_of(options: ModelOptions, context: RunContext) -> ModelCassette:
    """Return the cassette of an agent, loaded.

    Raises:
        UsageError: it cannot be read.

    """
    written = options.mode in ("record", "auto")
    path = contained(context.root, options.cassette, written=written)
    shown = context.shown(options.cassette)
    own = shard_file(context.cassettes, options.cassette) if written else None
    # What an ordinary variable contains may be meant for the model, such as a prompt.
    secrets = context.secrets.with_digests(context.env)
    cassette = ModelCassette(path, shown=shown, secrets=secrets, own=own)
    if options.mode != "live":
        cassette.load(resumes=context.resumes and options.mode == "record")
    return cassette


def check_models(agent: str, options: ModelOptions, context: RunContext) -> None:
    """Check, before a run, that model calls can be answered.

    Raises:
        UsageError: a key or the cassette is missing.
        OSError: the cassette cannot be written.

    """
    cassette = cassette_of(options, context)
    _warn_of_damage(cassette, context)
    if options.mode == "replay":
        if not cassette.exists:
            how = context.command("run", "--models", "record")
            message = f"agent {agent!r} cannot be replayed: there is no {cassette.shown}"
            raise UsageError(message, hint=f"record it with `{how}`")
        return
    if has_key(options, context.env):
        if options.mode != "live":
            cassette.begin()
        return
    if options.mode == "auto" and len(cassette):
        return
    keys = ", ".join(key for name in options.providers for key in PROVIDERS[name].keys)
    hint = "set it in the environment of ci-eval"
    if from_fork(context.env):
        hint = "pull requests from forks get no secrets: use `--models replay`"
    raise UsageError(f"agent {agent!r} calls models, but none of these is set: {keys}", hint=hint)


def _warn_of_damage(cassette: ModelCassette, context: RunContext) -> None:
    if damage := cassette.damage:
        context.say(f"warning: {cassette.shown} {damage}; {MERGE_HINT}")
    if cassette.doubled:
        calls = counted(len(cassette.doubled), "call")
        context.say(f"warning: {cassette.shown} has two answers to {calls}; {MERGE_HINT}")


@asynccontextmanager
async def gateway_for(options: ModelOptions, context: RunContext) -> AsyncIterator[Gateway]:
    """Provide a gateway until the context is left.

    Raises:
        UsageError: the cassette cannot be read.
        OSError: it cannot be written.

    """
    cassette = cassette_of(options, context)
    known = cassette.strange
    if options.mode != "live" and not only_replays(options, context.env):
        cassette.begin()
    if options.mode == "record" and not context.resumes:
        cassette.drop_partial()
    for name in options.providers:
        pace_of(name).limit(options.requests_per_minute, options.tokens_per_minute)
    async with connecting(context.env) as net:
        # Importing the price list is slow; agents start in the meantime.
        loading = asyncio.create_task(asyncio.to_thread(importlib.import_module, "genai_prices"))
        gateway = Gateway(options, context, cassette, net)
        try:
            async with gateway.serving():
                yield gateway
            cassette.forget_begun()
        finally:
            await loading
            if cassette.strange > known:
                _warn_of_damage(cassette, context)
            if cassette.redacted:
                answers = counted(cassette.redacted, "answer")
                message = (
                    f"{answers} in {cassette.shown} had the value of a secret; "
                    "replays give the agent the name of its variable instead"
                )
                context.say(f"warning: {message}")
            if cassette.in_requests:
                message = (
                    f"{cassette.shown} has requests with the name of a variable instead of its "
                    f"value: {', '.join(sorted(cassette.in_requests))}; where the value differs, "
                    "replays may not find them"
                )
                context.say(f"warning: {message}")
            cassette.tidy()
