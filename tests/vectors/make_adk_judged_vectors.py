"""Record what ADK makes of invented answers of a judge: readings, votes and scores.

Run by hand, as `make_adk_vectors.py` says, under an interpreter that has google-adk 2.13.0:

    adk/bin/python tests/vectors/make_adk_judged_vectors.py

The judge is a stand-in that ADK finds in its registry of models, so no model and no network
take part. The inputs depend on `SEED` alone. README.md describes the rows.
"""

# A script for an environment of its own, whose generators are seeded.
# ADK is what it runs in
# Where the project is type-checked, ADK need not be there.
# mypy: disable-error-code="import-not-found"

import asyncio
import importlib.metadata
import json
import logging
import random
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from google.adk.evaluation.conversation_scenarios import ConversationScenario
from google.adk.evaluation.eval_case import Invocation
from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric
from google.adk.evaluation.metric_evaluator_registry import DEFAULT_METRIC_EVALUATOR_REGISTRY
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry
from google.genai.types import Content, Part

Json = dict[str, Any]

SEED: Final = 20_132
ROWS: Final = 75
"""Of each metric, beside a row for each answer that is read by itself."""
PROMPT: Final = "Hi"

MATCH_ANSWERS: Final = (
    '{"reasoning": "r", "is_the_agent_response_valid": "valid"}',
    '{"reasoning": "r", "is_the_agent_response_valid": "invalid"}',
    '```json\n{\n "is_the_agent_response_valid": "valid"\n}\n```',
    '{"is_the_agent_response_valid": ["invalid"]}',
    '{"is_the_agent_response_valid": true}',
    '{"is_the_agent_response_valid": "almost", "reasoning": "r"}',
    '{"is_the_agent_response_invalid": "invalid"}',
    '{"is_the_agent_response_invalid": "no"}',
    '{"is_the_agent_response_valid": "Valid"}',
    '{"is_the_agent_response_valid": "partially valid"}',
    "I would say valid.",
)
VALID_ANSWERS: Final = (
    '{"reasoning": "r", "is_valid": True}',
    '{"reasoning": "r", "is_valid": False}',
    '{"is_valid": true}',
    '{"is_valid": "false"}',
    '{"is_valid": "partially valid"}',
    '{"is_valid": [True],\n}',
    '{"is_valid": "INVALID", "reasoning": "r"}',
    '{"is_valid": maybe}',
    '{"passes": True}',
    "It is valid.",
)
PROPERTIES: Final = (
    "The answer is polite.",
    "The agent doesn't ask twice - or thrice",
    "Every price has a currency, such as “EUR”",
    "`find_order` is called",
)
DECORATIONS: Final = ("{}", "{}", "**{}**", '"{}"', "  {}  ", "> {}", "`{}`", "I think of {}")
VERDICTS: Final = ("yes", "yes", "no", "no", "Yes.", "NO", "**yes**", "no, it does", "maybe", "n/a")
LABELS: Final = ("supported", "unsupported", "contradictory", "disputed", "not_applicable")
SENTENCES: Final = ("It is warm.", "Order 7 is in Oslo", "Bye!", "That is 20 °C.", "Anything else?")


class StandIn(BaseLlm):  # type: ignore[misc]  # `Any` where ADK is not installed
    """A model that answers what it was given, one after the other."""

    answers: ClassVar[list[str]] = []

    @classmethod
    def supported_models(cls) -> list[str]:
        """Return the names that ADK finds it by."""
        return ["stand-in"]

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield the next answer."""
        del llm_request, stream
        text = self.answers.pop(0)
        yield LlmResponse(content=Content(role="model", parts=[Part(text=text)]))


def _evaluate(metric: str, turns: list[Json], answers: list[str], **criterion: Any) -> Any:
    """Have ADK evaluate turns as its evaluation service does, and use up all answers."""
    options = {"judge_model": "stand-in", "num_samples": criterion.pop("samples", 1)}
    given = {"threshold": 0.5, "judge_model_options": options, **criterion}
    setting = EvalMetric(metric_name=metric, criterion=BaseCriterion.model_validate(given))
    evaluator = DEFAULT_METRIC_EVALUATOR_REGISTRY.get_evaluator(setting)
    read = [Invocation.model_validate(turn) for turn in turns]
    scenario = ConversationScenario(starting_prompt=PROMPT, conversation_plan="Talk.")
    StandIn.answers[:] = answers
    if metric == "per_turn_user_simulator_quality_v1":
        work = evaluator.evaluate_invocations(read, None, scenario)
    else:
        work = evaluator.evaluate_invocations(read, read)
    result = asyncio.run(work)
    assert not StandIn.answers, "every answer is for a question"
    return result


def _turn(asked: str, answered: str) -> Json:
    return {
        "user_content": {"parts": [{"text": asked}]},
        "final_response": {"role": "model", "parts": [{"text": answered}]},
    }


def _row(result: Any, **given: Any) -> Json:
    scores = [turn.score for turn in result.per_invocation_results]
    return {**given, "turns": scores, "overall": result.overall_score}


def match_rows(rng: random.Random) -> Iterator[Json]:
    """Make the rows of `final_response_match_v2`."""
    singles = [[[answer]] for answer in MATCH_ANSWERS]
    drawn = []
    for _ in range(ROWS):
        samples = rng.choice((1, 2, 3, 5))
        turns = rng.choice((1, 1, 2))
        drawn.append([rng.choices(MATCH_ANSWERS, k=samples) for _ in range(turns)])
    for answers in (*singles, *drawn):
        flat = [answer for turn in answers for answer in turn]
        turns = [_turn("q", f"a{n}") for n in range(len(answers))]
        samples = len(answers[0])
        result = _evaluate("final_response_match_v2", turns, flat, samples=samples)
        yield _row(result, metric="final_response_match_v2", answers=answers)


def simulator_rows(rng: random.Random) -> Iterator[Json]:
    """Make the rows of `per_turn_user_simulator_quality_v1`; the last answers are on the end."""
    singles = [([PROMPT], [[answer]]) for answer in VALID_ANSWERS]
    drawn = []
    for _ in range(ROWS):
        samples, more = rng.choice((1, 2, 3, 5)), rng.choice((0, 1, 2))
        messages = [rng.choice((PROMPT, f" {PROMPT}\n", "Ho")), *"ab"[:more]]
        weights = [6, 6, *([1] * (len(VALID_ANSWERS) - 2))]
        answers = [rng.choices(VALID_ANSWERS, weights, k=samples) for _ in range(more + 1)]
        drawn.append((messages, answers))
    for messages, answers in (*singles, *drawn):
        flat = [answer for turn in answers for answer in turn]
        turns = [_turn(message, "fine") for message in messages]
        samples = len(answers[0])
        metric = "per_turn_user_simulator_quality_v1"
        result = _evaluate(metric, turns, flat, samples=samples)
        yield _row(result, metric=metric, messages=messages, answers=answers)


def rubric_rows(rng: random.Random) -> Iterator[Json]:
    """Make the rows of rubrics, in the form that ADK asks its judges for."""
    for _ in range(ROWS):
        texts = rng.sample(PROPERTIES, k=rng.choice((1, 2, 3)))
        rubrics = {f"r{n}": text for n, text in enumerate(texts)}
        samples, count = rng.choice((1, 2, 3, 5)), rng.choice((1, 1, 2))
        answers = [[_answer(rng, rubrics) for _ in range(samples)] for _ in range(count)]
        metric = "rubric_based_final_response_quality_v1"
        result = _evaluate(
            metric,
            [_turn("q", f"a{n}") for n in range(count)],
            [answer for turn in answers for answer in turn],
            samples=samples,
            rubrics=[
                {"rubric_id": name, "rubric_content": {"text_property": text}}
                for name, text in rubrics.items()
            ],
        )
        verdicts = [
            {each.rubric_id: each.score for each in turn.rubric_scores or ()}
            for turn in result.per_invocation_results
        ]
        row = _row(result, metric=metric, rubrics=rubrics, answers=answers)
        yield row | {"verdicts": verdicts}


def _answer(rng: random.Random, rubrics: dict[str, str]) -> str:
    """Return a judge's words on rubrics, more or less in form."""
    said = []
    for name, text in rubrics.items():
        if rng.random() < 0.08:
            continue
        shown = text.upper() if rng.random() < 0.1 else text.replace("'", "\u2019")
        shown = rng.choice(DECORATIONS).format(shown)
        lines = [f"STEP 1: {text}", f"STEP 5: {rng.choice(VERDICTS)}"]
        lines += [f"ID: {rng.choice((name, name, 'r9', ''))}"] * (rng.random() < 0.6)
        lines += [f"Property: {shown}"]
        lines += ["Rationale: so it is"] * (rng.random() < 0.95)
        lines += [f"{rng.choice(('', '  '))}Verdict: {rng.choice(VERDICTS)}"]
        said.append("\n".join(lines))
    return "\n\n".join(said) or "Nothing to say."


def hallucination_rows(rng: random.Random) -> Iterator[Json]:
    """Make the rows of `hallucinations_v1`: an answer with the sentences, one with the labels."""
    for _ in range(ROWS):
        sentences = rng.sample(SENTENCES, k=rng.choice((1, 2, 3, 5)))
        change = rng.choice((None, None, None, None, "left out", "unknown"))
        blocks = []
        for number, sentence in enumerate(sentences):
            label = rng.choice(LABELS)
            if number == 0 and change == "left out":
                continue
            if number == 0 and change == "unknown":
                label = "partly"
            shown = rng.choice((label, f" {label.upper()} "))
            blocks.append(
                f"sentence: {sentence}\nlabel: {shown}\nrationale: r\n"
                f"supporting_excerpt: {rng.choice(('null', 'warm'))}\ncontradicting_excerpt: null"
            )
        tags = "\n".join(f"<sentence>{each}</sentence>" for each in sentences)
        answers = [tags, "\n\n".join(blocks) or "Nothing to say."]
        turn = _turn("q", " ".join(sentences))
        result = _evaluate("hallucinations_v1", [turn], answers)
        given = {"metric": "hallucinations_v1", "response": " ".join(sentences)}
        yield _row(result, **given, answers=answers) | {"change": change}


def main() -> None:
    """Write the file of the installed version of ADK."""
    # ADK warns about its experimental parts at every use, and about answers it cannot read.
    logging.disable(logging.WARNING)
    LLMRegistry.register(StandIn)
    version = importlib.metadata.version("google-adk")
    makers = (match_rows, simulator_rows, rubric_rows, hallucination_rows)
    rows = [row for make in makers for row in make(random.Random(f"{SEED} {make.__name__}"))]
    lines = (
        json.dumps({"id": f"j{n:04}", **row}, ensure_ascii=False, separators=(",", ":"))
        for n, row in enumerate(rows)
    )
    path = Path(__file__).with_name(f"adk-{version}.judged.jsonl")
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
