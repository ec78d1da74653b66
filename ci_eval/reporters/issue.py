"""`issue.md`, the text of an issue about a scheduled run that did not pass."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ci_eval.plugins.points import reporter
from ci_eval.reporters.markdown import Markdown

Event = Literal["schedule", "workflow_dispatch"]
Name = Annotated[str, Field(min_length=1, max_length=255)]


@reporter("issue")
class Issue(Markdown):
    """An issue about a scheduled run, with the text of the comment.

    In GitHub Actions and GitLab CI, a run of one of the `events` whose verdict is not `passed`
    opens an issue, or updates the open one; each suite has one. When a later run of these events
    passes, it says so in the issue and closes it. Other events, such as pull requests, leave issues
    unchanged.

    Do not store these runs in the baseline (`baseline-save: false`): otherwise the next run is
    compared with a run that has the drop, passes, and closes the issue.

    On GitHub the token needs `issues: write`; on GitLab, the scope `api` and the role Reporter.
    If it lacks them, there is a warning, and the verdict stays the same.
    """

    file = "issue.md"
    optional: ClassVar[bool] = True

    events: tuple[Event, ...] = Field(default=("schedule",), min_length=1)
    """The events of GitHub Actions whose runs are reported: `schedule`, `workflow_dispatch`. In
    GitLab these are scheduled pipelines and pipelines started from its web page."""
    labels: tuple[Name, ...] = Field(default=(), max_length=20)
    """Labels of a new issue."""
    assignees: tuple[Name, ...] = Field(default=(), max_length=10)
    """User names of the people to whom a new issue is assigned. They must have access to the
    repository."""
