"""Estimate of model calls and their cost, before a run.

Every criterion scores the expected invocations of its cases with judges that never answer: they
only count.  If a criterion stops as soon as its samples decide, there is a minimum and a maximum.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from ci_eval.llm.judge_settings import Judging, Simulation, price
from ci_eval.llm.model_calls import CHARS_PER_TOKEN, USUAL_OUTPUT_TOKENS
from ci_eval.llm.prompts import Prompts
from ci_eval.plugins.points import Judge, JudgedCriterion
from ci_eval.records.cases import Content, EvalCase, IntermediateData, Invocation, Json, Record
from ci_eval.records.errors import TrialError, UsageError
from ci_eval.records.questions import Question, Reading, Wording
from ci_eval.records.trials import Trace, TrialKey
from ci_eval.run.participants import MAX_INVOCATIONS
from ci_eval.run.plan import Plan

T = TypeVar("T")

MAX_CASES = 200
"""Cases per evalset whose questions are counted; the rest are extrapolated."""
SCENARIO_TURNS = 5
"""Assumed number of messages of a simulated user."""
_SOME_ANSWER = Content.of_text("…", role="model")


class Estimate(Record):
    """Model calls of one criterion or of simulated users, as (minimum, maximum)."""

    criterion: str
    """Its name in the configuration; `simulator` for simulated users."""
    models: tuple[str, ...]
    samples: int
    calls: tuple[int, int]
    input_tokens: tuple[int, int]
    cost_usd: tuple[float, float] | None
    """`None` if the price of a model is unknown."""


def estimate(plan: Plan) -> list[Estimate]:
    """Estimate the calls of each judged criterion of `plan`, ignoring the cassette."""
    estimates = [_of_one(plan, name, criterion) for name, criterion in plan.judged.items()]
    if plan.simulation:
        estimates.append(_of_users(plan, plan.simulation))
    return estimates


@dataclass
class _Count:
    """Questions, and their cost."""

    calls: float = 0.0
    tokens: float = 0.0
    cost_usd: float = 0.0
    unpriced: bool = False

    def add(self, judge: Judge, judging: Judging, question: Question, times: float) -> None:
        known = price(judge, judging.options.prices)
        chars = len(question.instructions) + len(question.prompt)
        tokens = chars // CHARS_PER_TOKEN + 1
        self.calls += times
        self.tokens += times * tokens
        self.unpriced |= known is None
        self.cost_usd += times * (known.of(tokens, USUAL_OUTPUT_TOKENS) if known else 0.0)


def _of_one(plan: Plan, name: str, criterion: JudgedCriterion) -> Estimate:
    judging = plan.config.judging
    least, most = _Count(), _Count()
    for (_, evalset), chosen in plan.pairs.items():
        if name not in chosen:
            continue
        known = plan.evalsets[evalset]
        cases = list(islice(known.cases(), MAX_CASES))
        times = plan.repeats * known.count / len(cases) * criterion.steps
        for case in cases:
            for count, silent in ((least, True), (most, False)):
                for judge, question in _asked(criterion, case, judging, silent=silent):
                    count.add(judge, judging, question, times)
    return _between(name, judging.judges(criterion), judging.samples(criterion), least, most)


def _of_users(plan: Plan, simulation: Simulation) -> Estimate:
    """Return the questions of simulated users: for one message each, and for the maximum."""
    judging = plan.config.judging
    judge = judging.player(simulation)
    least, most = _Count(), _Count()
    for pair in plan.pairs:
        scenarios = plan.scenarios(pair)
        cases = (case for case in plan.evalsets[pair[1]].cases() if case.conversation_scenario)
        counted = list(islice(cases, MAX_CASES)) if scenarios else []
        for case in counted:
            times = plan.repeats * scenarios / len(counted)
            first, last = _messages(simulation, case, judge)
            later = (simulation.simulator.limit(case) or MAX_INVOCATIONS) - 1
            for question in first if later > 0 else ():
                least.add(judge, judging, question, times)
            # Each message makes the prompt longer, by about the same amount.
            for question in (*first, *last):
                often = later * simulation.simulator.steps / len((*first, *last))
                most.add(judge, judging, question, times * often)
    return _between("simulator", [judge], 1, least, most)


def _between(
    name: str, judges: Iterable[Judge], samples: int, least: _Count, most: _Count
) -> Estimate:
    return Estimate(
        criterion=name,
        models=tuple(str(judge.model) for judge in judges),
        samples=samples,
        calls=(round(least.calls), round(most.calls)),
        input_tokens=(round(least.tokens), round(most.tokens)),
        cost_usd=None if most.unpriced else (least.cost_usd, most.cost_usd),
    )


def _messages(
    simulation: Simulation, case: EvalCase, judge: Judge
) -> tuple[list[Question], list[Question]]:
    """Return the questions for the second and for the last message of a user."""
    simulator = simulation.simulator
    limit = simulator.limit(case)
    said = Content.of_text("x" * CHARS_PER_TOKEN * USUAL_OUTPUT_TOKENS, role="user")
    turn = Invocation(user_content=said, final_response=said)
    found = []
    for invocations in (1, (MAX_INVOCATIONS if limit is None else limit) - 1):
        panel = _Panel(f"simulator/{simulator.type_name}", Prompts(kind="simulator"))
        panel.seat(judge, 1, silent=True)
        # The panel never answers; other errors are reported by the run.
        with suppress(TrialError, UsageError):
            if invocations > 0:
                asyncio.run(simulator.next_message(case, [turn] * invocations, panel))
        found.append([question for _, question in panel.asked])
    return found[0], found[1]


def _asked(
    criterion: JudgedCriterion, case: EvalCase, judging: Judging, *, silent: bool
) -> list[tuple[Judge, Question]]:
    """Return the questions that `criterion` asks about `case`.

    A `silent` judge could have said anything, so no more samples are worth drawing; a judge that
    answers nonsense never decides, so all samples are drawn.
    """
    if criterion.skip_reason(case):
        return []
    panel = _Panel(criterion.type_name, judging.prompts)
    for judge in judging.judges(criterion):
        panel.seat(judge, judging.samples(criterion), silent=silent)
    key = TrialKey(agent="", evalset="", case=case.eval_id)
    trace = Trace(key=key, invocations=tuple(_expected(case)))
    # Errors in the case are reported when it is scored.
    with suppress(UsageError, ValueError, ArithmeticError):
        asyncio.run(criterion.score(case, trace, panel))
    return panel.asked


def _expected(case: EvalCase) -> Iterator[Invocation]:
    """Yield the expected invocations; a missing response is replaced by a placeholder to judge."""
    turns: Sequence[Invocation] = case.conversation or ()
    if case.conversation_scenario:
        said = Content.of_text(case.conversation_scenario.starting_prompt, role="user")
        turns = [Invocation(user_content=said)] * SCENARIO_TURNS
    for turn in turns:
        final = turn.final_response if turn.response else _SOME_ANSWER
        data = turn.intermediate_data or IntermediateData()
        yield turn.model_copy(update={"final_response": final, "intermediate_data": data})


class _Panel:
    """A panel of judges that only count questions."""

    def __init__(self, about: str, prompts: Prompts) -> None:
        self._about = about
        self._prompts = prompts
        self.asked: list[tuple[Judge, Question]] = []
        self.judges: list[_Seat] = []

    def seat(self, judge: Judge, samples: int, *, silent: bool) -> None:
        """Add a judge."""
        self.judges.append(_Seat(self.asked, judge, samples, silent=silent))

    def question(
        self,
        prompt: str,
        schema: Mapping[str, Json],
        *,
        wording: Wording | None = None,
        **data: Json,
    ) -> Question:
        """Return the question about `data`, worded by the file `prompt` or by `wording`."""
        return self._prompts.question(self._about, prompt, schema, data, wording)

    def note_agreement(self, share: float) -> None:
        """Do nothing: nothing is judged."""


class _Seat:
    def __init__(
        self, asked: list[tuple[Judge, Question]], judge: Judge, samples: int, *, silent: bool
    ) -> None:
        self._asked = asked
        self._judge = judge
        self._silent = silent
        self.samples = samples
        self.name = str(judge.model)

    async def ask(
        self, question: Question, read: Callable[[str], T], *, fresh: bool = False
    ) -> Reading[T]:
        """Count the question."""
        del read, fresh
        self._asked.append((self._judge, question))
        return Reading(None, "nobody was asked", failed=self._silent)
