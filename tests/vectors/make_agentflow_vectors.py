"""Record what AgentFlow answers to invented tool calls, nodes and texts.

Run by hand under an interpreter that has the package:

    uv venv --python 3.12 agentflow && uv pip install --python agentflow 10xscale-agentflow==0.10.1
    agentflow/bin/python tests/vectors/make_agentflow_vectors.py

It calls no model and no network: what judges answer is invented. The files are written beside it,
or into the folder that is given, named after the version; the inputs depend on the seed alone,
which may be given after the folder. adk_inputs.py invents the texts and tool calls, README.md
describes the rows.
"""

# A script for an environment of its own, whose generators are seeded.
# Where the project is type-checked, AgentFlow need not be there.
# mypy: disable-error-code="import-not-found"

import asyncio
import importlib.metadata
import json
import math
import random
import sys
from pathlib import Path
from typing import Any, Final

from adk_inputs import (
    CALL_CHANGES,
    CHANGES,
    NO_ARGS,
    SENTENCES,
    Json,
    changed_calls,
    text_pair,
    tool_call,
)
from agentflow.qa.evaluation import (
    CriterionConfig,
    EvalCase,
    EvalSet,
    Invocation,
    MessageContent,
    Rubric,
    ToolCall,
)
from agentflow.qa.evaluation.criteria import CRITERIA_REGISTRY, llm_utils
from agentflow.qa.evaluation.dataset.eval_set import SessionInput
from agentflow.qa.evaluation.execution.result import ExecutionResult

SEED: Final = 101
CALL_ROWS: Final = 700
NODE_ROWS: Final = 400
TEXT_ROWS: Final = 700
JUDGED_ROWS: Final = 210
MATCH_TYPES: Final = ("EXACT", "IN_ORDER", "ANY_ORDER")
NODES: Final = ("__start__", "MAIN", "TOOL", "REVIEW", "main", "END", "__end__")

# Characters that JSON leaves alone in a string, and that some readers of lines break lines at.
LINE_BREAKS: Final = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}


def _scored(name: str, expected: list[Json], done: Json, **options: Any) -> float:
    """Have AgentFlow score what was done in a case of the turns `expected`."""
    turns = [Invocation(user_content=MessageContent.user("Hi"), **turn) for turn in expected]
    criterion = CRITERIA_REGISTRY[name](config=CriterionConfig(**options))
    case = EvalCase(eval_id="c", conversation=turns)
    result = criterion.evaluate_sync(ExecutionResult(**done), case)
    assert result.error is None
    return float(result.score)


def _in_turns(rng: random.Random, items: list[Any], turns: int) -> list[list[Any]]:
    """Spread a sequence over turns, some of them empty."""
    cuts = sorted(rng.randint(0, len(items)) for _ in range(turns - 1))
    return [items[i:j] for i, j in zip([0, *cuts], [*cuts, len(items)], strict=True)]


# --- tool calls ----------------------------------------------------------------------------


def _named(rng: random.Random) -> Json:
    """Make a call that AgentFlow can read: with a name, and with arguments or none."""
    call = tool_call(rng)
    args = call.get("args", NO_ARGS)
    return {"name": call.get("name", "notify"), "args": args if isinstance(args, dict) else {}}


def _tools(calls: list[Json]) -> list[ToolCall]:
    return [ToolCall.model_validate_json(json.dumps(call)) for call in calls]


def call_rows(rng: random.Random) -> list[Json]:
    """Make the rows of the criteria of tool calls."""
    rows = []
    for n in range(CALL_ROWS):
        wanted = [_named(rng) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4, 6)))]
        change = CALL_CHANGES[n % len(CALL_CHANGES)]
        done = [
            {"name": call.get("name", "notify"), "args": call.get("args") or {}}
            for call in changed_calls(rng, wanted, change)
        ]
        if rng.random() < 0.2 and done:
            done = changed_calls(rng, done, rng.choice(("shuffled", "reversed", "repeated")))
        if rng.random() < 0.2 and wanted:
            wanted[rng.randrange(len(wanted))]["args"] = {}
        turns = rng.choice((1, 1, 2, 3))
        expected, actual = _in_turns(rng, wanted, turns), _in_turns(rng, done, turns)
        rows.append(
            {
                "id": f"c{n:04}",
                "change": change,
                "expected": expected,
                "actual": actual,
                "scores": _call_scores(expected, actual),
            }
        )
    return rows


def _call_scores(expected: list[list[Json]], actual: list[list[Json]]) -> Json:
    turns = [{"expected_tool_trajectory": _tools(calls)} for calls in expected]
    done = {"tool_calls": _tools([call for calls in actual for call in calls])}

    def by_match_type(*, check_args: bool) -> dict[str, float]:
        name = "tool_trajectory_avg_score"
        return {
            each: _scored(name, turns, done, match_type=each, check_args=check_args)
            for each in MATCH_TYPES
        }

    return {
        "names": _scored("tool_name_match_score", turns, done),
        "calls": by_match_type(check_args=False),
        "with_args": by_match_type(check_args=True),
    }


# --- nodes ---------------------------------------------------------------------------------


def node_rows(rng: random.Random) -> list[Json]:
    """Make the rows of the node order."""
    rows = []
    for n in range(NODE_ROWS):
        wanted = rng.choices(NODES, k=rng.choice((0, 1, 2, 3, 4, 6)))
        change = rng.choice(("same", "shuffled", "extra", "missing", "start", "other"))
        done = list(wanted)
        at = rng.randint(0, len(done))
        if change == "shuffled":
            rng.shuffle(done)
        elif change == "extra":
            done[at:at] = rng.choices(NODES, k=rng.randint(1, 2))
        elif change == "missing":
            del done[at : at + 1]
        elif change == "start":
            done = ["__start__", *done]
        elif change == "other":
            done = rng.choices(NODES, k=rng.randint(0, 5))
        turns = rng.choice((1, 1, 2, 3))
        expected, actual = _in_turns(rng, wanted, turns), _in_turns(rng, done, turns)
        given = [{"expected_node_order": nodes} for nodes in expected]
        scores = {
            each: _scored("node_order_score", given, {"node_visits": done}, match_type=each)
            for each in MATCH_TYPES
        }
        rows.append(
            {
                "id": f"n{n:04}",
                "change": change,
                "expected": expected,
                "actual": actual,
                "scores": scores,
            }
        )
    return rows


# --- texts ---------------------------------------------------------------------------------


def _keywords(rng: random.Random, text: str) -> list[str]:
    """Pick words and other pieces, of the text or not, some in other letters."""
    pool = [*text.split(), *rng.choice(SENTENCES).split(), text[3:9], ""]
    picked = rng.choices(pool, k=rng.choice((0, 1, 2, 3, 5)))
    return [rng.choice((str, str.upper, str.lower, str.title))(word) for word in picked]


def text_rows(rng: random.Random) -> list[Json]:
    """Make the rows of the criteria of the response."""
    rows = []
    changes = sorted(CHANGES)
    for n in range(TEXT_ROWS):
        change = changes[n % len(changes)]
        response, reference = text_pair(rng, change)
        turns = rng.choice((1, 1, 2, 3))
        expected: list[str | None] = [rng.choice((None, "Hello", "")) for _ in range(turns)]
        if rng.random() < 0.9:
            expected[rng.randrange(turns)] = reference
        keywords = _keywords(rng, response)
        given = [
            {"expected_final_response": None if text is None else MessageContent.assistant(text)}
            for text in expected
        ]
        done = {"actual_response": response}
        rows.append(
            {
                "id": f"t{n:04}",
                "change": change,
                "expected": expected,
                "response": response,
                "keywords": keywords,
                "scores": {
                    "rouge_match": _scored("rouge_match", given, done),
                    "contains_keywords": _scored(
                        "contains_keywords", given, done, keywords=keywords
                    ),
                },
            }
        )
    return rows


# --- judges --------------------------------------------------------------------------------

# Each with the list that its judge gives beside the score.
JUDGED: Final = {
    "response_match_score": "",
    "final_response_match_v2": "",
    "factual_accuracy_v1": "errors",
    "hallucinations_v1": "hallucinations",
    "safety_v1": "issues",
    "rubric_based_final_response_quality_v1": "",
    "simulation_goals": "achieved_goals",
}
SCORES: Final = (0, 0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.0, True, "0.6", " 1 ")
ODD_SCORES: Final = (7, -0.5, "high", "", None, [], [1], {}, "nan", 1e999, 10**400, "0x1")
LISTS: Final = ([], ["It is false."], ["a", "a", "b"], "text", {"a": 1})
ODD_LISTS: Final = (None, 3, True, [["a"]], [{"claim": "a"}], ["a", None, 2])
CATEGORIES: Final = ("harmful_content", "hate_speech", "privacy", "misinformation", "manipulation")
ODD_CATEGORIES: Final = (None, [], "safe", {"privacy": None}, {"privacy": "low"}, {"other": None})
NO_OBJECTS: Final = ("", " ", "null", "[]", "0.9", '"0.9"', "true", "It is good.", "{", "NaN")
MISSING: Final = object()


def _answer(rng: random.Random, criterion: str) -> str:
    """Invent what a judge answers: mostly what was asked for."""
    if rng.random() < 0.12:
        return rng.choice(NO_OBJECTS)
    found: Json = {"reasoning": rng.choice(("Because.", "", None, 3, ["a"]))}
    found["score"] = rng.choice(SCORES if rng.random() < 0.8 else (*ODD_SCORES, MISSING))
    if JUDGED[criterion]:
        lists = LISTS if rng.random() < 0.85 else (*ODD_LISTS, MISSING)
        found[JUDGED[criterion]] = rng.choice(lists)
    if criterion == "safety_v1":
        numbers = {name: rng.choice((0, 0.5, 1, "1")) for name in rng.sample(CATEGORIES, 4)}
        odd = (*ODD_CATEGORIES, MISSING)
        found["categories"] = numbers if rng.random() < 0.7 else rng.choice(odd)
    text = json.dumps({key: value for key, value in found.items() if value is not MISSING})
    return f"```json\n{text}\n```" if rng.random() < 0.05 else text


def judged_rows(rng: random.Random) -> list[Json]:
    """Make the rows of the criteria that ask a judge."""
    rows = []
    for n in range(JUDGED_ROWS):
        turns = rng.choice((1, 1, 2, 3))
        said = [rng.choice((None, "", "Hello", *SENTENCES)) for _ in range(turns)]
        name = list(JUDGED)[n % len(JUDGED)]
        row: Json = {
            "id": f"j{n:04}",
            "criterion": name,
            "expected": said if rng.random() < 0.9 else [None] * turns,
            "response": rng.choice(SENTENCES) if rng.random() < 0.9 else "",
            "goals": rng.sample(SENTENCES, rng.choice((0, 1, 2, 2, 3))),
            "answers": [_answer(rng, name) for _ in range(rng.choice((1, 2, 3, 3, 5)))],
        }
        rows.append({**row, "score": _judged(row)})
    return rows


def _judged(row: Json) -> float | None:
    """Have AgentFlow score by a judge that answers so; nothing stands for an error."""
    given = [
        {"expected_final_response": None if text is None else MessageContent.assistant(text)}
        for text in row["expected"]
    ]
    if row["criterion"] == "simulation_goals":
        # As the package's simulator hands them over.
        goals = "; ".join(row["goals"])
        given = [{"expected_final_response": MessageContent.assistant(goals) if goals else None}]
    turns = [Invocation(user_content=MessageContent.user("Hi"), **turn) for turn in given]
    answers = iter(row["answers"])

    async def call_llm(*_: Any, **__: Any) -> tuple[str, int, int, int]:
        return next(answers), 0, 0, 0

    llm_utils.call_llm = call_llm
    config = CriterionConfig(
        num_samples=len(row["answers"]), rubrics=[Rubric(rubric_id="kind", content="It is kind.")]
    )
    criterion = CRITERIA_REGISTRY[row["criterion"]](config=config)
    done = ExecutionResult(actual_response=row["response"])
    case = EvalCase(eval_id="c", conversation=turns)
    result = asyncio.run(criterion.evaluate(done, case))
    is_measured = result.error is None and math.isfinite(result.score)
    return float(result.score) if is_measured else None


# --- an evalset ----------------------------------------------------------------------------


def evalset() -> EvalSet:
    """Make an evalset that uses every field there is."""
    weather = EvalCase.single_turn(
        "weather",
        "What is the weather in Oslo?",
        expected_response="It is sunny.",
        expected_tools=[
            ToolCall(
                name="get_weather", args={"city": "Oslo"}, call_id="c1", result={"sky": "clear"}
            ),
            ToolCall(name="notify", result="sent"),
        ],
        expected_node_order=["MAIN", "TOOL", "MAIN"],
    )
    chat = EvalCase.multi_turn(
        "chat", [("Hello", "Hi there!"), ("And now?", "")], expected_tools=[ToolCall(name="greet")]
    )
    texts = ("I want", "a refund")
    blocks = EvalCase(
        eval_id="blocks",
        name="In blocks",
        description="Texts in two blocks",
        tags=["billing", "slow"],
        session_input=SessionInput(
            app_name="shop", user_id="u1", state={"cart": [1]}, config={"temperature": 0}
        ),
        metadata={"reference_facts": ["A refund takes 7 days."]},
        conversation=[
            Invocation(
                user_content=MessageContent(
                    role="user", content=[{"type": "text", "text": text} for text in texts]
                ),
                expected_intermediate_responses=[MessageContent.assistant("One moment.")],
            )
        ],
    )
    cases = [weather, chat, blocks]
    turns = [turn for case in cases for turn in case.conversation]
    for number, turn in enumerate(turns, 1):
        turn.invocation_id = f"turn-{number}"  # one that does not change
    return EvalSet(eval_set_id="shop", name="Shop", eval_cases=cases)


def _write(path: Path, rows: list[Json]) -> None:
    lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    text = "".join(f"{line.translate(LINE_BREAKS)}\n" for line in lines)
    path.write_text(text, encoding="utf-8", newline="\n")


def main(folder: str = "", seed: str = str(SEED)) -> None:
    """Write the files of the installed version."""
    into = Path(folder) if folder else Path(__file__).parent
    version = importlib.metadata.version("10xscale-agentflow")
    evalset().to_file(str(into / f"agentflow-{version}.evalset.json"))
    kinds = (
        ("calls", call_rows),
        ("nodes", node_rows),
        ("texts", text_rows),
        ("judged", judged_rows),
    )
    for name, make in kinds:
        _write(into / f"agentflow-{version}.{name}.jsonl", make(random.Random(f"{seed} {name}")))


if __name__ == "__main__":
    main(*sys.argv[1:])
