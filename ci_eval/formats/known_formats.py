"""Recognition of files in an unexpected format, from their beginning."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ci_eval.records.cases import Json
from ci_eval.text.validation_messages import describe

_HEAD_BYTES = 1024
_RESULTS = {"eval_case_results", "evalCaseResults", "eval_set_result_id", "evalSetResultId"}
_REPLAYS = "an agent `{recorded: FILE}` replays"
_ADK_CONFIG = "ADK's eval config; name it under `criteria: {from: FILE}`"
_REWRITE = "write its questions as `cases:` with `prompt` and `expected`"
_CHOOSE = "choose criteria of your own under `criteria:`"
_GRADES = "grades of agents-cli; name the trace that was graded under `{recorded: FILE}`"
_TRPC_RESULTS = f"results of trpc-agent-go, which are not read; name its evalset, and {_CHOOSE}"
_BY_KEY = (
    ("scenarios", "ADK's conversation scenarios; `adk eval_set add_eval_case` makes cases of them"),
    ("criteria", _ADK_CONFIG),
    ("criterion", _ADK_CONFIG),
    ("events", f"a session of ADK; {_REPLAYS} it"),
    ("invocations", f"a recording; {_REPLAYS} it"),
    ("golden_questions", f"golden questions of another tool; {_REWRITE}"),
    ("test_cases", f"test cases of another tool; {_REWRITE}"),
    ("evaluators", f"a list of evaluators, as of agentevals; {_CHOOSE}"),
    ("agentSpans", "a trace of DeepEval, which is not read; export OpenTelemetry's instead"),
    ("eval", "a log of Inspect, which is not read"),
    ("prompt", "a single case; put it into a list under `cases:`"),
    ("schema_version", "a file that ci-eval itself writes"),
)
_OF_MICROSOFT = {"data", "data_mapping", "openai_graders", "evaluator_parameters"}
_KEYS_SHOWN = 5


def described(head: Json) -> str:
    """Describe a JSON document that begins like `head`."""
    return recognised(head) or _shape(head)


def recognised(head: Json) -> str:
    """Return the format of a document that is known not to be an evalset; else empty."""
    if isinstance(head, Mapping):
        return _object(head)
    if "metricName" in first_object(head):
        return f"metrics of trpc-agent-go; {_CHOOSE}"
    if is_json_in_text(head):
        return f"JSON in a JSON string, as older versions of ADK write results; {_REPLAYS} them"
    return ""


def _object(head: Mapping[str, Json]) -> str:
    if {"eval_cases", "evalCases"} & head.keys():
        return ""
    if _RESULTS & head.keys():
        if is_adk_result(head):
            return f"results of ADK; {_REPLAYS} them"
        case = first_object(head.get("eval_case_results"))
        return _GRADES if "response_candidate_results" in case else _TRPC_RESULTS
    if head.keys() <= {"app_name", "user_id", "state"} and "user_id" in head:
        return "the session input of ADK's `adk eval_set add_eval_case`"
    if "evaluators" in head and _OF_MICROSOFT & head.keys():
        return f"a dataset of Microsoft's AI agent evaluation; {_REWRITE}"
    return next((what for key, what in _BY_KEY if key in head), "")


def is_json_in_text(head: Json) -> bool:
    """Return True for a string that contains a JSON object."""
    return isinstance(head, str) and head.lstrip().startswith("{")


def is_adk_result(head: Json) -> bool:
    """Return True if a document that begins like `head` may be ADK's results."""
    if not isinstance(head, Mapping) or not _RESULTS & head.keys():
        return False
    case = first_object(head.get("eval_case_results", head.get("evalCaseResults")))
    turns = case.get("eval_metric_result_per_invocation", case.get("evalMetricResultPerInvocation"))
    turn = first_object(turns)
    message = _message(turn.get("actualInvocation", {}))
    return "response_candidate_results" not in case and "content" not in message


def _message(turn: Json) -> Mapping[str, Json]:
    """Return the user's message of an invocation: with parts in ADK, with content in others."""
    found = turn.get("userContent", turn.get("user_content")) if isinstance(turn, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def first_object(value: Json) -> Mapping[str, Json]:
    """Return the first object of a list; an empty one if there is none."""
    if isinstance(value, Sequence) and value and isinstance(value[0], Mapping):
        return value[0]
    return {}


def _shape(head: Json) -> str:
    if head is None or head in ({}, []):
        return "an empty document"
    if isinstance(head, Mapping):
        keys = list(map(repr, head))
        return f"an object with {', '.join(keys[:_KEYS_SHOWN])}{' …' * (len(keys) > _KEYS_SHOWN)}"
    first = first_object(head)
    return f"a list that begins with {_shape(first)}" if first else describe(head)


def not_json(path: Path) -> str:
    """Describe a file that is not JSON; empty if it is not recognised."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        return "a Git LFS pointer whose file was not fetched"
    lines = head.decode(errors="replace").splitlines()
    if len(lines) == 1 and lines[0].endswith(path.suffix) and "/" in lines[0]:
        return "a symbolic link that was checked out as text"
    return ""
