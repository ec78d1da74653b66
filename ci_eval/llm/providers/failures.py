"""What goes wrong when a model is asked, and whether to ask again helps."""

from dataclasses import dataclass, field

from pydantic import ValidationError

from ci_eval.records.errors import JudgeError
from ci_eval.text.sanitize import one_line

MAX_SAID = 300
"""How many characters of a provider's own words are shown."""
MIN_SECRET = 8
"""Shorter keys are placeholders, and would be found in every other word."""
_PASSING = frozenset({408, 409, 425})
"""Codes below 500 that say: later. 429 says so, too, and more."""


@dataclass(frozen=True)
class Failures:
    """Makes errors of what goes wrong with one model; no message holds the key."""

    model: str
    credentials: str
    """Where the key came from, as a sentence."""
    key: str = field(default="", repr=False)
    named_by: str = "'model' of the judge"
    """Where the model is named."""

    def refused(
        self,
        status: int,
        said: str,
        *,
        kind: str = "",
        after_s: float | None = None,
        spent: bool = False,
    ) -> JudgeError:
        """Return the error for a response with the code `status`.

        `kind` is the provider's own word for it. `spent` says that the quota is not one that
        is there again in a minute.
        """
        throttled = (status == 429 or kind == "RESOURCE_EXHAUSTED") and not spent
        # A success that holds nothing is no better than a failure of the server.
        passing = status in _PASSING or status >= 500 or status < 300
        hint = ""
        if spent:
            hint = "this quota is not there again soon, so it is not asked again"
        elif status in (401, 403) or kind == "API_KEY_INVALID":
            hint = self.credentials
        elif status == 404:
            hint = f"name another model with {self.named_by}"
        told = self._words(": ".join(filter(None, (f"{status} {kind}".strip(), said))))
        message = f"{self.model!r} gave no answer: {told}"
        return JudgeError(
            f"{message}; {hint}" if hint else message,
            passing=passing,
            throttled=throttled,
            after_s=None if spent else after_s,
            hopeless=spent or status in (401, 403, 404) or kind == "API_KEY_INVALID",
        )

    def unreached(self, exc: BaseException) -> JudgeError:
        """Return the error for a connection that failed."""
        # What aiohttp says beside the system's own words shows where an object lies in memory.
        said = self._words(getattr(exc, "strerror", None) or str(exc))
        why = f"{type(exc).__name__}: {said}" if said else type(exc).__name__
        return JudgeError(f"{self.model!r} could not be reached: {why}", passing=True)

    def unreadable(self, exc: ValueError, body: str = "") -> JudgeError:
        """Return the error for a body that is none of the provider's; `exc` says so as a verb."""
        what = "is of another shape" if isinstance(exc, ValidationError) else str(exc)
        told = self._words(f"it {what}: {body}" if body else f"it {what}")
        return JudgeError(
            f"{self.model!r} gave no answer, but something else: {told}", passing=True
        )

    def unasked(self, why: object) -> JudgeError:
        """Return the error for a call that was never made, and will not be."""
        message = f"{self.model!r} cannot be asked: {self._words(str(why))}"
        return JudgeError(message, hopeless=True)

    def _words(self, text: str) -> str:
        if len(self.key) >= MIN_SECRET:
            text = text.replace(self.key, "[key]")
        return one_line(text, MAX_SAID)
