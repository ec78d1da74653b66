"""Contents of the files that `ci-eval init` writes."""

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ci_eval.cli.evalset.readable_yaml import yaml_text
from ci_eval.cli.init.drafted_config_check import AskedModel
from ci_eval.cli.init.first_criteria import Scoring
from ci_eval.config.selection import fits
from ci_eval.llm.judge_settings import DEFAULT_CASSETTE
from ci_eval.records.cases import Json
from ci_eval.records.trials import Recording
from ci_eval.text.sanitize import one_line
from ci_eval.text.templates import source

_WIDTH = 96
_MAX_NOTE = 400
_MAX_NOTES = 20

_ABOUT_ASKING = (
    "`ci-eval plan` estimates the cost. Answers are cached in "
    f"`{DEFAULT_CASSETTE}`: commit it, so that workflows reuse them too, "
    "or add it to .gitignore."
)


@dataclass(frozen=True)
class Draft:
    """Content of the configuration."""

    suite: str
    agent_name: str
    agent: Mapping[str, Json]
    """As in the configuration: the type, with its options."""
    agent_notes: tuple[str, ...]
    evalsets: Mapping[str, str]
    """Paths and patterns, by name."""
    evalset_notes: tuple[str, ...]
    scoring: Scoring
    asked: tuple[AskedModel, ...] = ()
    """The models that criteria use."""
    unjudged: tuple[str, ...] = ()
    """Cases that no criterion could judge."""
    stores_itself: bool = False
    """Whether a workflow stores runs of merged code."""


def config_text(draft: Draft) -> str:
    """Return the configuration."""
    scoring = draft.scoring
    head: dict[str, Json] = {"version": 1, "name": draft.suite}
    if scoring.dialect:
        head["dialect"] = scoring.dialect
    notes = [each.told({}) for each in draft.asked]  # the file is for other machines, too
    if notes:
        notes.append(_ABOUT_ASKING)
    allowed = yaml_text({"allow_unjudged": list(draft.unjudged)}) if draft.unjudged else ""
    return filled(
        "init/config.yaml.in",
        head=yaml_text(head),
        agents=_section("agents", {draft.agent_name: dict(draft.agent)}, draft.agent_notes),
        evalsets=_section("evalsets", dict(draft.evalsets), draft.evalset_notes),
        criteria=_section("criteria", dict(scoring.criteria), [*notes, *scoring.notes]),
        matrix=yaml_text({"matrix": _matrix(draft)}) if scoring.parts else "",
        asks=bool(draft.asked),
        stores_itself=draft.stores_itself,
        allowed=textwrap.indent(allowed, "  "),
    )


def _matrix(draft: Draft) -> list[Json]:
    """Return which criteria score which evalsets; those of no eval config score all."""
    scoring = draft.scoring
    of_some = {name for part in scoring.parts for name in part.criteria}
    of_all = [name for name in scoring.criteria if name not in of_some]
    return [
        {
            "evalsets": [
                name
                for name, path in draft.evalsets.items()
                if any(fits(each, path) for each in part.evalsets)
            ],
            "criteria": [*(name for name in part.criteria if name in scoring.criteria), *of_all],
        }
        for part in scoring.parts
    ]


def filled(template: str, **values: object) -> str:
    """Return `template` filled with `values`, which are YAML."""
    from jinja2 import Environment

    # The default delimiters are those of GitHub's expressions.
    marks = ("[%", "%]", "[[", "]]", "[#", "#]")
    environment = Environment(*marks, trim_blocks=True, lstrip_blocks=True)  # noqa: S701  # no HTML
    return environment.from_string(source(template)).render(values)


def recording_text(recordings: Iterable[Recording]) -> str:
    """Return conversations in the format of a recorded agent, one per line."""
    lines = (each.model_dump_json(exclude_none=True, exclude_defaults=True) for each in recordings)
    return "".join(f"{line}\n" for line in lines)


def _section(key: str, value: Mapping[str, Json], notes: Iterable[str]) -> str:
    """Return a key of the configuration with `notes` as comments at its top."""
    first, _, rest = yaml_text({key: value}).partition("\n")
    return f"{first}\n{_comments(notes)}{rest}"


def _comments(notes: Iterable[str]) -> str:
    """Return `notes` as comments; a file name in them cannot break out of its line."""
    listed = list(notes)
    more = [f"… and {len(listed) - _MAX_NOTES} more."] if len(listed) > _MAX_NOTES else []
    lines = [one_line(each, _MAX_NOTE) for each in (*listed[:_MAX_NOTES], *more)]
    wrap = textwrap.TextWrapper(_WIDTH, break_long_words=False, break_on_hyphens=False).wrap
    return "".join(f"  # {line}\n" for each in lines for line in wrap(each))
