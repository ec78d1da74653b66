"""Calls of the model that simulates a user, and the handling of unreadable answers."""

from collections.abc import Callable
from typing import TypeVar

from ci_eval.llm.model_answers import ask_once
from ci_eval.plugins.points import Panel
from ci_eval.records.errors import TrialError
from ci_eval.records.questions import Question

T = TypeVar("T")


async def answered(panel: Panel, question: Question, read: Callable[[str], T], *, what: str) -> T:
    """Ask `question` and parse the answer with `read`; `what` names the answer in the error.

    An unreadable answer from the cache is requested again.

    Raises:
        TrialError: there is no readable answer.

    """
    found = await ask_once(panel.judges[0], question, read)
    if found.value is None:
        raise TrialError("simulator", f"the simulated user gave no {what}: {found.reason}")
    return found.value


async def next_message(panel: Panel, question: Question) -> str:
    """Ask `question`, and return the answer: any text is a valid message.

    Raises:
        TrialError: there is no answer.

    """
    return await answered(panel, question, str, what="next message")
