"""Assertions in cases."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from pydantic import ValidationError

from ci_eval.criteria._share_score import Share
from ci_eval.plugins import points
from ci_eval.plugins.points import Criterion
from ci_eval.records.cases import EvalCase, Json, Status
from ci_eval.records.errors import TrialError
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.validation_messages import described, validated

_PREFIX = "ci/"
_KEPT = 4096
"""Cache size; cases often make the same assertions."""


@points.criterion("ci/assertions")
class Assertions(Share):
    """The share of a case's own assertions that hold.

    The `assertions` of a case are a list of criteria, each with its options (including its
    threshold) or with the value of its main option:

        [{"contains": "refunded"}, {"tool_order": ["find_order", "refund"]},
         {"latency_s": 5}, {"adk/response_match_score": {"threshold": 0.6}}]

    The names are those of criteria; `ci/` may be left out. An assertion holds if the case passes
    its criterion. The value is the share that holds: 1 if all do, 0 if none does. An assertion that
    cannot be measured makes the score an error. An assertion that does not apply to what the agent
    did, such as `tool_errors` without a tool call, is left out; a case without assertions, or with
    none left, is skipped. Criteria that call a model or run your code cannot be assertions.
    """

    reads_assertions = True

    def lacks(self, case: EvalCase) -> str:
        """Return a message if the case has no assertions; empty otherwise."""
        return "" if case.assertions else "has no assertions"

    def faults(self, case: EvalCase) -> Iterator[str]:
        """Yield the errors in each assertion."""
        for position, given in enumerate(case.assertions, 1):
            assertion = _read(given)
            for message in assertion.problems or filter(None, [_skip_reason(assertion, case)]):
                yield f"assertion {position} ({assertion.name!r}): {message}"

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Check every assertion."""
        found = [(each, self._checked(each, case, trace)) for each in map(_read, case.assertions)]
        errors = [
            f"{each.name}: {score.reason}" for each, score in found if score.status == "error"
        ]
        if errors:
            return self.unscored(Status.ERROR, "; ".join(errors))
        counted = [(each, score) for each, score in found if score.status != "skipped"]
        if not counted:
            reasons = dict.fromkeys(score.reason for _, score in found)
            return self.scored(None, reason="; ".join(reasons) or self.lacks(case))
        failed = [(each, score) for each, score in counted if score.status == "failed"]
        holding = len(counted) - len(failed)
        return self.scored(
            holding / len(counted),
            reason=f"{holding} of {len(counted)} assertions hold",
            evidence=_evidence(failed),
        )

    def _checked(self, assertion: "_Assertion", case: EvalCase, trace: Trace) -> Score:
        """Return the score of one assertion; an invalid one is an error."""
        criterion = assertion.criterion
        wrong = "; ".join(assertion.problems) or _skip_reason(assertion, case)
        if criterion is None or wrong:
            return self.unscored(Status.ERROR, wrong)
        if unreported := criterion.not_observed(trace.invocations):
            return criterion.unscored(Status.ERROR, unreported)
        try:
            return criterion.score(case, trace)
        except TrialError as exc:
            return criterion.unscored(Status.ERROR, str(exc))


class _Assertion(NamedTuple):
    """One assertion of a case."""

    name: str
    options: Json
    criterion: Criterion | None
    """The criterion to check; `None` if there are problems."""
    problems: tuple[str, ...] = ()


def _read(given: Mapping[str, Json]) -> _Assertion:
    """Parse an assertion of a case."""
    return _built(json.dumps(given, sort_keys=True))


@lru_cache(maxsize=_KEPT)
def _built(text: str) -> _Assertion:
    given = json.loads(text)
    name = next(iter(given), "")
    if len(given) != 1:
        return _Assertion(name, given, None, ("expected one criterion with its options",))
    options = given[name]
    model = _model(name)
    if isinstance(model, str):
        return _Assertion(name, options, None, (model,))
    try:
        criterion = validated(model, _spelled_out(model, options))
    except ValidationError as exc:
        return _Assertion(name, options, None, tuple(described(exc, model)))
    if criterion.informational:
        return _Assertion(name, options, None, ("asserts nothing without a threshold",))
    if not criterion.enabled:
        return _Assertion(name, options, None, ("is disabled, so it asserts nothing",))
    return _Assertion(name, options, criterion)


def _model(name: str) -> type[Criterion] | str:
    """Return the criterion named `name`, or why it cannot be an assertion."""
    qualified = name if "/" in name else _PREFIX + name
    if qualified not in points.criterion:
        known = [each.removeprefix(_PREFIX) for each in points.criterion]
        return f"unknown criterion{did_you_mean(name.removeprefix(_PREFIX), known)}"
    model = points.criterion[qualified]
    if model.reads_assertions:
        return "an assertion cannot contain other assertions"
    if model.judged:
        return "calls a model, so it cannot be an assertion; use it under `criteria`"
    if not issubclass(model, Criterion):
        return "runs your code, so it cannot be an assertion; use it under `criteria`"
    return model


def _spelled_out(model: type[Criterion], options: Json) -> Json:
    if options is None or isinstance(options, dict):
        return options or {}
    return {model.shorthand: options}


def _skip_reason(assertion: _Assertion, case: EvalCase) -> str:
    """Return why the case cannot be scored by its own assertion; empty if it can."""
    skip_reason = assertion.criterion.skip_reason(case) if assertion.criterion else ""
    return f"the case {skip_reason}" if skip_reason else ""


def _evidence(failed: Sequence[tuple[_Assertion, Score]]) -> dict[str, Json]:
    """Return the failed assertions, with the evidence of each."""
    if len(failed) == 1:
        [(assertion, score)] = failed
        return {"failed_assertion": _shown(assertion), **_compared(score)}
    return {
        f"failed_assertion_{position}": {"assertion": _shown(assertion), **_compared(score)}
        for position, (assertion, score) in enumerate(failed, 1)
    }


def _shown(assertion: _Assertion) -> str:
    options = assertion.options
    is_text = isinstance(options, str)
    return f"{assertion.name}: {options if is_text else json.dumps(options, ensure_ascii=False)}"


def _compared(score: Score) -> dict[str, Json]:
    parts = (part.evidence for part in score.invocations if part.status == "failed")
    evidence = score.evidence or next(filter(None, parts), None) or {}
    # A value of 0 adds nothing to the failure.
    return {"value": score.value, **evidence} if score.value else dict(evidence)
