"""The tables of `docs/action.md` that `action.yml` is the source of.

`python tests/docs/test_action_tables.py` writes them anew.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/action.md"


def inputs(action: Mapping[str, Any]) -> str:
    """Return the table of inputs."""
    rows = [
        (f"`{name}`", f"`{said['default']}`" if "default" in said else "", _line(said))
        for name, said in action["inputs"].items()
    ]
    return _table(("Input", "Default", "What it is"), rows)


def outputs(action: Mapping[str, Any]) -> str:
    """Return the table of outputs."""
    rows = [(f"`{name}`", _line(said)) for name, said in action["outputs"].items()]
    return _table(("Output", "What it is"), rows)


TABLES: tuple[Callable[[Mapping[str, Any]], str], ...] = (inputs, outputs)


def _line(said: Mapping[str, Any]) -> str:
    return " ".join(said["description"].split()).replace("|", "\\|")


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    ruled = [heads, ("---",) * len(heads), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in ruled)


def read_action() -> Any:
    """Return the content of `action.yml`."""
    import yaml

    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def between(marker: str) -> re.Pattern[str]:
    """Return a pattern of the text between `<!-- marker -->` and `<!-- /marker -->`."""
    return re.compile(rf"(?<=<!-- {marker} -->\n).*?(?=<!-- /{marker} -->)", re.DOTALL)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_the_page_says_what_action_yml_says(table: Callable[[Mapping[str, Any]], str]) -> None:
    found = between(table.__name__).search(PAGE.read_text(encoding="utf-8"))
    assert found, f"the page has no <!-- {table.__name__} -->"
    assert found[0] == table(read_action()), "run: python tests/docs/test_action_tables.py"


def write() -> None:
    """Write every table anew."""
    text = PAGE.read_text(encoding="utf-8")
    for table in TABLES:
        if found := between(table.__name__).search(text):
            text = text[: found.start()] + table(read_action()) + text[found.end() :]
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
