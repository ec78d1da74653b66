"""ADK's own managers on a bucket: run by a Python that has google-adk, never by the tests'."""

import json
import sys
from typing import Any


def write(sets: Any, results: Any, given: dict[str, Any]) -> None:
    """Make the evalset `theirs`, and a result of it."""
    from google.adk.evaluation.eval_case import EvalCase
    from google.adk.evaluation.eval_result import EvalCaseResult

    sets.create_eval_set("shop", "theirs")
    for case in given["cases"]:
        sets.add_eval_case("shop", "theirs", EvalCase.model_validate(case))
    case_results = [EvalCaseResult.model_validate(each) for each in given["results"]]
    results.save_eval_set_result("shop", "theirs", case_results)


def read(sets: Any, results: Any, _given: dict[str, Any]) -> Any:
    """Return all that is there, by the names in the listings."""
    return {
        "sets": {
            name: sets.get_eval_set("shop", name).model_dump(mode="json", exclude_none=True)
            for name in sets.list_eval_sets("shop")
        },
        "results": {
            name: results.get_eval_set_result("shop", name).model_dump(mode="json")
            for name in results.list_eval_set_results("shop")
        },
    }


def refuse(sets: Any, _results: Any, given: dict[str, Any]) -> list[str]:
    """Return the messages when evalsets with these ids are created."""
    said = []
    for eval_set_id in given["ids"]:
        try:
            sets.create_eval_set("shop", eval_set_id)
        except ValueError as exc:
            said.append(str(exc))
    return said


def main(bucket: str, what: str) -> None:
    """Do one of these, and write what comes of it."""
    from google.adk.evaluation.gcs_eval_set_results_manager import GcsEvalSetResultsManager
    from google.adk.evaluation.gcs_eval_sets_manager import GcsEvalSetsManager

    sets = GcsEvalSetsManager(bucket, project="p")
    results = GcsEvalSetResultsManager(bucket, project="p")
    do = {"write": write, "read": read, "refuse": refuse}[what]
    sys.stdout.write(f"{json.dumps(do(sets, results, json.load(sys.stdin)))}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
