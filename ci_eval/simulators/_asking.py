"""How whoever plays a user is asked, and what becomes of an answer that is none."""

from collections.abc import Callable
from typing import TypeVar

from ci_eval.plugins.points import Panel
from ci_eval.records.errors import TrialError
from ci_eval.records.questions import Question

T = TypeVar("T")


async def answered(panel: Panel, question: Question, read: Callable[[str], T], *, what: str) -> T:
    """Return what `read` makes of the answer to `question`, which says `what`.

    An answer that was kept and cannot be read is asked for anew.

    Raises:
        TrialError: there is none that can be read.

    """
    seat = panel.judges[0]
    found = await seat.ask(question, read)
    if found.value is None and found.cached:
        found = await seat.ask(question, read, fresh=True)
    if found.value is None:
        raise TrialError("simulator", f"the simulated user did not say {what}: {found.reason}")
    return found.value


def as_it_is(text: str) -> str:
    """Return a message, which is whatever was answered."""
    return text
