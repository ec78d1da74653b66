"""Plugins are found by their names, wherever they come from."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci_eval.plugins.registry import Registry, did_you_mean
from ci_eval.records.errors import UnknownPluginError

ROOT = Path(__file__).parents[3]


class Animal:
    """What the plugins of these tests are."""


def module(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(textwrap.dedent(text))


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry[Animal]]:
    """A registry over a package of two modules, of which one is private."""
    package = tmp_path / "zoo"
    package.mkdir()
    module(
        package,
        "__init__.py",
        "from ci_eval.plugins.registry import Registry\nzoo = Registry('animal', 'zoo', 'zoo')",
    )
    module(
        package,
        "cats.py",
        """
        from zoo import zoo
        from zoo._fur import Furry

        @zoo("lion")
        class Lion(Furry): ...

        @zoo("cat")
        class Cat(Furry): ...
        """,
    )
    module(package, "_fur.py", "class Furry: ...\n")
    module(package, "_unfinished.py", "raise AssertionError('a private module is not a plugin')\n")
    monkeypatch.syspath_prepend(tmp_path)
    import zoo as imported  # type: ignore[import-not-found]  # written above

    yield imported.zoo
    for name in [name for name in sys.modules if name == "zoo" or name.startswith("zoo.")]:
        del sys.modules[name]


def test_every_module_of_the_package_is_searched_but_private_ones(zoo: Registry[Animal]) -> None:
    assert list(zoo) == ["cat", "lion"]
    assert "cat" in zoo
    assert "dog" not in zoo
    assert zoo["lion"].__name__ == "Lion"


def test_nothing_is_imported_before_it_is_asked_for(zoo: Registry[Animal]) -> None:
    assert "zoo.cats" not in sys.modules
    assert "lion" in zoo
    assert list(zoo) == ["cat", "lion"]
    assert "zoo.cats" not in sys.modules
    assert zoo["lion"].__name__ == "Lion"
    assert "zoo.cats" in sys.modules


def test_two_modules_that_give_one_name_are_a_mistake(
    zoo: Registry[Animal], tmp_path: Path
) -> None:
    module(tmp_path / "zoo", "dogs.py", 'from zoo import zoo\n\n@zoo("cat")\nclass Dog: ...\n')
    with pytest.raises(ValueError, match=r"named 'cat': zoo\.cats and zoo\.dogs$"):
        list(zoo)


def test_a_name_that_was_taken_over_stays_so_when_its_first_owner_is_imported(
    zoo: Registry[Animal],
) -> None:
    class Other(Animal): ...

    zoo("cat", override=True)(Other)
    assert zoo["lion"].__name__ == "Lion"  # in the same module
    assert zoo["cat"] is Other
    assert zoo.overridden == {"cat": __name__}


def test_an_unknown_name_is_refused_with_what_was_meant(zoo: Registry[Animal]) -> None:
    with pytest.raises(UnknownPluginError, match=r"^unknown animal\. Did you mean 'lion'\?$"):
        zoo["loin"]
    with pytest.raises(UnknownPluginError, match=r"^unknown animal; known: cat, lion$"):
        zoo["wombat"]


def test_two_plugins_of_one_name_are_a_mistake(zoo: Registry[Animal]) -> None:
    list(zoo)

    class Other(Animal): ...

    with pytest.raises(ValueError, match=r"^two animal plugins are named 'cat': zoo\.cats and "):
        zoo("cat")(Other)
    assert zoo["cat"].__name__ == "Cat"


def test_a_plugin_may_take_a_name_over_when_it_says_so(zoo: Registry[Animal]) -> None:
    list(zoo)

    class Other(Animal): ...

    assert zoo("cat", override=True)(Other) is Other
    assert zoo["cat"] is Other
    assert zoo.overridden == {"cat": __name__}


def test_a_name_that_is_free_is_not_taken_over(zoo: Registry[Animal]) -> None:
    class Other(Animal): ...

    zoo("dog", override=True)(Other)
    assert zoo.overridden == {}


# --- Installed distributions ----------------------------------------------------------------

PLUGIN = '''
"""A plugin of another distribution."""

from ci_eval.plugins.points import Criterion, criterion
from ci_eval.records.cases import EvalCase
from ci_eval.records.trials import Trace
from ci_eval.records.results import Score


@criterion("shop/polite")
class Polite(Criterion):
    """Whether the agent says please."""

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score it."""
        return self.scored(1.0)
'''


def installed(folder: Path, entry: str) -> None:
    """Lay out a distribution as it is when it is installed in `folder`."""
    (folder / "shop_criteria.py").write_text(PLUGIN)
    info = folder / "shop-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ci_eval.criteria]\npolite = {entry}\n")


def listed(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ci_eval", "list", "criteria", "--json"],
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize("entry", ["shop_criteria", "shop_criteria:Polite"])
def test_a_plugin_of_an_installed_distribution_is_found(tmp_path: Path, entry: str) -> None:
    installed(tmp_path, entry)
    ended = listed(tmp_path)
    names = [each["name"] for each in json.loads(ended.stdout)["criteria"]]
    assert "shop/polite" in names
    assert "adk/response_match_score" in names


@pytest.mark.slow
@pytest.mark.processes
def test_a_plugin_that_cannot_be_loaded_is_no_bug_of_ours(tmp_path: Path) -> None:
    installed(tmp_path, "shop_critria")
    ended = listed(tmp_path)
    assert ended.returncode == 4
    assert ended.stderr.startswith(
        "the criterion plugin 'shop_critria' of shop cannot be loaded: "
        "No module named 'shop_critria'\n"
    )


# --- Suggestions ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "known", "ending"),
    [
        ("respnse", ["response", "tools"], ". Did you mean 'response'?"),
        ("x", ["response", "tools"], "; known: response, tools"),
        ("", ["b", "a"], "; known: a, b"),
        ("x", [], ""),
        ("zz", [f"name{n:02}" for n in range(22)], None),
    ],
)
def test_a_wrong_name_gets_a_suggestion_or_a_bounded_list(
    name: str, known: list[str], ending: str | None
) -> None:
    if ending is None:
        ending = f"; known: {', '.join(known[:20])} and 2 more"
    assert did_you_mean(name, known) == ending


@pytest.mark.parametrize("argument", ["NAME)", "", "f'{NAME}')", "name='tiger')"])
def test_a_name_that_cannot_be_seen_without_an_import_is_refused(
    zoo: Registry[Animal], tmp_path: Path, argument: str
) -> None:
    text = f"from zoo import zoo\nNAME = 'tiger'\n@zoo({argument}\nclass Tiger: ...\n"
    module(tmp_path / "zoo", "tigers.py", text)

    with pytest.raises(ValueError, match=r"tigers\.py: the name in `@zoo\(.*` must be a string"):
        list(zoo)
