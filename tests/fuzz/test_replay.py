"""Every input that fuzzing starts from, or has found, goes through its reader once."""

import pytest
from fuzz.mutating import Mutator
from fuzz.run import CORPUS, replay
from fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_known_is_read_or_refused_in_words(name: str) -> None:
    files = sorted((CORPUS / name).iterdir())
    assert files, "a target without a seed"
    for file in files:
        try:
            replay(name, file.read_bytes())
        except BaseException as failure:
            failure.add_note(f"the input is {file}")
            raise


def test_there_is_no_input_without_a_target() -> None:
    assert {each.name for each in CORPUS.iterdir()} == TARGETS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_changed_inputs_keep_their_form_and_are_read_or_refused_in_words(name: str) -> None:
    mutator = Mutator(TARGETS[name].form, ("x",), lambda data, most: data[: most // 2])
    files = sorted((CORPUS / name).iterdir())
    for seed in range(20):
        data = files[seed % len(files)].read_bytes()
        changed = mutator(data, 60_000, seed)
        assert changed == mutator(data, 60_000, seed)
        replay(name, changed)
