"""The documents of a run, without what no two runs have in common."""

import json
import re
from typing import Any

from support.git_suites import Suite

_VARIES = re.compile(
    r"\d{8}T\d{6}Z-\w{8}|( \d+ \w+)+ older,|(\d+ \w+ )+of agent time|time(stamp)?=\"[^\"]*\""
    r"|until: [-\d]+"  # a suggestion that counts from today
)


def essence(suite: Suite, folder: str) -> Any:
    """Return all that a run of a suite left, but for times and ids."""
    path = suite.folder / folder
    found = {}
    for name in ("run.json", "base/run.json", "report.json"):
        if (path / name).exists():
            found[name] = timeless(json.loads((path / name).read_text()))
    found["traces"] = sorted(
        json.dumps(timeless(json.loads(line)), sort_keys=True)
        for line in (path / "traces.jsonl").read_text().splitlines()
    )
    for name in ("comment.md", "summary.md", "annotations.txt", "junit.xml"):
        found[name] = timeless((path / name).read_text())
    return found


def timeless(value: Any) -> Any:
    """Return a JSON value without times, ids and what else lay in the folder."""
    if isinstance(value, dict):
        left_out = ("duration_s", "duration", "created", "baseline_created", "untracked")
        return {key: timeless(each) for key, each in value.items() if key not in left_out}
    if isinstance(value, str):
        return _VARIES.sub("", value)
    return [timeless(each) for each in value] if isinstance(value, list) else value
