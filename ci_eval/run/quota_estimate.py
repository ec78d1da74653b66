"""Estimate, before a run, of the time that model calls take under the per-minute limits."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic_core import to_json

from ci_eval.llm.gateway.cassette_lines import Recorded, digest_of_trial
from ci_eval.llm.gateway.gateway import cassette_of
from ci_eval.llm.gateway.gateway_options import ModelOptions
from ci_eval.llm.gateway.providers import PROVIDERS
from ci_eval.llm.gateway.upstream import tokens_of
from ci_eval.llm.judge_settings import JudgeOptions, provider_of
from ci_eval.plugins.points import Judge
from ci_eval.records.cases import Record
from ci_eval.run.cost_estimate import Estimate
from ci_eval.run.participants import agents_with_gateway
from ci_eval.run.plan import Plan
from ci_eval.runtime.context import RunContext

_UNKNOWN = "unknown provider"


class Quota(Record):
    """The calls to one provider, and the minimum time that they take."""

    provider: str
    calls: int
    input_tokens: int
    requests_per_minute: float | None
    tokens_per_minute: float | None
    seconds: float


class _Calls(NamedTuple):
    """Calls by one caller to one provider."""

    provider: str
    shown: str
    calls: float
    tokens: float
    options: JudgeOptions | ModelOptions
    """The options of the caller, which set its limits."""


def quotas(plan: Plan, context: RunContext, asked: Sequence[Estimate]) -> list[Quota]:
    """Return the time needed at each provider with a limit, for agents and judges together.

    An agent is assumed to make as many calls per trial as its cassette has, or one.

    Raises:
        UsageError: a cassette cannot be read.

    """
    by_provider: dict[str, list[_Calls]] = {}
    for each in (*_of_judges(plan, asked), *_of_agents(plan, context)):
        by_provider.setdefault(each.provider, []).append(each)
    return [found for each in by_provider.values() if (found := _quota(each))]


def _quota(callers: Sequence[_Calls]) -> Quota | None:
    """Return the time needed at the provider of these callers; `None` if it has no limit."""
    calls, tokens = sum(each.calls for each in callers), sum(each.tokens for each in callers)
    options = [each.options for each in callers]
    requests_limit = min(filter(None, [each.requests_per_minute for each in options]), default=None)
    tokens_limit = min(filter(None, [each.tokens_per_minute for each in options]), default=None)
    minutes = max(
        calls / requests_limit if requests_limit else 0,
        tokens / tokens_limit if tokens_limit else 0,
    )
    if not minutes:
        return None
    return Quota(
        provider=callers[0].shown,
        calls=round(calls),
        input_tokens=round(tokens),
        requests_per_minute=requests_limit,
        tokens_per_minute=tokens_limit,
        seconds=round(60 * minutes, 3),
    )


def _of_judges(plan: Plan, asked: Sequence[Estimate]) -> Iterator[_Calls]:
    judging = plan.config.judging
    options = judging.options
    for each in asked if options.mode != "replay" else ():
        judges: Sequence[Judge] = []
        if each.criterion in plan.judged:
            judges = judging.judges(plan.judged[each.criterion])
        elif plan.simulation:
            judges = [judging.player(plan.simulation)]
        share = 1 / len(judges) if judges else 0
        for judge in judges:
            needed = each.calls[1] * share, each.input_tokens[1] * share
            yield _Calls(provider_of(judge), judge.type_name, *needed, options)


def _of_agents(plan: Plan, context: RunContext) -> Iterator[_Calls]:
    """Yield the calls of agents in the trials that are not replayed."""
    for name, options in agents_with_gateway(plan, context):
        if options.mode == "replay":
            continue
        calls = cassette_of(options, context).calls()
        recorded = [each for each in calls if each.trial.agent == name]
        known = {each.place.trial for each in recorded}
        digests = [digest_of_trial(each.key) for each in plan.trials() if each.key.agent == name]
        trials = sum(options.mode != "auto" or each not in known for each in digests)
        per_trial = 1 / max(len(known), 1)
        counts, tokens = _usual(recorded, options, context)
        for provider, count in counts.items():
            needed = trials * count * per_trial, trials * tokens[provider] * per_trial
            yield _Calls(provider, provider, *needed, options)


def _usual(
    recorded: Sequence[Recorded], options: ModelOptions, context: RunContext
) -> tuple[Counter[str], Counter[str]]:
    """Return recorded calls and input tokens by provider; one call if nothing is recorded."""
    calls, tokens = Counter[str](), Counter[str]()
    for each in recorded:
        provider = str(each.request.get("api", "")).partition(" ")[0]
        calls[provider] += 1
        tokens[provider] += tokens_of(to_json(each.request))
    if not calls:
        likely = [name for name in options.providers if PROVIDERS[name].key(context.env)]
        known = [each for each in (likely, options.providers) if len(each) == 1]
        calls.update(known[0] if known else [_UNKNOWN])
    return calls, tokens
