"""How a change weakens settings that stored runs do not record."""

from collections.abc import Iterator, Mapping
from typing import Any

from ci_eval.config.config_schema import MatrixRow
from ci_eval.config.validated_config import Config
from ci_eval.gate.changed_files import models_of, recording_of
from ci_eval.gate.earlier_config import EarlierConfig, playing, section
from ci_eval.llm.judge_settings import JudgeOptions, Judging, endpoint
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.records.cases import Json

_LONGER = ("timeout_s", "retries")
"""Options of `run`: the greater the value, the fewer trials end in an error."""
_PLACES = {"engine": "local", "address": None}
"""Options of `run` that determine which machines run the agents, and their defaults."""
_ANSWERS = ("mode", "cassette", "env_file")
"""Options of `judge`, besides the judges themselves, that determine where answers come from."""
_RECORDED = ("mode", "cassette", "ignore")
"""Options of `models` that determine which recorded answers an agent gets."""
_MEASURED = ("prices", "faults")
"""Options of `models` that determine what an agent's calls cost, and how hard its trials are."""
STORED = frozenset({"threshold", "enabled", "tier", "max_growth"})
"""Options of a criterion that `CriterionFacts` has."""


def unstored(config: Config, before: EarlierConfig) -> Iterator[str]:
    """Yield, in words, the weakened settings that stored runs do not record."""
    now: Mapping[str, Any] = config.document.value
    if before.unread:
        yield f"criteria: the earlier {before.unread} cannot be read and is not compared"
    for name in _LONGER:
        new, old = getattr(config.run, name), getattr(before.run, name)
        if new > old:
            yield f"run.{name}: {old:g} → {new:g}"
    yield from _of_options("run", section(now, "run"), before.section("run"), _PLACES)
    yield from _of_agents(section(now, "agents"), before.section("agents"))
    if before.asks:
        yield from _of_judges(config.judging, section(now, "judge"), before)
    for name, criterion in config.criteria.items():
        if name in before.criteria:
            yield from surroundings(name, criterion, before.criteria[name])
    connection, was = (dict(section(each, "gcs")) for each in (now, before.value))
    if connection | {"timeout_s": 0} != was | {"timeout_s": 0}:
        yield "gcs: evalsets, recordings or baselines are read from another place"


def weaker_suite(config: Config, before: EarlierConfig) -> Iterator[str]:
    """Yield, in words, what is no longer judged, or is judged differently."""
    rate = config.gate.min_pass_rate
    required = before.gate.min_pass_rate is None and _by_threshold(before)
    # A rate that now holds in each run is stricter than one without a baseline alone.
    is_stricter = config.gate.mode == "both" and _mode(before) == "regression"
    if required and rate is not None and rate < 1 and not is_stricter:
        yield f"gate.min_pass_rate: 1 → {rate:g}"
    yield from _of_evalsets(section(config.document.value, "evalsets"), before.section("evalsets"))
    yield from _lost(config, before)
    simulation = config.simulation
    if simulation and before.playing not in (None, playing(config.judging, simulation)):
        yield "simulator: users are simulated differently"


def _by_threshold(before: EarlierConfig) -> bool:
    """Return True if every case had to pass, because there is no stored run to compare with."""
    return _mode(before) != "regression" or before.gate.on_missing == "threshold"


def _mode(before: EarlierConfig) -> str:
    return before.gate.mode or ("regression" if before.store else "threshold")


def _of_agents(now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    for name, spec in now.items():
        old = before.get(name)
        if name in before and spec != old and recording_of(spec):
            what = "another recording" if recording_of(old) else "a recording instead of the agent"
            yield f"agent {name}: {what}"
        elif name in before:
            yield from _of_models(name, models_of(spec), models_of(old))


def _of_models(name: str, now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    """Yield, in words, how calls of models are answered or measured differently."""
    options = _RECORDED if _replays(now) else ("mode",) if _replays(before) else ()
    defaults = dict.fromkeys((*options, *_MEASURED))
    yield from _of_options(f"agent {name}: models", now, before, defaults)


def _of_options(
    where: str, now: Mapping[str, Any], before: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Iterator[str]:
    """Yield, in words, the options in `defaults` that changed."""
    for name, default in defaults.items():
        new, was = now.get(name, default), before.get(name, default)
        if new != was:
            yield f"{where}.{name}: {_shown(was)} → {_shown(new)}"


def _replays(models: Mapping[str, Any]) -> bool:
    return bool(models) and models.get("mode") not in ("live", "record")


def _of_judges(judging: Judging, now: Mapping[str, Any], before: EarlierConfig) -> Iterator[str]:
    defaults = {name: JudgeOptions.model_fields[name].default for name in _ANSWERS}
    yield from _of_options("judge", now, before.section("judge"), defaults)
    if before.judging and _endpoints(judging) != _endpoints(before.judging):
        yield "judge: provider or address changed"


def _endpoints(judging: Judging) -> list[Json]:
    return [endpoint(each) for each in (judging.default, *judging.jury) if each]


def surroundings(name: str, now: AnyCriterion, before: AnyCriterion) -> Iterator[str]:
    """Yield, in words, the changed options that no fingerprint covers, such as `env` of code."""
    if type(now) is not type(before):
        return
    for option in type(now).model_fields.keys() - STORED - now.options().keys():
        if getattr(now, option) != getattr(before, option):
            yield f"criterion {name}: {option!r} changed"


def _of_evalsets(now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    for name, spec in now.items():
        if name in before:
            specs = (spec, before[name])
            new, old = (each if isinstance(each, Mapping) else {"path": each} for each in specs)
            keys = [key for key in {**old, **new} if new.get(key) != old.get(key)]
            if keys:
                yield f"evalset {name}: {', '.join(keys)} changed"


def _lost(config: Config, before: EarlierConfig) -> Iterator[str]:
    """Yield, in words, what is no longer judged, the largest things first, each once."""
    agents, evalsets = before.section("agents"), before.section("evalsets")
    yield from (f"agent {name} is removed" for name in agents if name not in config.agents)
    yield from (f"evalset {name} is removed" for name in evalsets if name not in config.evalsets)
    known = {*config.criteria, *config.disabled}
    yield from (f"criterion {name} is removed" for name in before.criteria if name not in known)
    rows = before.matrix or (MatrixRow(),)
    for agent in agents.keys() & config.agents.keys():
        for evalset in evalsets.keys() & config.evalsets.keys():
            now = config.criteria_for(agent, evalset)
            lost = [
                name
                for name in before.criteria.keys() & config.criteria.keys() - now.keys()
                if any(row.covers(agents=agent, evalsets=evalset, criteria=name) for row in rows)
            ]
            if lost:
                yield f"matrix: {', '.join(sorted(lost))} on {evalset} with {agent} is left out"


def _shown(value: object) -> str:
    return "none" if value is None else str(value)[:100]
