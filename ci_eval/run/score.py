"""Scoring of traces: one score per criterion."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any

from ci_eval.formats.reported_models import served
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.plugins.points import Criterion, Scorer
from ci_eval.records.cases import Json, Status
from ci_eval.records.errors import TrialError
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.model_versions import ServedModel, merged
from ci_eval.records.results import Score, TrialResult
from ci_eval.records.trials import Failure, Trace, Trial
from ci_eval.run.collect import Collector
from ci_eval.run.execute import Landed
from ci_eval.run.participants import Participants
from ci_eval.run.plan import Plan
from ci_eval.text.sanitize import one_line

_log = logging.getLogger(__name__)
MAX_EVIDENCE_CHARS = 4_000
"""Maximum length of a text kept as evidence; longer ones lose their middle."""
MAX_EVIDENCE_ITEMS = 1_000
"""Maximum number of items of a list or an object kept as evidence."""
_MAX_MOCKED = 50
_MAX_MESSAGES = 50
_MAX_MESSAGE_CHARS = 400


@asynccontextmanager
async def scoring(
    plan: Plan, participants: Participants, collector: Collector
) -> AsyncIterator[Landed]:
    """Score traces while others are executed; leaving the context waits for the last.

    The context manager yields the function that receives each trace.  It makes agents wait only if
    as many traces are already waiting as may be scored at once.
    """
    options = plan.config
    requested = {
        name: getattr(each, each.model_option, "") for name, each in options.agents.items()
    }
    slots = asyncio.Semaphore(max(options.run.concurrency, options.judging.concurrency))

    async def work(number: int, trial: Trial, trace: Trace) -> None:
        criteria = plan.pairs[trial.key.agent, trial.key.evalset]
        result = await score(trial, trace, criteria, participants.scorers)
        models = answering(trace, requested[trial.key.agent])
        simulation = participants.spent(trial.key)
        if models or simulation:
            result = result.model_copy(update={"models": models, "simulation": simulation})
        collector.scored(number, trace, result)

    async with asyncio.TaskGroup() as group:

        async def landed(number: int, trial: Trial, trace: Trace) -> None:
            collector.landed(number, trial, trace)
            await slots.acquire()
            task = group.create_task(work(number, trial, trace))
            task.add_done_callback(lambda _: slots.release())

        yield landed


def answering(trace: Trace, requested: str) -> tuple[ServedModel, ...]:
    """Return the versions of the model `requested` that answered the agent, if known."""
    agent = trace.key.agent
    events = (event for turn in trace.invocations for event in turn.events or ())
    reported = merged(
        *(
            served("agent", requested, each.model_version, each.system_fingerprint, agent=agent)
            for each in events
        )
    )
    # For agents that report none: what the gateway saw.
    used = [each.metered for each in trace.invocations if each.metered]
    names = dict.fromkeys(name for usage in used for name in usage.models)
    return reported or merged(*(served("agent", requested, name, agent=agent) for name in names))


def metered(trace: Trace) -> ModelUsage | None:
    """Return the usage of the agent's models in a trial; `None` if its calls are not metered."""
    used = [each.metered for each in trace.invocations if each.metered]
    return sum(used, ModelUsage()).alone if used else None


async def score(
    trial: Trial, trace: Trace, criteria: Mapping[str, AnyCriterion], scorers: Mapping[str, Scorer]
) -> TrialResult:
    """Score `trace` by every criterion; a failed scoring becomes an error with its reason."""
    scores = {
        name: await _score(criterion, trial, trace, scorers.get(name))
        for name, criterion in criteria.items()
    }
    return _result(trial, trace, scores)


def unobserved(trial: Trial, failure: Failure, criteria: Mapping[str, AnyCriterion]) -> TrialResult:
    """Return the result of a trial that was not observed."""
    trace = Trace(key=trial.key, error=failure)
    return _result(trial, trace, {name: _lost(each, failure) for name, each in criteria.items()})


def _lost(criterion: AnyCriterion, failure: Failure) -> Score:
    return criterion.unscored(Status.ERROR, f"not observed: {failure.message}")


def _result(trial: Trial, trace: Trace, found: Mapping[str, Score]) -> TrialResult:
    scores = [
        each if each.name == name else each.model_copy(update={"name": name})
        for name, each in found.items()
    ]
    judged = [each.status for each in scores if not each.informational]
    status = Status.ERROR if trace.error else Status.worst(judged)
    return TrialResult(
        key=trial.key,
        status=status,
        error=trace.error,
        scores=tuple(scores),
        duration_s=trace.duration_s,
        attempts=trace.attempts,
        line=trial.case.line,
        case_fingerprint=trial.fingerprint,
        tags=trial.case.tags,
        round=trial.round,
        confirms=trial.confirms,
        cut_off=tuple(each.finish_reason for each in trace.invocations if each.finish_reason),
        output=trace.output if status in (Status.FAILED, Status.ERROR) else "",
        metered=metered(trace),
        mocked=_mocked(trial),
        messages=_messages(trial, trace) if status in (Status.FAILED, Status.ERROR) else (),
    )


def _mocked(trial: Trial) -> tuple[str, ...]:
    mocks = trial.case.tool_mocks
    return (
        tuple(name[:_MAX_MESSAGE_CHARS] for name in [*mocks.tools][:_MAX_MOCKED]) if mocks else ()
    )


def _messages(trial: Trial, trace: Trace) -> tuple[str, ...]:
    """Return the messages of the user; if the agent answered nothing, those of the case."""
    turns = trace.invocations or trial.case.conversation or ()
    return tuple(one_line(each.user, _MAX_MESSAGE_CHARS) for each in turns[:_MAX_MESSAGES])


async def _score(
    criterion: AnyCriterion, trial: Trial, trace: Trace, scorer: Scorer | None
) -> Score:
    case = trial.case
    if trace.error:
        return _lost(criterion, trace.error)
    if unreported := criterion.not_observed(trace.invocations):
        return criterion.unscored(Status.ERROR, unreported)
    skip_reason = criterion.skip_reason(case)
    if skip_reason:
        return criterion.unscored(Status.SKIPPED, skip_reason)
    try:
        if isinstance(criterion, Criterion):
            return _bounded(criterion.score(case, trace))
        if scorer:
            return _bounded(await scorer.score(case, trace))
        reason = "no criterion can score it"
    except TrialError as exc:
        reason = str(exc)
    except Exception as exc:  # noqa: BLE001  # one of three: a criterion that fails is an error here
        _log.debug("%s: internal error of %s", trial.key, criterion.type_name, exc_info=True)
        reason = f"{type(exc).__name__}: {exc}"
    return criterion.unscored(Status.ERROR, reason)


def _bounded(found: Score) -> Score:
    """Return `found` with its reason and its evidence shortened."""
    update: dict[str, Any] = {}
    if len(found.reason) > MAX_EVIDENCE_CHARS:
        update["reason"] = _shortened_text(found.reason)
    if found.evidence:
        update["evidence"] = shortened(found.evidence)
    if any(part.evidence for part in found.invocations):
        update["invocations"] = tuple(
            part.model_copy(update={"evidence": shortened(part.evidence)})
            for part in found.invocations
        )
    return found.model_copy(update=update) if update else found


def shortened(value: Json) -> Json:
    """Return `value` with the middle of its long texts and the ends of long lists left out."""
    if isinstance(value, str):
        return _shortened_text(value)
    if not isinstance(value, dict | list):
        return value
    over = len(value) - MAX_EVIDENCE_ITEMS
    note = f"[…{over} more left out…]"
    if isinstance(value, dict):
        first = islice(value.items(), MAX_EVIDENCE_ITEMS)
        kept = {_shortened_text(key): shortened(each) for key, each in first}
        return {**kept, "…": note} if over > 0 else kept
    listed = [shortened(each) for each in value[:MAX_EVIDENCE_ITEMS]]
    return [*listed, note] if over > 0 else listed


def _shortened_text(text: str) -> str:
    if len(text) <= MAX_EVIDENCE_CHARS:
        return text
    half = MAX_EVIDENCE_CHARS // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]} […{left_out} characters left out…] {text[-half:]}"
