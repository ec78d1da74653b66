"""Errors of calls to models, and whether a retry can help."""

from dataclasses import dataclass, field

from pydantic import ValidationError

from ci_eval.records.errors import JudgeError
from ci_eval.text.sanitize import one_line

MAX_SAID = 300
"""Maximum length of a provider's own message, in characters."""
MIN_SECRET = 8
"""Minimum length of a key that is redacted; shorter ones are placeholders."""
_PASSING = frozenset({408, 409, 425})
"""Transient codes below 500, other than 429."""


@dataclass(frozen=True)
class Failures:
    """Builds the errors for one model; no message contains the key."""

    model: str
    credentials: str
    """Source of the key, as a sentence."""
    key: str = field(default="", repr=False)
    named_by: str = "'model' of the judge"
    """Name of the field that sets the model."""

    def refused(
        self,
        status: int,
        said: str,
        *,
        kind: str = "",
        after_s: float | None = None,
        spent: bool = False,
    ) -> JudgeError:
        """Return the error for a response with the HTTP code `status`.

        `kind` is the provider's own code. `spent` means that the quota does not reset soon.
        """
        throttled = (status == 429 or kind == "RESOURCE_EXHAUSTED") and not spent
        # An empty success counts as a server error.
        passing = status in _PASSING or status >= 500 or status < 300
        hint = ""
        if spent:
            hint = "this quota does not reset soon, so no more calls are made"
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
        # The message of aiohttp itself contains the address of an object in memory.
        said = self._words(getattr(exc, "strerror", None) or str(exc))
        why = f"{type(exc).__name__}: {said}" if said else type(exc).__name__
        return JudgeError(f"{self.model!r} could not be reached: {why}", passing=True)

    def unreadable(self, exc: ValueError, body: str = "") -> JudgeError:
        """Return the error for an unexpected body; `exc` describes it and starts with a verb."""
        what = "is not of the expected form" if isinstance(exc, ValidationError) else str(exc)
        told = self._words(f"it {what}: {body}" if body else f"it {what}")
        return JudgeError(
            f"{self.model!r} returned something other than an answer: {told}", passing=True
        )

    def unasked(self, why: object) -> JudgeError:
        """Return the error for a call that cannot be made."""
        message = f"{self.model!r} cannot be called: {self._words(str(why))}"
        return JudgeError(message, hopeless=True)

    def unauthorised(self, exc: Exception) -> JudgeError:
        """Return the error for missing or rejected credentials of Google Cloud."""
        if getattr(exc, "retryable", False):
            return self.unreached(exc)
        return self.unasked(f"no Google Cloud credentials: {exc}")

    def _words(self, text: str) -> str:
        if len(self.key) >= MIN_SECRET:
            text = text.replace(self.key, "[key]")
        return one_line(text, MAX_SAID)
