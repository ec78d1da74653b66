"""What others say does nothing on GitLab either, which makes links of more than GitHub does.

GitLab finds its references in the text that is left after Markdown was read, so that a character
reference saves none: what follows the sign must not belong to it any more
(https://docs.gitlab.com/user/markdown/#gitlab-specific-references).  Its quick actions it finds in
the lines of the source (https://docs.gitlab.com/user/project/quick_actions/).
"""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.text.templates import block, code, html_code, markdown

REFERENCE = re.compile(
    r"""
    [@#!&$][0-9]              # user, issue, merge request, epic, snippet
    | @[\w-]                  # user, group, all
    | [~%] [\w"]              # label, milestone
    | \[(?:\w+):[\w"/-]       # [vulnerability:1], [contact:…], [wiki_page:…]
    | \^alert\#[0-9] | \*iteration:[\w"]
    | :[\w+-]+:               # emoji
    | [a-z][a-z0-9+.-]+://    # an address
    """,
    re.VERBOSE | re.IGNORECASE,
)
ACTION = re.compile(r"^/[a-z]", re.MULTILINE | re.IGNORECASE)
REFERENCES = [
    "@octo",
    "@all",
    "#12",
    "!12",
    "&12",
    "$12",
    "octo/shop!12",
    "~bug",
    '~"two words"',
    "~priority::high",
    "~12",
    "%v1.0",
    '%"next release"',
    "%3",
    "[vulnerability:12]",
    "[feature_flag:12]",
    "[contact:a@b.example]",
    "[wiki_page:home]",
    "^alert#12",
    "*iteration:12",
    ":tada:",
    "https://evil.example/x",
]
ACTIONS = ["/close", "/approve", "/merge", "/assign me", "  /close", "\n/close", "text\n/close"]


def seen(source: str) -> str:
    """Return the text that a reader sees, in which references are looked for."""
    return html.unescape(re.sub("<[^>]*>", "\0", source))


@pytest.mark.parametrize("text", REFERENCES)
def test_a_reference_is_none_any_more(text: str) -> None:
    assert REFERENCE.search(text), "this test looks for nothing"
    assert not REFERENCE.search(seen(markdown(text)))
    assert not REFERENCE.search(seen(markdown(f"({text}) {text}")))


SIGNS = st.text(st.sampled_from('@#!&$~%[]:/^*"0123aw_- '), max_size=12)


@given(SIGNS)
def test_no_signs_make_a_reference(text: str) -> None:
    assert not REFERENCE.search(seen(markdown(text)))


@pytest.mark.parametrize("text", ACTIONS)
def test_no_line_is_a_quick_action(text: str) -> None:
    for shown in (markdown(text), code(text), html_code(text)):
        assert not ACTION.search(shown)


@pytest.mark.parametrize("text", ACTIONS)
def test_a_quick_action_in_a_block_is_in_a_fence_that_is_as_long_as_gitlab_knows_them(
    text: str,
) -> None:
    # Nothing between the fences is looked at, as long as the fence holds.
    first, *_, last = block(text).splitlines()
    assert (first, last) == ("```", "```")
