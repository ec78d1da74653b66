import json
import multiprocessing
import os
from pathlib import Path

import pytest

from ci_eval.llm import line_file
from ci_eval.llm.cassette import Cassette
from ci_eval.records.errors import UsageError
from ci_eval.records.questions import Answer

KEYS = [f"{number:032x}" for number in range(50)]


def opened(path: Path) -> Cassette:
    cassette = Cassette(path, shown="c.jsonl")
    cassette.load()
    return cassette


def test_an_answer_comes_back_as_it_was(tmp_path: Path):
    answer = Answer(
        text='a "b"\n\u2028 é \U0001f600',
        finish="length",
        input_tokens=3,
        output_tokens=4,
        model="m",
    )
    opened(tmp_path / "c.jsonl").add(KEYS[0], answer, about="ci/c")

    found = opened(tmp_path / "c.jsonl")
    assert found.get(KEYS[0]) == answer
    assert found.get(KEYS[1]) is None
    assert not found.is_empty


def test_the_last_answer_under_a_key_counts(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    for text in ("one", "two"):
        opened(path).add(KEYS[0], Answer(text=text), about="ci/c")
    opened(path).add(KEYS[1], Answer(text="three"), about="ci/c")

    assert opened(path).get(KEYS[0]).text == "two"
    opened(path).tidy()
    lines = path.read_text().splitlines()
    assert [json.loads(line).get("answer") for line in lines] == [
        None,
        {"text": "two"},
        {"text": "three"},
    ]
    assert [each.name for each in tmp_path.iterdir()] == ["c.jsonl"]


def test_a_line_that_a_kill_left_broken_harms_no_other(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    opened(path).add(KEYS[0], Answer(text="one"), about="ci/c")
    with path.open("a") as file:
        file.write(f'{{"key":"{KEYS[1]}","answer":{{"te')

    opened(path).add(KEYS[2], Answer(text="three"), about="ci/c")

    found = opened(path)
    assert [found.get(key) and found.get(key).text for key in KEYS[:3]] == ["one", None, "three"]


@pytest.mark.parametrize("broken", ["{", '"answer":3', '"answer":{"text":1}}'])
def test_a_line_that_cannot_be_read_hides_no_earlier_answer(tmp_path: Path, broken: str):
    path = tmp_path / "c.jsonl"
    opened(path).add(KEYS[0], Answer(text="one"), about="ci/c")
    with path.open("a") as file:
        file.write(f'{{"key":"{KEYS[0]}",{broken}}}\n')

    assert opened(path).get(KEYS[0]) == Answer(text="one")
    opened(path).tidy()
    assert opened(path).get(KEYS[0]) == Answer(text="one")


@pytest.mark.parametrize("mark", ["<<<<<<< HEAD", "||||||| 1a2b3c", "=======", ">>>>>>> main"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_file_with_a_merge_conflict_is_refused(tmp_path: Path, mark: str, at: int):
    path = tmp_path / "c.jsonl"
    opened(path).add(KEYS[0], Answer(text="one"), about="ci/c")
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:at], mark, *lines[at:]]))

    for act in (lambda: opened(path), lambda: Cassette(path, shown="c.jsonl").absorb([])):
        with pytest.raises(UsageError, match=r"c\.jsonl has a merge conflict"):
            act()
    assert mark in path.read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["c.jsonl"]


def test_one_that_reads_while_another_tidies_gets_the_answer_or_none(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    for text in ("a long answer that is dropped", "b"):
        opened(path).add(KEYS[0], Answer(text=text), about="ci/c")
    opened(path).add(KEYS[1], Answer(text="c"), about="ci/c")
    reader = opened(path)

    opened(path).tidy()

    assert reader.get(KEYS[1]) in (None, Answer(text="c"))
    assert reader.get(KEYS[0]) in (None, Answer(text="b"))


def _write(path: Path, first: int) -> None:
    cassette = opened(path)
    for key in KEYS[first::5]:
        cassette.add(key, Answer(text=key * 500), about="ci/c")
        if first == 0:
            cassette.tidy()


@pytest.mark.slow
def test_several_processes_may_write_at_once(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    start = multiprocessing.get_context("spawn")
    writers = [start.Process(target=_write, args=(path, first)) for first in range(5)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()

    found = opened(path)
    assert [each.exitcode for each in writers] == [0] * 5
    assert all(found.get(key) == Answer(text=key * 500) for key in KEYS)


def test_a_line_that_is_too_long_holds_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(line_file, "MAX_LINE_BYTES", 1000)
    path = tmp_path / "c.jsonl"
    for key, text in zip(KEYS, ("short", "x" * 2000, "short, too"), strict=False):
        opened(path).add(key, Answer(text=text), about="ci/c")

    for _ in range(2):
        found = opened(path)
        assert [found.get(key) is not None for key in KEYS[:3]] == [True, False, True]
        found.tidy()


def test_a_file_that_is_too_long_is_refused(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    opened(path).add(KEYS[0], Answer(text="one"), about="ci/c")
    os.truncate(path, line_file.MAX_BYTES + 1)
    with pytest.raises(
        UsageError, match=r"c\.jsonl is larger than 1024 MiB, the limit of cassettes"
    ):
        opened(path)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ('{"ci-eval cassette":2}\n', "is a version 2 cassette; this ci-eval reads version 1"),
        ('{"ci-eval cassette":' + "1" * 5_000 + "}\n", "is not a ci-eval cassette"),
        ('{"key":"00"}\n', "is not a ci-eval cassette"),
        ("hello", "is not a ci-eval cassette"),
        ("\x00\xff\n", "is not a ci-eval cassette"),
    ],
)
def test_what_is_no_cassette_of_this_version_is_refused_and_left_alone(tmp_path, head, message):
    path = tmp_path / "c.jsonl"
    path.write_text(head)

    with pytest.raises(UsageError, match=message) as caught:
        opened(path)
    assert "c.jsonl" in str(caught.value)
    assert caught.value.hint
    assert path.read_text() == head


def test_an_empty_file_becomes_a_cassette(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    path.touch()
    opened(path).add(KEYS[0], Answer(text="one"), about="ci/c")
    assert opened(path).get(KEYS[0]).text == "one"


def test_a_file_that_cannot_be_written_says_so_at_the_beginning(tmp_path: Path):
    path = tmp_path / "no folder"
    path.write_text("")
    with pytest.raises(FileExistsError) as caught:
        Cassette(path / "c.jsonl", shown="c.jsonl").begin()
    assert os.fspath(path) in str(caught.value.filename)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes that are files")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "c.jsonl")
    cassette = Cassette(tmp_path / "c.jsonl", shown="c.jsonl")
    for each in (cassette.load, cassette.begin):
        with pytest.raises(UsageError, match=r"^c\.jsonl: is not a file$"):
            each()


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are followed")
def test_no_link_that_is_put_in_its_place_meanwhile_is_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "precious").write_text("")
    (tmp_path / "c.jsonl").symlink_to(tmp_path / "precious")
    monkeypatch.setattr(os.path, "realpath", lambda path: path)  # the link came after that
    with pytest.raises(OSError, match=r"c\.jsonl"):
        Cassette(tmp_path / "c.jsonl", shown="c.jsonl").begin()
    assert (tmp_path / "precious").read_text() == ""


def test_shards_add_their_answers_and_of_several_the_first_counts(tmp_path: Path):
    path, parts = tmp_path / "c.jsonl", [tmp_path / "1", tmp_path / "2"]
    opened(path).add(KEYS[0], Answer(text="old"), about="ci/c")
    for number, part in enumerate(parts):
        shard = Cassette(path, shown="c.jsonl", own=part)
        shard.load()
        assert shard.get(KEYS[0]).text == "old"
        for key, text in ((0, "same"), (1, f"of {number}"), (2 + number, "alone"), (4, "twice")):
            shard.add(KEYS[key], Answer(text=text), about="ci/c")
    opened(parts[0]).add(KEYS[4], Answer(text="at last"), about="ci/c")
    before = path.read_text()

    assert "same" not in before
    assert opened(path).absorb(parts) == 2
    found = opened(path)
    texts = [found.get(key).text for key in KEYS[:5]]
    assert texts == ["same", "of 0", "alone", "alone", "at last"]
    assert len(path.read_text().splitlines()) == 6
