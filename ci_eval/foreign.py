"""What a file seems to be that is not what was expected, told from how it begins."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ci_eval.explain import describe
from ci_eval.records import Json

_HEAD_BYTES = 1024
_RESULTS = {"eval_case_results", "evalCaseResults", "eval_set_result_id", "evalSetResultId"}
_REPLAYS = "an agent `{recorded: FILE}` replays"
_ADK_CONFIG = "ADK's eval config; name it under `criteria: {from: FILE}`"
_BY_KEY = (
    ("scenarios", "ADK's conversation scenarios; `adk eval_set add_eval_case` makes cases of them"),
    ("criteria", _ADK_CONFIG),
    ("criterion", _ADK_CONFIG),
    ("events", "a session of ADK"),
    ("invocations", f"a recording; {_REPLAYS} it"),
    ("schema_version", "a file that ci-eval itself writes"),
)
_KEYS_SHOWN = 5


def described(head: Json) -> str:
    """Return what a JSON document that begins like `head` seems to be."""
    return recognised(head) or _shape(head)


def recognised(head: Json) -> str:
    """Return the format of a document that is no evalset for certain; empty where it may be."""
    if isinstance(head, Mapping):
        return _object(head)
    first = _first(head)
    if "metricName" in first:
        return "metrics of trpc-agent-go"
    if isinstance(head, str) and head.lstrip().startswith("{"):
        return f"JSON in a JSON text, as older versions of ADK write their results; {_REPLAYS} them"
    return ""


def _object(head: Mapping[str, Json]) -> str:
    case = _first(head.get("eval_cases", head.get("evalCases")))
    is_adk = bool({"eval_id", "evalId"} & case.keys())
    if not is_adk and {"eval_case_id", "prompt", "agent_data", "responses"} & case.keys():
        return "a dataset or a trace of agents-cli"
    if "evalCases" in head and "content" in _message(_first(case.get("conversation"))):
        return "an evalset of trpc-agent-go"
    if {"eval_cases", "evalCases"} & head.keys():
        return ""
    if _RESULTS & head.keys():
        return (
            f"results of ADK; {_REPLAYS} them"
            if is_adk_result(head)
            else "results of trpc-agent-go or agents-cli"
        )
    if head.keys() <= {"app_name", "user_id", "state"} and "user_id" in head:
        return "the session input of ADK's `adk eval_set add_eval_case`"
    return next((what for key, what in _BY_KEY if key in head), "")


def is_adk_result(head: Json) -> bool:
    """Say whether a document that begins like `head` may hold what ADK observed and scored."""
    if not isinstance(head, Mapping) or not _RESULTS & head.keys():
        return False
    case = _first(head.get("eval_case_results", head.get("evalCaseResults")))
    turns = case.get("eval_metric_result_per_invocation", case.get("evalMetricResultPerInvocation"))
    turn = _first(turns)
    message = _message(turn.get("actualInvocation", {}))
    return "response_candidate_results" not in case and "content" not in message


def _message(turn: Json) -> Mapping[str, Json]:
    """Return what the user says in an invocation; ADK has its parts there, others a content."""
    found = turn.get("userContent", turn.get("user_content")) if isinstance(turn, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _first(value: Json) -> Mapping[str, Json]:
    """Return the first element of a list of objects; an empty object of anything else."""
    if isinstance(value, Sequence) and value and isinstance(value[0], Mapping):
        return value[0]
    return {}


def _shape(head: Json) -> str:
    if head is None or head in ({}, []):
        return "an empty document"
    if isinstance(head, Mapping):
        keys = list(map(repr, head))
        return f"an object with {', '.join(keys[:_KEYS_SHOWN])}{' …' * (len(keys) > _KEYS_SHOWN)}"
    return describe(head)


def not_json(path: Path) -> str:
    """Return what the file at `path`, which is no JSON, seems to be; empty where nobody knows."""
    if path.suffix in (".yaml", ".yml"):
        return "YAML"
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        return "a pointer of Git LFS, whose file was not fetched"
    lines = head.decode(errors="replace").splitlines()
    if len(lines) == 1 and lines[0].endswith(path.suffix) and "/" in lines[0]:
        return "a symbolic link that was checked out as a text"
    return ""
