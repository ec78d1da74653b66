"""`junit.xml`: every trial as a test case, for tools that show test results.

There is no single schema.  The `strict` profile is valid for both the schema of Jenkins (junit-10)
and that of Apache Ant (by Windy Road); GitLab, Azure DevOps, CircleCI, Buildkite and the test
reporters for GitHub read both profiles.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import groupby, starmap
from typing import TYPE_CHECKING, Literal

from ci_eval.plugins.points import Reporter, reporter
from ci_eval.records.cases import Status
from ci_eval.records.comparisons import Comparison, Delta
from ci_eval.records.findings import Report
from ci_eval.records.results import CriterionFacts, Run, Score, TrialResult
from ci_eval.records.trials import TrialKey
from ci_eval.reporters._case_changes import page_of_case
from ci_eval.reporters._evidence import exhibits_of, wrapped
from ci_eval.reporters._trial_outcomes import MAX_PATH, Outcome, Outcomes
from ci_eval.run_files import report_phrases
from ci_eval.run_files.times import moment
from ci_eval.text.sanitize import clean
from ci_eval.text.templates import exact, score, terminal, xml

if TYPE_CHECKING:
    from ci_eval.records.compared_trials import AnyTrial

MAX_BODY_LINES = 200
"""Maximum number of lines in the body of a test case."""
MAX_BODIES = 16 * 1024 * 1024
"""Maximum characters of all bodies together; GitLab reads files of less than 30 MB."""
MANY = 20_000
"""Maximum number of test cases with properties; if there are more, none has properties."""

_END = "    <system-out/>\n    <system-err/>\n  </testsuite>\n"
_MAX_NAME = 400
_MAX_MESSAGE = 1_000
_MAX_OUTPUT = 20_000


@dataclass
class _Suite:
    """One evalset with one agent."""

    agent: str
    evalset: str
    number: int
    tests: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """The number of trials by kind of outcome."""
    blocks: bool = False
    """Whether a trial failed or was not measured, and is not exempt."""
    time_s: float = 0.0
    struck: dict[tuple[str, str], tuple[TrialKey, int]] = field(default_factory=dict)
    """The first trial and the number of trials affected by each shared cause of errors."""

    def add(self, result: "AnyTrial", outcome: Outcome | None) -> None:
        self.tests += 1
        self.time_s += result.duration_s
        self.kinds.update([outcome.kind] if outcome else [])
        self.blocks |= bool(outcome and outcome.kind != "skipped" and outcome.blocks)
        cause = result.error.cause if result.error else None
        if cause:
            key = TrialKey(**result.key.place._asdict(), repeat=result.key.repeat)
            first, count = self.struck.get(cause, (key, 0))
            self.struck[cause] = first, count + 1


@reporter("junit")
class JUnit(Reporter):
    """Every trial as a test case, for tools that show test results.

    A trial that regressed is a failure of type `ci_eval.Regression`. Any other trial below a
    threshold is a failure of type `ci_eval.BelowThreshold`, whose message marks it as a possible
    regression if it always passed before. It passes if only criteria that cannot block failed. A
    trial that could not be measured is an error.
    If a run does not pass although no trial says so, such as when cases are gone, one more test
    case fails with the reasons. `system-out` holds the agent's output in a trial that did not pass.
    """

    file = "junit.xml"

    profile: Literal["default", "strict"] = "default"
    """`strict` leaves out what the schemas do not allow in a test case: file, line, properties and
    the agent's output."""

    def render(self, report: Report, results: Callable[[], Iterator[TrialResult]]) -> Iterator[str]:
        """Yield the document.

        Reads the results twice; if those of different suites alternate, once more per suite.
        """
        return self._rendered(report, results, results())

    def of_run(self, report: Report, run: Run, before: Run | None = None) -> Iterator[str]:
        """Yield the document of a run; the first time, its results are read without evidence."""
        del before
        return self._rendered(report, run.results, run.compared_trials())

    def _rendered(
        self,
        report: Report,
        results: Callable[[], Iterator[TrialResult]],
        to_count: "Iterator[AnyTrial]",
    ) -> Iterator[str]:
        outcomes = Outcomes(report)
        suites, in_order = _counted(to_count, outcomes)
        tests = sum(suite.tests for suite in suites.values())
        document = _Document(report, outcomes, self.profile == "default", tests, MAX_BODIES)
        yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n'
        for suite, its_results in _by_suite(results, suites, in_order=in_order):
            yield document.head(suite)
            for result in its_results:
                yield document.case(result, suite)
            yield _END
        if report.verdict.outcome != "passed" and not any(each.blocks for each in suites.values()):
            yield document.verdict(len(suites))
        yield "</testsuites>\n"


def _suite_of(result: "AnyTrial") -> tuple[str, str]:
    return result.key.agent, result.key.evalset


def _counted(
    results: "Iterable[AnyTrial]", outcomes: Outcomes
) -> tuple[dict[tuple[str, str], _Suite], bool]:
    """Return the suites, and whether the results of each are consecutive."""
    suites: dict[tuple[str, str], _Suite] = {}
    in_order = True
    for key, group in groupby(results, _suite_of):
        in_order &= key not in suites
        suite = suites.setdefault(key, _Suite(*key, number=len(suites)))
        for result in group:
            suite.add(result, outcomes.of(result))
    return suites, in_order


def _by_suite(
    results: Callable[[], Iterator[TrialResult]],
    suites: Mapping[tuple[str, str], _Suite],
    *,
    in_order: bool,
) -> Iterator[tuple[_Suite, Iterator[TrialResult]]]:
    if in_order:
        for key, group in groupby(results(), _suite_of):
            yield suites[key], group
    else:
        # Results of different suites alternate, and are too many to hold in memory.
        for key, suite in suites.items():
            yield suite, (result for result in results() if _suite_of(result) == key)


@dataclass
class _Document:
    """Writes the elements of one document."""

    report: Report
    outcomes: Outcomes
    is_extended: bool
    """Whether test cases have a file, a line, properties and the agent's output."""
    tests: int
    room: int
    """Characters left for the bodies of test cases."""
    classes: dict[tuple[str, str], str] = field(default_factory=dict)
    """The name of each suite."""

    def head(self, suite: _Suite) -> str:
        meta = self.report.meta
        started = moment(meta.created)
        attributes = {
            "name": self._class(suite.agent, suite.evalset),
            "package": terminal(meta.suite, _MAX_NAME) or "ci-eval",
            "id": str(suite.number),
            "timestamp": f"{started:%Y-%m-%dT%H:%M:%S}" if started else "1970-01-01T00:00:00",
            "hostname": "localhost",
            "tests": str(suite.tests),
            "failures": str(suite.kinds["failure"]),
            "errors": str(suite.kinds["error"]),
            "skipped": str(suite.kinds["skipped"]),
            "time": f"{suite.time_s:.3f}",
        }
        properties = _properties(self._suite_properties(suite), indent="    ")
        return f"  <testsuite{_attributes(attributes)}>\n{properties}"

    def _class(self, agent: str, evalset: str) -> str:
        if (agent, evalset) not in self.classes:
            # One by one: the end of a name and the next dot may look like a terminal sequence.
            names = (clean(each) for each in (self.report.meta.suite, agent, evalset))
            self.classes[agent, evalset] = terminal(".".join(names), _MAX_NAME)
        return self.classes[agent, evalset]

    def _suite_properties(self, suite: _Suite) -> Iterator[tuple[str, str]]:
        meta, verdict = self.report.meta, self.report.verdict
        yield "verdict", verdict.outcome
        yield "gate.mode", verdict.mode
        for number, reason in enumerate(verdict.reasons[:10], start=1):
            yield f"reason.{number}", f"{reason.severity}: {reason.message}"
        yield "run_id", meta.run_id
        yield "commit", meta.commit or ""
        yield "report", meta.page_url
        yield "ci_eval", meta.version
        for summary in self.report.groups:
            group = summary.group
            if (group.agent, group.evalset) == (suite.agent, suite.evalset):
                yield f"mean.{group.criterion}", _number(summary.value)
                yield f"threshold.{group.criterion}", _number(summary.threshold)
        if comparison := self.report.comparison:
            yield from _comparison_properties(comparison)
            for delta in comparison.deltas:
                if (delta.group.agent, delta.group.evalset) == (suite.agent, suite.evalset):
                    yield from _delta_properties(delta, meta.criteria.get(delta.group.criterion))

    def case(self, result: TrialResult, suite: _Suite) -> str:
        outcome = self.outcomes.of(result)
        attributes = {
            "classname": self._class(result.key.agent, result.key.evalset),
            "name": _name(result.key, self.report.meta.repeats),
            "time": f"{max(result.duration_s, 0):.3f}",
        }
        if self.is_extended:
            evalset = self.report.meta.evalsets.get(result.key.evalset)
            if evalset and len(evalset.path) <= MAX_PATH:
                attributes["file"] = evalset.path
            attributes |= {"line": str(result.line)} if result.line else {}
        inside = ""
        if self.is_extended and self.tests <= MANY:
            inside = _properties(_case_properties(result), indent="      ")
        if outcome:
            inside += self._outcome(outcome, result, suite)
        if result.output and self.is_extended:
            inside += f"      <system-out>{self._body(_output(result))}</system-out>\n"
        if not inside:
            return f"    <testcase{_attributes(attributes)}/>\n"
        return f"    <testcase{_attributes(attributes)}>\n{inside}    </testcase>\n"

    def verdict(self, number: int) -> str:
        """Return a suite whose only test case fails for the reasons of the verdict."""
        kind = "failure" if self.report.verdict.outcome == "failed" else "error"
        suite = _Suite("gate", "verdict", number, tests=1, kinds=Counter([kind]))
        reasons = [
            each.message
            for each in self.report.verdict.reasons
            if each.severity in ("blocks", "incomplete")
        ]
        of_case = {"classname": self._class("gate", "verdict"), "name": "verdict", "time": "0.000"}
        message = terminal("; ".join(reasons), _MAX_MESSAGE)
        details = {"message": message, "type": "ci_eval.Verdict"}
        body = self._body("\n".join(line for each in reasons for line in wrapped(each)))
        return (
            f"{self.head(suite)}    <testcase{_attributes(of_case)}>\n"
            f"      <{kind}{_attributes(details)}>{body}</{kind}>\n    </testcase>\n{_END}"
        )

    def _outcome(self, outcome: Outcome, result: TrialResult, suite: _Suite) -> str:
        message, lines = outcome.message, _body(result, self.outcomes)
        cause = result.error.cause if result.error else None
        first, count = suite.struck[cause] if cause else (result.key, 1)
        if result.key != first:
            message = f"same error as {_name(first, self.report.meta.repeats)}"
            lines = [message]
        elif count > 1:
            lines.append(f"{count} trials of this suite have this error.")
        if address := page_of_case(self.report.meta, result.key.place):
            lines.append(f"Report: {address}")
        attributes = {"message": terminal(message, _MAX_MESSAGE)}
        if outcome.kind == "skipped":
            return f"      <skipped{_attributes(attributes)}/>\n"
        attributes["type"] = terminal(outcome.type, _MAX_NAME)
        body = self._body("\n".join(lines))
        return f"      <{outcome.kind}{_attributes(attributes)}>{body}</{outcome.kind}>\n"

    def _body(self, text: str) -> str:
        """Return `text` as the content of an element, or a reference if the document is full."""
        body = xml(text)
        if len(body) > self.room:
            body = "See run.json for the evidence."
        self.room -= len(body)
        return body


def _comparison_properties(comparison: Comparison) -> Iterator[tuple[str, str]]:
    yield "baseline.run", next(iter(comparison.baseline_runs), "")
    yield "baseline.runs", str(len(comparison.baseline_runs))
    yield "baseline.commit", comparison.baseline_commit or ""
    steps = comparison.baseline_distance
    yield "baseline.distance", "" if steps is None else str(steps)
    yield "rounds", str(comparison.rounds or "")
    yield "confirming", str(comparison.confirming or "")
    if comparison.together:
        yield "together", report_phrases.together(comparison.together)
    for number, text in enumerate(comparison.loosened[:10], start=1):
        yield f"loosened.{number}", text


def _delta_properties(delta: Delta, facts: CriterionFacts | None) -> Iterator[tuple[str, str]]:
    name = delta.group.criterion
    yield f"tier.{name}", "" if delta.tier == "block" else delta.tier
    yield f"baseline.{name}", _number(report_phrases.stored_mean(delta))
    yield f"change.{name}", delta.outcome
    yield f"effect.{name}", _number(delta.effect)
    interval = report_phrases.interval(delta, facts.interval if facts else None)
    yield f"interval.{name}", " to ".join(map(_number, interval or ()))
    yield f"p_value.{name}", _number(delta.p_value)
    yield f"level.{name}", _number(delta.level)


def _body(result: TrialResult, outcomes: Outcomes) -> list[str]:
    """Return the details of a trial that did not pass."""
    if result.error:
        return wrapped(f"{result.error.kind}: {result.error.message}")
    lines = [report_phrases.cut_off(result.cut_off)] if result.cut_off else []
    for each in result.scores:
        baseline = outcomes.baseline(result, each.name)
        if each.status in (Status.FAILED, Status.ERROR) or baseline is not None:
            lines.append(_score_line(each, baseline))
            lines += [f"  {line}" for line in wrapped(each.reason)]
            for exhibit in exhibits_of(each, max_lines=40):
                legend = " (- expected, + actual)" if exhibit.kind == "diff" else ""
                lines.append(f"  {exhibit.title}{legend}:")
                lines += [f"    {line}" for line in exhibit.lines]
    if len(lines) > MAX_BODY_LINES:
        return [*lines[:MAX_BODY_LINES], "... more in run.json"]
    return lines


def _output(result: TrialResult) -> str:
    """Return the agent's output, cleaned for a log."""
    return clean(result.output[:_MAX_OUTPUT]).strip("\n")


def _score_line(each: Score, baseline: float | None) -> str:
    shown = each.status if each.value is None else score(each.value, each.threshold)
    parts = [f"{terminal(each.name, _MAX_NAME)}: {shown}"]
    if each.threshold is not None:
        sign = ">=" if each.better == "higher" else "<="
        parts.append(f"threshold {sign} {exact(each.threshold)}")
    if baseline is not None:
        parts.append(f"baseline {score(baseline)}")
    return ", ".join(parts)


def _case_properties(result: TrialResult) -> Iterator[tuple[str, str]]:
    for each in result.scores:
        yield f"score.{each.name}", _number(each.value)
    yield "attempts", str(result.attempts) if result.attempts > 1 else ""
    yield "cut_off", report_phrases.cut_off(result.cut_off)
    yield "round", str(result.round or "")
    yield "confirms", "true" if result.confirms else ""


def _name(key: TrialKey, repeats: int) -> str:
    """Return the name of a test case: the case and the number of the repeat, from 1.

    GitLab keeps only the first of several test cases with the same name, so a name that had to be
    escaped gets a digest of the original.
    """
    name = terminal(key.case, _MAX_NAME)
    if name != key.case or not name:
        name += f" #{sha256(key.case.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    # Reruns add repeats beyond the configured number.
    return f"{name} [repeat {key.repeat + 1}]" if repeats > 1 or key.repeat else name


def _properties(properties: Iterable[tuple[str, str]], indent: str) -> str:
    """Return the element with all properties that have a value."""
    lines = [f"{indent}  {_property(name, value)}\n" for name, value in properties if value]
    return f"{indent}<properties>\n{''.join(lines)}{indent}</properties>\n" if lines else ""


@lru_cache(maxsize=512)
def _property(name: str, value: str) -> str:
    """Return a property; cached, because thousands of trials have equal ones."""
    return f"<property{_attributes({'name': terminal(name), 'value': terminal(value)})}/>"


def _attributes(attributes: Mapping[str, str]) -> str:
    return "".join(starmap(_attribute, attributes.items()))


@lru_cache(maxsize=512)
def _attribute(name: str, value: str) -> str:
    return f' {name}="{xml(value)}"'


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
