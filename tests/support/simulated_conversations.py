"""Conversations of a simulated user, whose model a test speaks for, with an agent that echoes."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from support.scripted_judge import asker, judge

from ci_eval.llm.judge_settings import Simulation
from ci_eval.plugins.points import Simulator
from ci_eval.records.cases import EvalCase, Invocation
from ci_eval.records.errors import TrialError
from ci_eval.records.questions import Question
from ci_eval.records.results import JudgeUsage
from ci_eval.records.trials import Trial, TrialKey
from ci_eval.run.participants import Simulating


class Played(NamedTuple):
    """What a simulated user said."""

    messages: list[str]
    asked: list[Question]
    error: TrialError | None
    usage: JudgeUsage | None


def scenario(start: str = "Hi", plan: str = "Buy.", persona: Any = None, **more: Any) -> EvalCase:
    """Return a case with a scenario; `more` are AgentFlow's `metadata`."""
    said = {"starting_prompt": start, "conversation_plan": plan, "user_persona": persona}
    return EvalCase.model_validate(
        {"eval_id": "c", "conversation_scenario": said, **({"metadata": more} if more else {})}
    )


def echo(message: str) -> Invocation:
    """Return the behavior of an agent that repeats each message."""
    return Invocation.model_validate(
        {
            "user_content": {"role": "user", "parts": [{"text": message}]},
            "final_response": {"role": "model", "parts": [{"text": f"You said: {message}"}]},
        }
    )


def played(
    simulator: Simulator,
    case: EvalCase,
    say: Callable[[Question], Any],
    *,
    agent: Callable[[str], Invocation] = echo,
    repeat: int = 0,
    folder: Path | None = None,
    **options: Any,
) -> Played:
    """Play the user of `case`; with a `folder`, answers are kept there."""
    told = judge(say)

    async def work() -> Played:
        kept = {"mode": "off"} if folder is None else {}
        async with asker(folder or Path(), told, **kept, attempts=1, **options) as found:
            simulating = Simulating(Simulation(simulator), found)
            key = TrialKey(agent="a", evalset="e", case=case.eval_id, repeat=repeat)
            user = simulating(Trial(key, case))
            so_far: list[Invocation] = []
            error = None
            try:
                while (message := await user.next_message(so_far)) is not None:
                    so_far.append(agent(message.text))
            except TrialError as exc:
                error = exc
            said = [each.user for each in so_far]
            return Played(said, told.asked, error, simulating.spent(key))

    return asyncio.run(work())


def saying(*answers: Any) -> Callable[[Question], Any]:
    """Give these answers, one after the other."""
    left = iter(answers)
    return lambda _: next(left)
