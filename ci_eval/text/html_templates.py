"""HTML templates for `report.html`; everything that they output is escaped.

No template can turn that off: the environment has no filter `safe`, and our own markup is passed as
`markupsafe.Markup`.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote

from ci_eval.text import templates
from ci_eval.text.sanitize import clean


@cache
def environment() -> Any:
    """Return the Jinja environment of these templates; the import is slow."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment as Sandbox

    environment = templates.made_for_folders(Sandbox, autoescape=True, finalize=_seen)
    del environment.filters["safe"]
    environment.filters.update({each.__name__: each for each in (*templates.NUMBERS, fragment)})
    return environment


def render(template: str, values: Mapping[str, Any], *, markup: Mapping[str, str]) -> str:
    """Render the template file `template`; the texts in `markup` are ours and are not escaped."""
    from markupsafe import Markup

    safe = {name: Markup(text) for name, text in markup.items()}  # noqa: S704  # only texts of ours are given as markup
    return "".join(environment().get_template(template).generate({**values, **safe}))


def fragment(names: Iterable[str]) -> str:
    """Return the fragment of the address of a case in `report.html`.

    `names` are the names of its agent, its evalset and the case itself.
    """
    # Encoded as in the script of the page: encodeURIComponent for each name, then for the whole.
    path = "/".join(quote(name, safe="!~*'()", errors="replace") for name in names)
    return f"#case={quote(path, safe='')}"


def _seen(value: object) -> object:
    """Return a text without characters that hide or reorder others, and a count with commas."""
    if type(value) is int:
        return f"{value:,}"
    return clean(value) if type(value) is str else value
