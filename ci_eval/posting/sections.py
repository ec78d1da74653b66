"""The body of a comment: what each job says of a suite, one beneath the other."""

from dataclasses import dataclass
from typing import Literal

from ci_eval.reporters.markdown import marker

MORE = "<!-- ci-eval:more -->"
"""A line in the text of a section: what comes after it is left out first where room is short."""


Outcome = Literal["passed", "failed", "incomplete"]


@dataclass(frozen=True)
class Section:
    """What one job says."""

    suite: str
    job: str
    """What the job is called, by which its section is found again; empty where nothing tells."""
    outcome: Outcome
    text: str
    """Markdown, escaped already: the decision, the table, `MORE`, and the rest."""
    commit: str = ""
    """The commit of the change that was evaluated."""
    run: int = 0
    """The number of the workflow run or pipeline, which grows with time."""
    attempt: int = 1
    """Which attempt of that run."""


def compose(section: Section) -> str:
    """Return the body."""
    return f"{marker(section.suite)}\n{section.text}"
