"""A small language for runs: one case a line, one observation a word.

greets   1 1 0.5
refunds  error 1
weather  skip

After `|` comes what another round of repeats showed, after `!` what was drawn to confirm.

greets   1 0 | 0 1
refunds  0 ! 0 0 0
"""

from collections.abc import Iterator

from ci_eval.config.config_schema import GateOptions
from ci_eval.records.cases import Status
from ci_eval.records.results import CriterionFacts, Run, RunMeta, Score, TrialResult
from ci_eval.records.trials import TrialKey
from ci_eval.run_files.score_table import Columns, Past

FACTS = CriterionFacts(criterion="ci/c", threshold=0.5, interval=(0.0, 1.0), fingerprint="f")
"""The criterion `c`: at least one half, of one."""


def once(**options: object) -> GateOptions:
    """Return the options of a gate that draws nothing again, unless they say otherwise."""
    return GateOptions.model_validate({"on_inconclusive": "warn", "rerun_budget": 3, **options})


def results(
    text: str,
    *,
    criterion: str = "c",
    agent: str = "a",
    evalset: str = "e",
    facts: CriterionFacts = FACTS,
) -> Iterator[TrialResult]:
    """Yield the results that `text` describes."""
    for line in text.strip().splitlines():
        case, *words = line.split()
        fingerprint = case.partition("@")[2]
        rounds, confirms = 0, False
        for repeat, word in enumerate(words):
            if word in ("|", "!"):
                rounds, confirms = rounds + (word == "|"), word == "!"
                continue
            key = TrialKey(agent=agent, evalset=evalset, case=case.partition("@")[0], repeat=repeat)
            yield TrialResult(
                key=key,
                status=_status(word, facts),
                scores=(_score(word, criterion, facts),),
                case_fingerprint=fingerprint,
                round=0 if confirms else rounds,
                confirms=confirms,
            )


def _status(word: str, facts: CriterionFacts) -> Status:
    if word in ("error", "skip"):
        return Status.ERROR if word == "error" else Status.SKIPPED
    return Status.PASSED if facts.passes(float(word)) else Status.FAILED


def _score(word: str, criterion: str, facts: CriterionFacts) -> Score:
    return Score(
        criterion=facts.criterion,
        name=criterion,
        status=_status(word, facts),
        value=None if word in ("error", "skip") else float(word),
        threshold=facts.threshold,
        better=facts.better,
        informational=facts.informational,
    )


def meta(run_id: str = "now", facts: CriterionFacts = FACTS, **more: object) -> RunMeta:
    """Return the metadata of a run whose only criterion is `c`."""
    given: dict[str, object] = {
        "run_id": run_id,
        "suite": "suite",
        "created": "2026-01-01T00:00:00+00:00",
        "version": "0",
        "agents": ("a",),
        "criteria": {"c": facts},
    }
    return RunMeta.model_validate(given | more)


def make_run(text: str, run_id: str = "now", facts: CriterionFacts = FACTS) -> Run:
    """Return the run that `text` describes."""
    return Run(meta(run_id, facts), lambda: results(text, facts=facts))


def columns(text: str, facts: CriterionFacts = FACTS) -> Columns:
    """Return the values that `text` describes."""
    return Columns.of(results(text, facts=facts))


def past(*texts: str, facts: CriterionFacts = FACTS) -> list[Past]:
    """Return a baseline of one run for each text, newest first."""
    return [
        Past(meta(f"past{number}", facts), columns(text, facts))
        for number, text in enumerate(texts)
    ]
