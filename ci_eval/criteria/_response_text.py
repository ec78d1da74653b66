"""Text of responses, as ci-eval's own criteria read it."""

from ci_eval.records.cases import Invocation


def said(invocation: Invocation) -> str:
    """Return the text of the final response, without thoughts; empty if there is none."""
    content = invocation.final_response
    parts = content.parts or () if content else ()
    return "\n".join(part.text for part in parts if part.text and not part.thought)
