"""Recorded calls in a file: order, repeats, kills and secrets."""

import json
import multiprocessing
import os
import signal
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.llm.gateway import model_cassette
from ci_eval.llm.gateway.answers import Answer
from ci_eval.llm.gateway.cassette_lines import MAX_TEXT_CHARS, Place, digest_of_trial, shortened
from ci_eval.llm.gateway.model_cassette import ModelCassette, UnfitError
from ci_eval.records.errors import UsageError
from ci_eval.records.trials import TrialKey
from ci_eval.text.redact import Secrets

JSON = "application/json"
SECRETS = Secrets({"API_KEY": "hunter2-hunter2"})


def key(case: str = "c", repeat: int = 0) -> TrialKey:
    return TrialKey(agent="a", evalset="e", case=case, repeat=repeat)


def opened(path: Path) -> ModelCassette:
    found = ModelCassette(path, shown="c.jsonl", secrets=SECRETS)
    found.load()
    return found


def place(request: int, number: int = 0, of: TrialKey | None = None) -> Place:
    return Place(digest_of_trial(of or key()), f"{request:032x}", number)


def add(cassette: ModelCassette, at: Place, text: str = "t", of: TrialKey | None = None) -> None:
    request = {"model": "m", "contents": text}
    cassette.add(of or key(), at, request, Answer(200, JSON, json.dumps(text).encode()))


def text_at(cassette: ModelCassette, at: Place) -> Any:
    found = cassette.answer(at)
    return found and json.loads(found.body)


def test_a_call_is_found_by_trial_request_and_number(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    writer = opened(path)
    for number in range(2):
        add(writer, place(1, number), f"answer {number}")

    found = opened(path)
    assert [text_at(found, place(1, number)) for number in range(3)] == [
        "answer 0",
        "answer 1",
        None,
    ]
    assert text_at(found, place(1, 0, key(repeat=1))) is None
    assert text_at(found, place(2)) is None


def test_a_trial_that_is_recorded_anew_loses_what_it_had(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    other = key("other")
    writer = opened(path)
    add(writer, place(1))
    add(writer, place(1, of=other), of=other)
    again = opened(path)
    again.anew(digest_of_trial(key()))
    add(again, place(2))

    for found in (again, opened(path)):
        assert text_at(found, place(1)) is None
        assert text_at(found, place(2)) == "t"
        assert text_at(found, place(1, of=other)) == "t"
    again.finish(digest_of_trial(key()), None)
    again.tidy()
    assert "anew" not in path.read_text()
    assert len(opened(path)) == 2


def test_a_trial_that_got_no_answer_when_it_was_recorded_anew_keeps_what_it_had(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    add(opened(path), place(1))
    again = opened(path)
    for _ in range(2):  # the provider is down for two runs
        again.anew(digest_of_trial(key()))

    resumed = ModelCassette(path, shown="c", secrets=SECRETS)
    resumed.load(resumes=True)
    assert text_at(resumed, place(1)) is None  # it is asked again
    assert text_at(opened(path), place(1)) == "t"
    again.tidy()
    assert "anew" not in path.read_text()
    assert text_at(opened(path), place(1)) == "t"


def test_a_resumed_run_knows_which_trials_an_interrupted_one_began(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    begun, other = key(), key("other")
    add(opened(path), place(1, of=other), of=other)
    writer = opened(path)
    writer.anew(digest_of_trial(begun))
    add(writer, place(1))

    def taken() -> list[bool]:
        found = ModelCassette(path, shown="c", secrets=SECRETS)
        found.load(resumes=True)
        return [found.take_begun(digest_of_trial(each)) for each in (other, begun, begun)]

    assert taken() == [False, True, False]  # after a kill
    writer.tidy()  # after an interruption, or an outage
    assert taken() == [False, True, False]
    assert path.read_text().count("anew") == 1
    assert text_at(opened(path), place(1)) == "t"

    resumed = ModelCassette(path, shown="c", secrets=SECRETS)
    resumed.load(resumes=True)
    resumed.take_begun(digest_of_trial(begun))
    add(resumed, place(2))
    resumed.tidy()  # interrupted again
    assert taken() == [False, True, False]
    resumed.finish(digest_of_trial(begun), None)
    add(resumed, place(3))
    resumed.tidy()
    assert taken() == [False, False, False]
    assert len(opened(path)) == 4


def test_a_new_recording_takes_up_nothing_that_an_interrupted_one_left(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    writer = opened(path)
    writer.anew(digest_of_trial(key()))
    add(writer, place(1))
    add(writer, place(1, of=key("other")), of=key("other"))
    assert opened(path).partial == {digest_of_trial(key())}

    opened(path).drop_partial()
    resumed = ModelCassette(path, shown="c", secrets=SECRETS)
    resumed.load(resumes=True)
    assert not resumed.take_begun(digest_of_trial(key()))
    assert (text_at(resumed, place(1)), len(resumed)) == (None, 1)


def test_a_resumed_recording_that_ends_leaves_no_trial_as_unfinished(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    writer = opened(path)
    writer.anew(digest_of_trial(key()))
    add(writer, place(1))
    resumed = ModelCassette(path, shown="c", secrets=SECRETS)
    resumed.load(resumes=True)
    add(resumed, place(1, of=key("other")), of=key("other"))
    resumed.forget_begun()  # the trial had ended, so it is not run again
    resumed.tidy()

    assert "anew" not in path.read_text()
    assert (opened(path).partial, len(opened(path))) == (set(), 2)


def test_a_call_without_the_equal_one_before_it_belongs_to_a_part_of_a_trial(tmp_path: Path):
    writer = opened(tmp_path / "c.jsonl")
    add(writer, place(1, 1))
    assert writer.partial == {digest_of_trial(key())}
    add(writer, place(1, 0))
    assert not writer.partial


def test_a_file_that_another_process_sorts_is_indexed_again(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    writer = opened(path)
    for case in ("z", "y"):
        add(writer, place(1, of=key(case)), case, of=key(case))
    reader = opened(path)
    add(writer, place(1, of=key("a")), "a", of=key("a"))
    writer.tidy()

    assert [text_at(reader, place(1, of=key(case))) for case in ("y", "z")] == ["y", "z"]
    assert not reader.damage


def test_heads_name_the_trial_and_the_model_of_each_call(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    writer = opened(path)
    for number in (0, 1, 1):  # one is recorded again
        add(writer, place(1, number), ',"request":')
    add(writer, place(2, of=key("other")), of=key("other"))
    path.write_text(path.read_text().replace('"case":"other"', '"case":5'))

    found = opened(path)
    assert [*found.trials_and_models()] == [(each.trial, each.model) for each in found.calls()]
    assert [each.case for each, _ in found.trials_and_models()] == ["c", "c"]


def test_the_order_of_lines_depends_on_no_order_of_calls(tmp_path: Path):
    calls = [(key(case, repeat), size) for case in "ba" for repeat in (1, 0) for size in (9, 3)]
    texts = []
    for name, order in (("one", calls), ("other", calls[::-1])):
        cassette = opened(tmp_path / name)
        for trial, size in order:
            add(cassette, place(size, of=trial), "x" * size, trial)
        cassette.tidy()
        texts.append((tmp_path / name).read_text())

    assert texts[0] == texts[1]
    rows = [json.loads(line) for line in texts[0].splitlines()[1:]]
    assert [(row["case"], row["repeat"], len(row["request"]["contents"])) for row in rows] == [
        (case, repeat, size) for case in "ab" for repeat in (0, 1) for size in (3, 9)
    ]


def _write_for_ever(path: Path) -> None:
    cassette = opened(path)
    for number in range(1_000_000):
        add(cassette, place(1, number), "x" * 5000)


@pytest.mark.processes
def test_a_kill_leaves_every_line_that_was_recorded(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    fork = multiprocessing.get_context("fork")
    for _ in range(5):
        size = path.stat().st_size if path.exists() else 0
        child = fork.Process(target=_write_for_ever, args=(path,))
        child.start()
        while not path.exists() or path.stat().st_size < size + 50_000:
            pass
        assert child.pid
        os.kill(child.pid, signal.SIGKILL)
        child.join()

        lines = path.read_bytes().split(b"\n")
        whole = [json.loads(line) for line in lines[1:-1] if line.endswith(b"}")]
        found = opened(path)
        assert len(found) == len({row["call"] for row in whole}) > 0
        add(found, place(2), "after the kill")
        assert text_at(opened(path), place(2)) == "after the kill"


def test_known_secrets_are_not_written(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    add(opened(path), place(1), "my key is hunter2-hunter2")

    assert "hunter2" not in path.read_text()
    assert text_at(opened(path), place(1)) == "my key is [API_KEY]"


@pytest.mark.parametrize(("parts", "fits"), [(3, False), (1, True)])
def test_a_secret_that_a_stream_holds_in_pieces_is_not_written(tmp_path: Path, parts, fits):
    path, secret = tmp_path / "c.jsonl", "hunter2-hunter2"
    size = len(secret) // parts
    texts = [secret[at : at + size] for at in range(0, len(secret), size)]
    events = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    body = "".join(f"data: {json.dumps(each)}\n\n" for each in events).encode()
    writer = opened(path)
    writer.begin()
    with nullcontext() if fits else pytest.raises(UnfitError, match="secret in pieces"):
        writer.add(key(), place(1), {"model": "m"}, Answer(200, "text/event-stream", body))

    assert ("[API_KEY]" in path.read_text()) == fits
    assert len(opened(path)) == int(fits)


def test_long_texts_of_a_request_are_cut_and_still_differ():
    one, other = (shortened({"a": ["x" * MAX_TEXT_CHARS + end]}) for end in ("1", "2"))
    assert one != other
    assert len(one["a"][0]) < MAX_TEXT_CHARS + 50


def test_an_answer_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(model_cassette, "MAX_LINE_BYTES", 1000)
    add(opened(tmp_path / "c.jsonl"), place(1), "x" * 200)
    with pytest.raises(UnfitError):
        # Fewer characters than bytes.
        add(opened(tmp_path / "c.jsonl"), place(2), "x" * 100 + "é" * 150)


@pytest.mark.parametrize(
    "head",
    [
        '{"ci-eval model cassette":2}',
        '{"ci-eval cassette":1}',
        "other",
        '{"ci-eval model cassette":',
    ],
)
def test_another_file_is_refused(tmp_path: Path, head: str):
    (tmp_path / "c.jsonl").write_text(head + "\n")
    with pytest.raises(UsageError, match="cassette"):
        opened(tmp_path / "c.jsonl")


@pytest.mark.parametrize(
    ("before", "after"),
    [('"status":200', '"status":"x"'), ('"agent":"a"', '"agent":5'), ('"body"', '"other"')],
)
def test_an_edited_line_that_is_no_call_is_not_found(tmp_path: Path, before: str, after: str):
    path = tmp_path / "c.jsonl"
    add(opened(path), place(1))
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))

    assert opened(path).get(place(1)) is None


def test_calls_of_other_trials_are_removed(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    cassette = opened(path)
    for repeat in range(3):
        add(cassette, place(1, of=key(repeat=repeat)), of=key(repeat=repeat))

    assert cassette.keep([key(), key("other")]) == 2
    assert [each.trial for each in opened(path).calls()] == [key()]


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 99999, "type": JSON, "body": "t"},
        {"status": 1e400, "type": JSON, "body": "t"},
        {"status": "200", "type": JSON, "body": "t"},
        {"status": 200, "type": "text/x\r\nset-cookie: a=b", "text": "t"},
        {"status": 200, "type": "text/html; charset=x", "text": "t"},
        {"status": 200, "type": None, "text": "t"},
    ],
)
def test_an_answer_that_no_provider_sends_is_not_recorded(tmp_path: Path, answer: Any):
    path = tmp_path / "c.jsonl"
    add(opened(path), place(1))
    head, line = path.read_text().splitlines()
    row = {**json.loads(line), "answer": answer}
    path.write_text(f"{head}\n{json.dumps(row, separators=(',', ':'))}\n")

    assert opened(path).answer(place(1)) is None


LIKE_AN_ANSWER = {"status": 200, "type": JSON, "body": "wrong"}


def reordered(line: str, **last: Any) -> str:
    row = json.loads(line)
    changed = {"call": row.pop("call"), "answer": row.pop("answer"), **row, **last}
    return json.dumps(changed, separators=(",", ":"))


@pytest.mark.parametrize(
    "edited",
    [
        lambda line: line,
        lambda line: line.replace('"answer":', '"answer" :'),
        reordered,
        lambda line: reordered(line, last={"x": 1, "answer": LIKE_AN_ANSWER}),
    ],
)
@pytest.mark.parametrize("body", ["t", {"x": 1, "answer": LIKE_AN_ANSWER}, ',"answer":{}}'])
def test_an_answer_is_found_wherever_it_is_in_its_line(tmp_path: Path, edited: Any, body: Any):
    path = tmp_path / "c.jsonl"
    request = {"model": "m", "x": {"y": 1, "answer": LIKE_AN_ANSWER}}
    answer = Answer(200, JSON, json.dumps(body).encode())
    opened(path).add(key(), place(1), request, answer)
    head, line = path.read_text().splitlines()
    path.write_text(f"{head}\n{edited(line)}\n")

    assert text_at(opened(path), place(1)) == body


def test_an_answer_in_the_request_of_a_damaged_line_is_not_replayed(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    request = {"model": "m", "answer": LIKE_AN_ANSWER}
    opened(path).add(key(), place(1), request, Answer(200, JSON, b'"t"'))
    path.write_text(path.read_text().rpartition(',"answer":')[0] + "\n")
    cassette = opened(path)

    assert (cassette.answer(place(1)), cassette.strange) == (None, 1)


@pytest.mark.skipif(os.name == "nt", reason="files that are open cannot be replaced there")
def test_a_committed_link_beside_the_cassette_is_not_written_through(tmp_path: Path):
    outside = tmp_path / "outside"
    outside.write_text("mine")
    folder = tmp_path / "repository"
    folder.mkdir()
    for name in (".c.jsonl.draft", f".c.jsonl.{os.getpid()}"):
        (folder / name).symlink_to(outside)
    writer = opened(folder / "c.jsonl")
    writer.anew(digest_of_trial(key()))
    add(writer, place(1))

    writer.tidy()

    assert outside.read_text() == "mine"
    assert text_at(opened(folder / "c.jsonl"), place(1)) == "t"


@pytest.mark.skipif(os.name == "nt", reason="files that are open cannot be replaced there")
def test_a_cassette_that_is_a_link_stays_one(tmp_path: Path):
    (tmp_path / "evals").mkdir()
    link, target = tmp_path / "evals" / "c.jsonl", tmp_path / "shared.jsonl"
    link.symlink_to(target)
    for _ in range(2):
        writer = opened(link)
        writer.begin()
        writer.anew(digest_of_trial(key()))
        add(writer, place(1))
        writer.finish(digest_of_trial(key()), None)
        writer.tidy()

    assert link.is_symlink()
    assert len(target.read_text().splitlines()) == 2
    assert text_at(opened(link), place(1)) == "t"
    assert not [each for each in (tmp_path / "evals").iterdir() if each != link]


TRIALS = [key(case, repeat) for case in "abc" for repeat in (0, 1)]
RECORDING = st.lists(
    st.tuples(st.integers(0, len(TRIALS) - 1), st.booleans(), st.integers(0, 3)), max_size=20
)
"""What a run records: a trial, whether anew, and how many requests."""


@given(before=RECORDING, then=RECORDING, homes=st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_the_cassette_of_merged_shards_is_that_of_a_whole_run(before, then, homes):
    with tempfile.TemporaryDirectory() as folder:
        whole, main = Path(folder, "whole"), Path(folder, "main")
        for path in (whole, main):
            cassette = opened(path)
            record(cassette, before, "before")
            cassette.begin()
            cassette.tidy()
        cassette = opened(whole)
        record(cassette, then, "then")
        cassette.tidy()
        parts = {f"shard {home}": Path(folder, f"shard-{home}") for home in range(3)}
        for home, part in enumerate(parts.values()):
            cassette = ModelCassette(main, shown="c", secrets=SECRETS, own=part)
            cassette.load()
            cassette.begin()
            record(cassette, [each for each in then if homes[each[0]] == home], "then")
            cassette.tidy()
        opened(main).absorb(parts)

        assert main.read_bytes() == whole.read_bytes()


def record(cassette: ModelCassette, steps: list[tuple[int, bool, int]], text: str) -> None:
    for number, is_anew, requests in steps:
        trial = TRIALS[number]
        if is_anew:
            cassette.anew(digest_of_trial(trial))
        for request in range(requests):
            add(cassette, place(request, of=trial), text, trial)
        cassette.finish(digest_of_trial(trial), None)


def test_parts_with_calls_of_one_trial_are_refused(tmp_path: Path):
    parts = {f"shard {number}/2": tmp_path / str(number) for number in (1, 2)}
    for path in parts.values():
        cassette = opened(path)
        cassette.begin()
        cassette.anew(digest_of_trial(key()))
        add(cassette, place(1))

    message = r"shard 2/2 cannot be merged: like shard 1/2, it recorded calls of a on e/c"
    with pytest.raises(UsageError, match=message):
        opened(tmp_path / "c").absorb(parts)
    assert not (tmp_path / "c").exists()
