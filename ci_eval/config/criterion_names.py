"""Resolution of criterion names.

Google ADK and AgentFlow use some names for different things.  A qualified name (`adk/…`,
`agentflow/…`, `ci/…`) is always unambiguous.  A bare name is looked up in the dialect first, then
in the dialect it is based on, then in all others; only four names exist in both.
"""

import re
from collections.abc import Iterator
from typing import Literal, get_args

from ci_eval.plugins import points
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.records.errors import UnknownPluginError
from ci_eval.text.suggest import did_you_mean

Dialect = Literal["adk", "adk@2.3", "agentflow"]
DIALECTS: tuple[str, ...] = get_args(Dialect)
AMBIGUOUS = frozenset(
    {"hallucinations_v1", "response_match_score", "safety_v1", "tool_trajectory_avg_score"}
)
"""Names under which ADK and AgentFlow measure different things."""
NAME = re.compile(r"[^/\x00-\x1f\x7f-\x9f\u2028\u2029]{1,200}")
"""Valid names of agents, evalsets and criteria; criteria may also contain one `/`."""
NO_NAME = "expected a name of 1 to 200 characters, without '/' or control characters"
"""The message about an invalid name."""
_ORDER = {
    "adk": ("adk", "agentflow", "ci"),
    "adk@2.3": ("adk@2.3", "adk", "agentflow", "ci"),
    "agentflow": ("agentflow", "adk", "ci"),
}


def resolve(name: str, dialect: str) -> type[AnyCriterion]:
    """Return the criterion that `name` refers to in `dialect`.

    Raises:
        UnknownPluginError: there is no such criterion.

    """
    prefix, slash, short = name.rpartition("/")
    if slash:
        return _among(prefix, short) or points.criterion[name]
    for each in _ORDER[dialect]:
        found = _among(each, short)
        if found is not None:
            if dialect in found.absent_in:
                raise UnknownPluginError(f"dialect {dialect!r} does not have this criterion")
            return found
    raise UnknownPluginError(f"unknown criterion{did_you_mean(name, set(bare_names()))}")


def surprising(name: str, found: type[AnyCriterion], dialect: str) -> str:
    """Return a remark on a short name whose criterion calls a model, if a namesake calls none.

    The remark is empty for other names.  For example, `response_match` is AgentFlow's short name,
    and `response_match_score` exists in both dialects.
    """
    own = _among(_ORDER[dialect][0], found.type_name.rpartition("/")[2])
    if name not in found.aliases or not issubclass(found, points.JudgedCriterion):
        return ""
    if own is None or issubclass(own, points.JudgedCriterion):
        return ""
    return f"means {found.type_name!r}, which calls a model; {own.type_name!r} does not"


def belongs_to(name: str, prefix: str) -> bool:
    """Return True if the bare `name` is a criterion of `prefix`."""
    return _among(prefix, name) is not None


def bare_names() -> Iterator[str]:
    """Yield every name that can be used without a prefix."""
    for qualified in points.criterion:
        prefix, _, short = qualified.rpartition("/")
        if prefix in _ORDER["adk"]:
            yield short


def _among(prefix: str, short: str) -> type[AnyCriterion] | None:
    """Return the criterion of `prefix` with the name or the alias `short`."""
    if f"{prefix}/{short}" in points.criterion:
        return points.criterion[f"{prefix}/{short}"]
    others = (name for name in points.criterion if name.startswith(f"{prefix}/"))
    models = (points.criterion[name] for name in others)
    return next((model for model in models if short in model.aliases), None)
