"""The problems of one file, collected while it is read."""

from ci_eval.records.errors import Problem, Severity, UsageError

MAX_PROBLEMS = 100
"""Reading stops after this many errors."""


class FileProblems:
    """The problems of one file, with at most `MAX_PROBLEMS` errors."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self.found: list[Problem] = []
        self.errors = 0
        """The number of errors, without warnings."""

    def add(
        self, message: str, line: int, where: str = "", *, severity: Severity = "error"
    ) -> None:
        """Add a problem.

        Raises:
            UsageError: the limit is reached; lists all problems so far.

        """
        self.found.append(Problem(message, self._shown, line, where, severity))
        self.errors += severity == "error"
        if self.errors >= MAX_PROBLEMS:
            raise UsageError(problems=self.found)

    def raise_errors(self) -> None:
        """Raise all problems if any of them is an error.

        Raises:
            UsageError: with every problem.

        """
        if self.errors:
            raise UsageError(problems=self.found)
