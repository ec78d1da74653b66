"""Limits on agents' calls: budgets per run and per trial, and rate limits per provider."""

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from ci_eval.llm.gateway.gateway_options import ModelOptions
from ci_eval.llm.rate_limit import RateLimiter, pace_of
from ci_eval.records.model_usage import ModelUsage


@dataclass
class Spending:
    """Calls to providers, and their cost."""

    calls: int = 0
    cost_usd: float = 0.0
    pending_usd: float = 0.0
    """Estimated cost of the calls in progress."""

    def begin(self, estimate_usd: float) -> None:
        """Count a call before it is made."""
        self.calls += 1
        self.pending_usd += estimate_usd

    def end(self, estimate_usd: float, cost_usd: float) -> None:
        """Replace the estimate for a call by its actual cost."""
        self.pending_usd -= estimate_usd
        self.cost_usd += cost_usd

    def excess(
        self, estimate_usd: float, calls: int | None, cost: float | None
    ) -> tuple[str, str] | None:
        """Return the option whose limit one more call would exceed, and how much of it is used."""
        if calls is not None and self.calls >= calls:
            return "max_calls", f"{self.calls} of {calls} calls"
        if cost is not None and self.cost_usd + self.pending_usd + estimate_usd > cost:
            used = f"${self.cost_usd:.4f} spent"
            if self.pending_usd:
                used += f", ${self.pending_usd:.4f} for calls in progress"
            return "max_cost_usd", f"{used}, about ${estimate_usd:.4f} for this call, of ${cost:g}"
        return None


def exceeded(
    options: ModelOptions,
    run: Spending,
    trial: Spending,
    estimate_usd: float,
    *,
    is_shard: bool = False,
) -> str:
    """Return why a call of about this cost is not allowed; empty if it is."""
    if found := run.excess(estimate_usd, options.max_calls, options.max_cost_usd):
        name, spent = found
        share = ", the share of this shard" if is_shard else ""
        return f"the budget of the run is used up: {spent}{share}; raise `models.{name}`"
    most = options.max_calls_per_trial, options.max_cost_usd_per_trial
    if found := trial.excess(estimate_usd, *most):
        name, spent = found
        return f"the budget of the trial is used up: {spent}; raise `models.{name}_per_trial`"
    return ""


def overspent(
    options: ModelOptions, run: Spending, trial: Spending, *, is_shard: bool = False
) -> str:
    """Return the limit that a call exceeded because it cost more than estimated, if any."""
    share = ", the share of this shard" if is_shard else ""
    for what, spent, most, name in (
        ("run", run, options.max_cost_usd, "max_cost_usd"),
        ("trial", trial, options.max_cost_usd_per_trial, "max_cost_usd_per_trial"),
    ):
        if most is not None and spent.cost_usd > most:
            said = f"${spent.cost_usd:.4f} of ${most:g}{share * (what == 'run')}"
            return f"the budget of the {what} is exceeded: {said}; raise `models.{name}`"
    return ""


MAX_CONCURRENCY = 1000
"""Maximum number of concurrent calls to one provider; in practice, `run.concurrency` is lower."""
_limiters: WeakKeyDictionary[AbstractEventLoop, dict[str, RateLimiter]] = WeakKeyDictionary()


def limiter_of(provider: str) -> RateLimiter:
    """Return the limiter that all agents of this run share for a provider."""
    limiters = _limiters.setdefault(asyncio.get_running_loop(), {})
    if provider not in limiters:
        pace = pace_of(provider)
        limiters[provider] = RateLimiter(concurrency=MAX_CONCURRENCY, pace=pace, head_start_s=0)
    return limiters[provider]


_of_runs: WeakKeyDictionary[AbstractEventLoop, dict[str, Spending]] = WeakKeyDictionary()
"""Keyed by event loop, since each run has its own."""


def of_run(loop: AbstractEventLoop, agent: str) -> Spending:
    """Return an agent's spending in this run, over all rounds and both arms."""
    return _of_runs.setdefault(loop, {}).setdefault(agent, Spending())


def limit_before(agent: str, options: ModelOptions, calls: float) -> str:
    """Return the option that forbids about this many more calls in this run; empty if none does."""
    run = of_run(asyncio.get_running_loop(), agent)
    cost = run.cost_usd * (1 + calls / max(run.calls, 1))
    if options.max_calls is not None and run.calls + calls > options.max_calls:
        return "max_calls"
    is_costly = options.max_cost_usd is not None and cost > options.max_cost_usd
    return "max_cost_usd" if is_costly else ""


def count_spent(spent: Mapping[str, ModelUsage]) -> None:
    """Count what each agent spent in the run that this one resumes."""
    for agent, usage in spent.items():
        run = of_run(asyncio.get_running_loop(), agent)
        paid = usage.calls - usage.replayed
        run.calls += paid + usage.retries
        # A usage does not state which of its calls cost what.
        run.cost_usd += usage.cost_usd * paid / max(usage.calls, 1)
