"""The conversation as text for the model that simulates a user.

Every message is `author: text`, as in ADK, with a blank line between messages.  Further lines of a
text are indented, so that an agent cannot speak for the user by writing a line `user: …`.
"""

import json
from collections.abc import Iterator, Sequence

from ci_eval.formats.event_lists import AGENT, USER, trajectory_events
from ci_eval.records.cases import Content, FunctionCall, Invocation, Json
from ci_eval.text.sanitize import one_line

_NAME_CHARS = 100


def written(invocations: Sequence[Invocation], *, calls: bool) -> str:
    """Return the conversation without thoughts; with `calls`, also tool calls and results."""
    said = (line for each in invocations for line in _lines(each, calls=calls))
    return "\n\n".join(said)


def _lines(invocation: Invocation, *, calls: bool) -> Iterator[str]:
    yield from _message(USER, invocation.user_content, calls=calls)
    author = _author(invocation)
    for event in trajectory_events(invocation, author):
        yield from _message(event.author, event.content, calls=calls)
    yield from _message(author, invocation.final_response, calls=calls)


def _author(invocation: Invocation) -> str:
    """Return the author of the final response, inferred because the response does not name one."""
    spoke = [event.author for event in invocation.events or () if event.author != USER]
    details = invocation.app_details.agent_details if invocation.app_details else {}
    if not spoke and len(details) == 1:
        return next(iter(details))
    return spoke[-1] if spoke else AGENT


def _message(author: str, content: Content | None, *, calls: bool) -> Iterator[str]:
    for part in (content.parts if content else None) or ():
        if part.text and not part.thought:
            indented = "\n  ".join(part.text.splitlines())
            yield f"{_named(author)}: {indented}"
        elif calls:
            if part.function_call:
                yield _called(author, part.function_call)
            if part.function_response:
                answer = part.function_response
                yield f"The tool {_json(answer.name)} returned {_json(answer.response)}"


def _called(author: str, call: FunctionCall) -> str:
    return f"{_named(author)} called the tool {_json(call.name)} with {_json(call.args or {})}"


def _json(value: Json) -> str:
    """Return `value` as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def _named(author: str) -> str:
    return one_line(author, _NAME_CHARS) or AGENT
