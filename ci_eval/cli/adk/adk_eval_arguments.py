"""Evalset arguments of `ci-eval adk`: `FILE` or `ID`, optionally with `:case,case`."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ci_eval.cli.evalset.evalset_argument import located
from ci_eval.config.config_schema import EvalSetSpec
from ci_eval.config.evalset_names import unique_names
from ci_eval.records.errors import Problem, UsageError
from ci_eval.runtime.storage.adk_storage import EVALSET_SUFFIX as SUFFIX
from ci_eval.runtime.storage.adk_storage import evalset_object
from ci_eval.runtime.storage.gs_uri import SCHEME, Place, is_place
from ci_eval.text.suggest import did_you_mean

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_LIKE_PATH = re.compile(r"[\\/]|\.(json|jsonl|ndjson|ya?ml|csv)$")


def named_sets(agent: str, given: Sequence[str]) -> dict[str, EvalSetSpec]:
    """Return the evalsets named in `given` for the agent in the folder `agent`, by name.

    If an evalset is given several times, the cases are combined; as in ADK, only these are run,
    even if it is also given without cases.

    Raises:
        UsageError: an evalset does not exist; lists each of them.

    """
    wanted: dict[str, list[str]] = {}
    for each in given:
        name, cases = _split(each)
        wanted.setdefault(name, []).extend(cases)
    problems: list[Problem] = []
    found = {name: _path(agent, name, problems) for name in wanted}
    if problems:
        raise UsageError(problems=problems)
    if not found:
        raise UsageError("no evalset given; nothing was run", hint=_known_here(agent))
    names = unique_names(found.values(), ending=".json")
    return {
        names[path]: EvalSetSpec(path=path, cases=tuple(dict.fromkeys(wanted[name])))
        for name, path in found.items()
    }


def id_given(shown: str, given: Sequence[str]) -> str | None:
    """Return the id by which the evalset at `shown` was given; `None` if it was given as a file."""
    names = {_split(each)[0] for each in given}
    wanted = shown.replace("\\", "/").rpartition("/")[2].removesuffix(SUFFIX)
    return wanted if wanted in names and shown not in names else None


def config_beside(sets: Mapping[str, EvalSetSpec], given: Sequence[str]) -> str | None:
    """Return the eval config beside the evalset, if only one is given, as a file."""
    if len(sets) != 1 or not Path(_split(given[0])[0]).is_file():
        return None
    (spec,) = sets.values()
    beside = Path(spec.path).parent / "test_config.json"
    return str(beside) if beside.is_file() else None


def stored(uri: str, app: str, given: str) -> str:
    """Return `given`, with an id replaced by the evalset's address in the bucket of `uri`.

    Raises:
        UsageError: `uri` is not a `gs://bucket`, or the id is invalid.

    """
    if not is_place(uri):
        raise UsageError(
            f"Unsupported evals storage URI: {uri}. Supported URIs: gs://<bucket name>"
        )
    name, cases = _split(given)
    if is_place(name) or Path(name).is_file() or _LIKE_PATH.search(name):
        return given
    place = Place(Place.parse(uri).bucket, evalset_object(app, name))
    return f"{place}:{','.join(cases)}" if cases else str(place)


def _split(given: str) -> tuple[str, list[str]]:
    """Return the name of an evalset, which may start with a Windows drive, and its cases."""
    start = len(SCHEME) if is_place(given) else 3 if _DRIVE.match(given) else 0
    at = given.find(":", start)
    if at < 0:
        return given, []
    cases = given[at + 1 :].partition(":")[0]
    return given[:at], [each.strip() for each in cases.split(",") if each.strip()]


def _path(agent: str, name: str, problems: list[Problem]) -> str:
    """Return the file of an evalset; add any problem to `problems`."""
    if is_place(name) or Path(name).is_file():
        return name
    if _LIKE_PATH.search(name):
        problems.append(Problem("is not a file" if Path(name).exists() else "no such file", name))
        return name
    target = located(agent, name)
    if not target.path.is_file():
        meant = did_you_mean(name, _ids(agent))
        message = f"Eval set `{name}` not found, and there is no file of this name{meant}"
        problems.append(Problem(message, target.shown))
    return target.shown


def _ids(agent: str) -> list[str]:
    """Return the ids of the evalsets in the folder of an agent."""
    found = (each.name.removesuffix(SUFFIX) for each in Path(agent).glob(f"*{SUFFIX}"))
    return sorted(found)


def _known_here(agent: str) -> str:
    ids = _ids(agent)
    return f"available evalsets: {', '.join(ids[:10])}" if ids else "pass a file or an id"
