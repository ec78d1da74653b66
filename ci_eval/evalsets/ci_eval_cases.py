"""ci-eval's own evalset: a prompt and an expected answer make a case."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from ci_eval.evalsets._case_entries import Source
from ci_eval.evalsets._evalset_reading import CaseFile, CaseReader, Problems
from ci_eval.evalsets._own_case import FOREIGN, GivenCase, read_case
from ci_eval.plugins.points import evalset
from ci_eval.records.cases import EvalCase, Json
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.validation_messages import describe

_CLOSE = 0.75
"""How similar to `cases` a misspelt key must be: `eval_cases` is a key of other formats."""
_HEADER = ("name", "description", "cases")
_OURS = frozenset(GivenCase.names()) - {"id", "tags", "state", "rubrics"}
"""Keys that identify a case in this format."""


@evalset("cases")
class Cases(CaseReader):
    """ci-eval's own evalset format: a prompt and an expected answer make a case.

    Written as YAML (up to 1 MiB), or as JSON, JSONL (one case per line) or CSV (of any size).
    YAML and JSON hold a list of cases, or an object with `cases` and, optionally, `name` and
    `description`; the name (default: the file name) is the id of the evalset.

        cases:
          - prompt: What is the capital of France?
            expected: Paris
          - id: refund
            tags: [billing]
            state: {user: vip}
            turns:
              - prompt: Refund order 7.
                expected_tools: [lookup, {name: refund, args: {order: 7}}]
              - prompt: Thank you!
                expected: You are welcome.
            final_state: {refunded: true}
            assert:
              - contains: welcome
            tool_mocks: {tools: {lookup: {result: {status: delivered}}}}
            human_answers: {refund: {result: true}}
          - id: books-a-table
            scenario: {start: I am hungry., plan: Book a table for two at seven.}
            rubrics: [The agent confirms the booking.]

    A case has a `prompt`, or `turns` for several messages, or a `scenario` for a simulated user:
    `start`, the user's first message; a `plan`, or the `goals` of AgentFlow's user with
    `max_turns`; and an ADK `persona`.  A case with a prompt, and each turn, may also have:
    `expected`, the answer; `expected_tools`, the tools in order, by name or with `args`;
    `expected_nodes`, the nodes of a graph in order.  `expected_tools: []` expects that no tool is
    called; without the key, tool calls are not compared.  A tool without `args` matches no call in
    `adk/tool_trajectory_avg_score`, which compares arguments, unless that criterion has
    `missing_args: any`.

    For the case as a whole: `id`, `tags`, `state` (of the initial session), `final_state`,
    `rubrics` (texts, or objects with `text`, `id` and `type`; for the final response unless the
    type is another ADK type, such as `TOOL_USE_QUALITY` or `TRAJECTORY_QUALITY`), and `assert`, a
    list of checks that `ci/assertions` makes for this case alone.  `context`, a text or a list of
    texts, is a source for `agentflow/hallucinations_v1` in addition to the tool calls, and
    `reference_facts` for `agentflow/factual_accuracy_v1`.

    `tool_mocks` replaces the results of tools, which are then not called.  `human_answers` has the
    answers of a human for an agent that stops and asks.  Both are keyed by the name of the tool:
    `result`, `results` (one per call; the last one repeats) or an `error` message, and `args`, the
    minimum arguments of a matching call; one such entry, or a list whose first match counts.  A
    call that matches nothing is an error, unless `unmatched: pass` beside `tools` lets it reach the
    real tool.  With `rerun_on_resume: true`, a waiting agent continues when a run is resumed and
    the answer is available; otherwise the answer is the response.

    A case without an `id` is named after its prompts: the first words and a checksum.  The name
    stays the same if the case moves or its expectations change, and changes with the prompts; two
    cases with the same prompts need ids.

    In CSV the first row names the columns: `id`, `prompt`, `expected`, `context`,
    `reference_facts`, `tags`, `expected_tools` and `expected_nodes` (in the last three, `;`
    separates the values in a cell; tools may be JSON, `[]` for none), and any number of
    `state.NAME`, `final_state.NAME` and `assert.NAME`. The cells of the latter are parsed as JSON
    if possible, such as `7`, `true` or `{"max": 2}`, and are text otherwise; to get a number as
    text, write it as a JSON string. Empty cells are ignored.
    """

    syntaxes = frozenset({"json", "jsonl", "yaml", "csv"})

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True if it has `cases`, is an empty list, a table, or begins with a case of ours.

        `cases` may be misspelt, so that reading the file names the key.
        """
        if isinstance(head, Mapping):
            return "cases" in head or any(
                get_close_matches(name, ["cases"], cutoff=_CLOSE) and _begins_with_case(each)
                for name, each in head.items()
            )
        return head == [] or _begins_with_case(head)

    def cases(self, file: CaseFile) -> Iterator[EvalCase]:
        """Yield the valid cases of `file`, and note the problems of the others."""
        for entry in Source(file, "cases").entries():
            case = read_case(entry.value, entry.line, entry.notes, file.names)
            if case:
                yield case
        _check_header(file.header, file.problems)

    def set_id(self, file: CaseFile) -> str:
        """Return the name in the file; by default the name of the file."""
        return file.header["name"].value if "name" in file.header else file.path.stem


def _begins_with_case(value: Json | Sequence[Json]) -> bool:
    """Return True if a list begins with a case in this format, or with the columns of a table."""
    first = value[0] if isinstance(value, list) and value else None
    if not isinstance(first, Mapping) or not first:
        return False
    is_table = all(each == "" for each in first.values())
    asks = {name for name, ours in FOREIGN.items() if ours == "prompt"}
    return is_table or bool(first.keys() & (_OURS | asks))


def _check_header(header: Mapping[str, Any], problems: Problems) -> None:
    for key, (value, line) in header.items():
        if key not in _HEADER:
            problems.add(f"unknown key{did_you_mean(key, _HEADER)}", line, key)
        elif key != "cases" and not isinstance(value, str):
            problems.add(f"expected text, found {describe(value)}", line, key)
