"""Chunks of an answer make what ADK 2.13.0 makes of them.

Where CI_EVAL_VECTORS names a folder with `adk_streaming_observations.json`, what was seen of ADK
there is held here; where CI_EVAL_ADK_PYTHON names a Python with google-adk 2.13, its own aggregator
is asked about these and about a thousand answers more.
"""

import json
import os
import random
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ci_eval.formats.gemini_stream import Aggregator, ModelResponse, read_response
from ci_eval.records.cases import Part

Chunks = list[dict[str, Any]]


def chunk(*parts: dict[str, Any], fin: str = "", msg: str = "", usage: int = 0) -> dict[str, Any]:
    """Return a `GenerateContentResponse` as the API has it."""
    candidate: dict[str, Any] = {}
    if parts:
        candidate["content"] = {"role": "model", "parts": list(parts)}
    if fin:
        candidate["finishReason"] = fin
    if msg:
        candidate["finishMessage"] = msg
    found: dict[str, Any] = {"candidates": [candidate], "modelVersion": "m"}
    if usage:
        found["usageMetadata"] = {"totalTokenCount": usage}
    return found


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"text": said, **more}


def call(**fields: Any) -> dict[str, Any]:
    return {"functionCall": fields}


def arg(path: str, **value: Any) -> dict[str, Any]:
    return {"jsonPath": path, **value}


PROBES: dict[str, Chunks] = {
    "nothing": [],
    "text2": [chunk(text("Hel"), usage=1), chunk(text("lo"), fin="STOP", usage=3)],
    "usage_missing_last": [chunk(text("Hel"), usage=5), chunk(text("lo"), fin="STOP")],
    "thought_then_text": [
        chunk(text("th", thought=True)),
        chunk(text("ink", thought=True)),
        chunk(text("Ans")),
        chunk(text("wer"), fin="STOP"),
    ],
    "thought_sig": [chunk(text("a", thoughtSignature="eA==")), chunk(text("b"), fin="STOP")],
    "text_call_text": [
        chunk(text("A")),
        chunk(call(name="f", args={"x": 1})),
        chunk(text("B"), fin="STOP"),
    ],
    "stream_call": [
        chunk(text("pre")),
        chunk(call(name="f", willContinue=True)),
        chunk(call(partialArgs=[arg("$.city", stringValue="Par")], willContinue=True)),
        chunk(
            call(
                partialArgs=[
                    arg("$.city", stringValue="is"),
                    arg("$.n", numberValue=3),
                    arg("$.b", boolValue=True),
                    arg("$.z", nullValue="NULL_VALUE"),
                ],
                willContinue=True,
            )
        ),
        chunk(call(), fin="STOP"),
    ],
    "stream_nested_array": [
        chunk(
            call(
                name="f",
                partialArgs=[
                    arg("$.loc.lat", numberValue=1.5),
                    arg("$.items[0]", stringValue="a"),
                    arg("$.items[1]", stringValue="b"),
                ],
                willContinue=False,
            ),
            fin="STOP",
        )
    ],
    "stream_never_ends": [
        chunk(call(name="f", partialArgs=[arg("$.x", stringValue="1")], willContinue=True)),
        chunk(text("after"), fin="STOP"),
    ],
    "dup_ids": [
        chunk(call(name="f", args={"x": 1}, id="c1")),
        chunk(call(name="f", args={"x": 1}, id="c1"), fin="STOP"),
    ],
    "two_calls_no_id": [
        chunk(call(name="f", args={"x": 1}), call(name="f", args={"x": 1}), fin="STOP")
    ],
    "max_tokens": [chunk(text("part"), fin="MAX_TOKENS", msg="too long")],
    "safety_no_content": [chunk(fin="SAFETY")],
    "blocked_prompt": [{"promptFeedback": {"blockReason": "SAFETY"}}],
    "empty_text_chunk": [chunk(text("")), chunk(text("x"), fin="STOP")],
}


def aggregated(chunks: Chunks) -> dict[str, Any]:
    """Return the observations that result from `chunks`."""
    numbers = count(1)
    made = Aggregator(lambda: f"adk-{next(numbers)}")
    shown = [response(made.add(read_response(each))) for each in chunks]
    closed = made.close()
    return {"chunks": shown, "close": closed and response(closed)}


def response(found: ModelResponse) -> dict[str, Any]:
    parts = found.content.parts if found.content else None
    return {
        "partial": found.partial,
        "parts": [part(each) for each in parts] if parts else None,
        "err": found.error_code,
        "fin": found.finish_reason,
        "usage": (found.usage_metadata or {}).get("total_token_count"),
    }


def part(found: Part) -> Any:
    if found.text is not None:
        kind = "thought" if found.thought else "text"
        return f"{kind}:{found.text}" + ("|sig" if found.thought_signature else "")
    if not found.function_call:
        return "other"
    made = found.function_call
    ours = (made.id or "").startswith("adk-")
    return ["call", made.name, made.args, "gen" if ours else made.id]


# --- What was seen ------------------------------------------------------------------------------

FOLDER = os.environ.get("CI_EVAL_VECTORS")


@pytest.mark.skipif(not FOLDER, reason="CI_EVAL_VECTORS names no folder")
def test_each_observation_of_adk_holds_here() -> None:
    path = Path(FOLDER or "") / "adk_streaming_observations.json"
    seen = json.loads(path.read_text().replace('"FinishReason.', '"'))["2.13.0"]
    assert PROBES.keys() == {name for name in seen if name != "adk" and not name.startswith("ri.")}
    assert {name: aggregated(chunks) for name, chunks in PROBES.items()} == {
        name: seen[name] for name in PROBES
    }


# --- ADK itself ---------------------------------------------------------------------------------

ADK = os.environ.get("CI_EVAL_ADK_PYTHON", "")
ASKED = """
import asyncio, json, sys
from google.adk.utils.streaming_utils import StreamingResponseAggregator
from google.genai.types import GenerateContentResponse


def part(found):
    if found.text is not None:
        kind = "thought" if found.thought else "text"
        return f"{kind}:{found.text}" + ("|sig" if found.thought_signature else "")
    if not found.function_call:
        return "other"
    made = found.function_call
    ours = (made.id or "").startswith("adk-")
    return ["call", made.name, made.args, "gen" if ours else made.id]


def response(found):
    parts = found.content.parts if found.content else None
    usage = found.usage_metadata
    return {
        "partial": found.partial,
        "parts": [part(each) for each in parts] if parts else None,
        "err": found.error_code and getattr(found.error_code, "value", found.error_code),
        "fin": found.finish_reason and found.finish_reason.value,
        "usage": usage.total_token_count if usage else None,
    }


async def aggregated(chunks):
    made = StreamingResponseAggregator()
    shown = []
    for each in chunks:
        read = GenerateContentResponse.model_validate(each)
        shown += [response(found) async for found in made.process_response(read)]
    closed = made.close()
    return {"chunks": shown, "close": closed and response(closed)}


async def main():
    for line in sys.stdin:
        print(json.dumps(await aggregated(json.loads(line))))


asyncio.run(main())
"""

PATHS = ("$.a", "$.b", "$.b.c", "$.l[0]", "$.l[2]", "$.l[1].x", "$['q k']", '$["a.b"]', "d", "$[0]")
VALUES: tuple[dict[str, Any], ...] = (
    {"stringValue": "ab"},
    {"stringValue": ""},
    {"numberValue": 2.5},
    {"boolValue": False},
    {"nullValue": "NULL_VALUE"},
    {},
)


class Anything:
    """Makes chunks of any kind, as `seed` has it."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def chunks(self) -> Iterator[dict[str, Any]]:
        chance = self._chance
        for _ in range(chance.randrange(1, 6)):
            found = [self.part() for _ in range(chance.randrange(3))]
            usage = chance.choice([0, 0, 3, 9])
            yield chunk(*found, fin=chance.choice(["", "", "STOP", "SAFETY"]), usage=usage)

    def part(self) -> dict[str, Any]:
        chance = self._chance
        match chance.randrange(8):
            case 0 | 1:
                sure = {"thoughtSignature": "eA=="} if chance.random() < 0.2 else {}
                return text(chance.choice(["a", "bc", ""]), **sure)
            case 2:
                return text("t", thought=True)
            case 3:
                return call(**{"name": chance.choice("fg"), "args": {"x": 1}, **self.id()})
            case 4:
                return {"inlineData": {"mimeType": "image/png", "data": "eA=="}}
            case _:
                return call(**self.piece())

    def id(self) -> dict[str, str]:
        return {"id": self._chance.choice(["c1", "c2"])} if self._chance.random() < 0.4 else {}

    def piece(self) -> dict[str, Any]:
        chance = self._chance
        found: dict[str, Any] = self.id()
        if chance.random() < 0.5:
            found["name"] = chance.choice("fg")
        if chance.random() < 0.8:
            found["willContinue"] = chance.random() < 0.7
        # One kind of value for each path, and one way to write it: ADK mixes up the others.
        paths = chance.sample(PATHS, chance.randrange(4))
        found["partialArgs"] = [arg(each, **VALUES[PATHS.index(each) % 6]) for each in paths]
        return found


@pytest.mark.skipif(not ADK, reason="CI_EVAL_ADK_PYTHON names no Python with google-adk")
def test_a_thousand_answers_come_out_as_adk_has_them() -> None:
    given = [*PROBES.values(), *(list(Anything(seed).chunks()) for seed in range(1000))]
    asked = "".join(json.dumps(each) + "\n" for each in given)
    command = [ADK, "-W", "ignore", "-c", ASKED]
    told = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=900)
    answers = told.stdout.splitlines()
    assert len(answers) == len(given), told.stderr
    for chunks, answer in zip(given, answers, strict=True):
        assert aggregated(chunks) == json.loads(answer), chunks
