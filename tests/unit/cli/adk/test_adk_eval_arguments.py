"""The evalsets on the command line are found as `adk eval` finds them, and their cases."""

import pytest

from ci_eval.cli.adk.adk_eval_arguments import config_beside, named_sets
from ci_eval.records.errors import UsageError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with an agent and two evalsets of it, and one elsewhere."""
    monkeypatch.chdir(tmp_path)
    for name in ("shop/smoke.evalset.json", "shop/deep.evalset.json", "evals/any.name"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    return tmp_path


def named(*given: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {name: (each.path, each.cases) for name, each in named_sets("shop", given).items()}


def problems(*given: str) -> list[str]:
    with pytest.raises(UsageError) as raised:
        named_sets("shop", given)
    return [str(each) for each in raised.value.problems]


def test_an_evalset_is_a_file_of_any_name_or_an_id_of_the_agent():
    assert named("evals/any.name", "smoke") == {
        "any.name": ("evals/any.name", ()),
        "smoke": ("shop/smoke.evalset.json", ()),
    }


@pytest.mark.parametrize(
    ("given", "cases"),
    [
        ("smoke:a", ("a",)),
        ("smoke:a,b", ("a", "b")),
        ("smoke: a ,,b,", ("a", "b")),
        ("smoke:", ()),
        ("smoke:a:b", ("a",)),
        ("shop/smoke.evalset.json:a,a", ("a",)),
    ],
)
def test_cases_stand_behind_a_colon(given, cases):
    assert named(given)["smoke"][1] == cases


def test_a_drive_of_windows_is_a_part_of_the_path():
    assert problems("C:\\evals\\s.json:a") == ["C:\\evals\\s.json: no such file"]
    assert problems("C:/evals/s.json") == ["C:/evals/s.json: no such file"]


def test_an_evalset_that_is_given_twice_is_one_with_the_cases_of_both():
    assert named("smoke:a", "smoke:b,a") == {"smoke": ("shop/smoke.evalset.json", ("a", "b"))}
    assert named("smoke", "smoke:a") == {"smoke": ("shop/smoke.evalset.json", ("a",))}


def test_files_of_the_same_name_get_numbers(folder):
    (folder / "evals/smoke.evalset.json").write_text("{}")

    assert list(named("smoke", "evals/smoke.evalset.json")) == ["smoke", "smoke-2"]


def test_each_evalset_that_is_not_there_is_named():
    missing = "not found, and there is no file of this name"

    assert problems("nope.json", "evals", "smok") == [
        "nope.json: no such file",
        f"shop/evals.evalset.json: Eval set `evals` {missing}; known: deep, smoke",
        f"shop/smok.evalset.json: Eval set `smok` {missing}. Did you mean 'smoke'?",
    ]
    assert problems("evals/") == ["evals/: is not a file"]


def test_no_evalset_at_all_is_an_error_that_says_which_there_are():
    with pytest.raises(UsageError, match="no evalset given") as raised:
        named_sets("shop", ())

    assert raised.value.hint == "available evalsets: deep, smoke"


def test_an_id_stays_in_the_folder_of_the_agent():
    with pytest.raises(UsageError, match="no such file"):
        named_sets("shop", ["../evals/any"])
    with pytest.raises(UsageError, match="must not contain traversal segments"):
        named_sets("shop", [".."])


def test_the_eval_config_beside_the_only_evalset_is_meant_where_that_is_a_file(folder):
    def beside(*given: str) -> str | None:
        return config_beside(named_sets("shop", given), given)

    assert beside("shop/smoke.evalset.json") is None
    (folder / "shop/test_config.json").write_text("{}")

    assert beside("shop/smoke.evalset.json:a") == "shop/test_config.json"
    assert beside("smoke") is None
    assert beside("shop/smoke.evalset.json", "evals/any.name") is None
