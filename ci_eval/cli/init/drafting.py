"""Contents of the files that `ci-eval init` writes."""

import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ci_eval.cli.evalset.yaml_text import yaml_text
from ci_eval.cli.init.scoring import Scoring
from ci_eval.cli.init.trying import AskedModel
from ci_eval.llm.judge_settings import DEFAULT_CASSETTE
from ci_eval.records.model import Json
from ci_eval.records.trials import Recording
from ci_eval.text.sanitize import one_line
from ci_eval.text.templates import source

_WIDTH = 96
_MAX_NOTE = 400
_MAX_NOTES = 20

_HEAD = """\
# How the agent is evaluated. Written by `ci-eval init`; edit as you like.
# `ci-eval validate` checks it; `ci-eval list` shows everything you can use in it.
"""
_ABOUT_ASKING = (
    "`ci-eval plan` estimates the cost. Answers are cached in "
    f"`{DEFAULT_CASSETTE}`: commit it, so that workflows reuse them too, "
    "or add it to .gitignore."
)
_JUDGE = """\
# judge:
#   samples: 3      # samples per question, unless the criterion sets it
#   max_calls: 500  # questions over the limit are errors, never a pass

"""
_OPTIONS = """\
# run:
#   repeats: 3      # runs of each case: several show how much answers vary
#   concurrency: 4  # parallel conversations: lower it if you hit rate limits
"""
_FILE = """\
baseline:
  # Pull requests are compared with this. `ci-eval run --baseline-save` stores a run there; do
  # that on the main branch and commit the file. Until there is one, the thresholds above decide.
  store: file
  path: .ci-eval/baseline.json
"""
_BRANCH = """\
baseline:
  # Pull requests are compared with this. The workflow stores runs of merged code on a separate
  # branch, `ci-eval-data`. Until there is one, the thresholds above decide.
  store: branch
"""
_GATE = """\
gate:
  # `regression` blocks significant drops from the baseline, `threshold` missed thresholds,
  # `both` either of them.
  mode: regression
  # min_pass_rate: 0.9  # share of cases that must pass, whatever the baseline
"""


@dataclass(frozen=True)
class Draft:
    """Content of the configuration."""

    suite: str
    agent_name: str
    agent: Mapping[str, Json]
    """As the configuration says it: the type, with its options."""
    agent_notes: tuple[str, ...]
    evalsets: Mapping[str, str]
    """Paths and patterns, by name."""
    evalset_notes: tuple[str, ...]
    scoring: Scoring
    asked: tuple[AskedModel, ...] = ()
    """The models that criteria ask."""
    unjudged: tuple[str, ...] = ()
    """Cases that no criterion could judge."""
    stores_itself: bool = False
    """Whether a workflow stores the runs of what was merged."""


def config_text(draft: Draft) -> str:
    """Return the configuration."""
    scoring = draft.scoring
    head: dict[str, Json] = {"version": 1, "name": draft.suite}
    if scoring.dialect:
        head["dialect"] = scoring.dialect
    notes = [each.told({}) for each in draft.asked]  # of no machine: the file is for all
    if notes:
        notes.append(_ABOUT_ASKING)
    sections = (
        _HEAD + yaml_text(head),
        _section("agents", {draft.agent_name: dict(draft.agent)}, draft.agent_notes),
        _section("evalsets", dict(draft.evalsets), draft.evalset_notes),
        _section("criteria", dict(scoring.criteria), [*notes, *scoring.notes]),
        (_JUDGE if draft.asked else "") + _OPTIONS,
        _BRANCH if draft.stores_itself else _FILE,
        _GATE + _allowed(draft.unjudged),
    )
    return "\n".join(sections)


def agent_text() -> str:
    """Return `ci_eval_agent.py`: what the user has to fill in."""
    return source("init/any_agent.py.in")


def starter_text() -> str:
    """Return an evalset with one case, for a repository that has none."""
    return source("init/smoke.yaml.in")


def recording_text(recordings: Iterable[Recording]) -> str:
    """Return conversations as a recorded agent reads them, one a line."""
    lines = (each.model_dump_json(exclude_none=True, exclude_defaults=True) for each in recordings)
    return "".join(f"{line}\n" for line in lines)


def filled(name: str, values: Mapping[str, str]) -> str:
    """Return the template `name` with its marks replaced; marks in a value stay what they are."""
    return re.sub("|".join(values), lambda mark: values[mark[0]], source(name))


def _allowed(cases: tuple[str, ...]) -> str:
    """Return the key of the gate that names cases which nothing can judge."""
    if not cases:
        return ""
    listed = textwrap.indent(yaml_text({"allow_unjudged": list(cases)}), "  ")
    return (
        f"  # No criterion can judge these cases: complete them, then remove them here.\n{listed}"
    )


def _section(key: str, value: Mapping[str, Json], notes: Iterable[str]) -> str:
    """Return a key of the configuration with `notes` as comments at its top."""
    first, _, rest = yaml_text({key: value}).partition("\n")
    return f"{first}\n{_comments(notes)}{rest}"


def _comments(notes: Iterable[str]) -> str:
    """Return `notes` as comments; whatever a file is called, it stays within its line."""
    listed = list(notes)
    more = [f"… and {len(listed) - _MAX_NOTES} more."] if len(listed) > _MAX_NOTES else []
    lines = [one_line(each, _MAX_NOTE) for each in (*listed[:_MAX_NOTES], *more)]
    return "".join(f"  # {line}\n" for each in lines for line in _wrapped(each))


def _wrapped(text: str) -> Iterable[str]:
    return textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
