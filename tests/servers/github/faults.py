"""What goes wrong at GitHub, for chosen requests."""

from collections.abc import Callable
from dataclasses import dataclass

from servers.loopback import Reply, Request


def _nothing() -> None:
    pass


@dataclass
class Fault:
    """Something that happens to one request: the `nth` of those that fit."""

    method: str = ""
    """`GET`, `POST` and so on; empty for any."""
    part: str = ""
    """What the path contains, or the text of a query of GraphQL; empty for any."""
    nth: int = 1
    """Which of those that fit, from now on."""
    reply: Reply | None = None
    """What is answered instead, such as a refusal or `DROPPED`."""
    is_made: bool = False
    """Whether what was asked for is done all the same, before `reply` is answered."""
    before: Callable[[], None] = _nothing
    """Called before it is done, such as another writer that is quicker."""
    after: Callable[[], None] = _nothing
    """Called when it is done, and before it is answered."""
    delay_s: float = 0.0
    """How long the answer takes."""
    times: int = 1
    """How many requests it happens to, from the `nth` on."""

    def happens_to(self, request: Request) -> bool:
        """Return True if it is the turn of `request`, having counted it."""
        text = request.path
        if isinstance(request.body, dict) and isinstance(request.body.get("query"), str):
            text += request.body["query"]
        if self.times < 1 or self.method not in ("", request.method) or self.part not in text:
            return False
        self.nth -= 1
        if self.nth > 0:
            return False
        self.times -= 1
        return True
