"""Modules that a configuration names, looked up without importing any of them."""

from pathlib import Path

import pytest

from ci_eval.runtime.path_checks import similar_path
from ci_eval.runtime.python_modules import installed_for, installed_for_us, target_error


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "home.py": "raise SystemExit('never imported')\n\ndef answer(message): ...\n",
        "dynamic.py": "from home import *\n",
        "shop/__init__.py": "",
        "shop/agents.py": "async def support(message): ...\nroot_agent = 1\n",
        "parts/tools.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "target",
    [
        *(
            "home:answer",
            "home",
            "dynamic:anything",
            "shop.agents:support",
            "shop.agents:root_agent.x",
        ),
        *("parts.other:from_another_part", "home.inner:unknown"),
    ],
)
@pytest.mark.parametrize("installed", [True, None])
def test_what_may_exist_is_no_error(root: Path, target: str, *, installed: bool | None) -> None:
    assert target_error(target, root, installed=installed) == ""


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("hom:answer", "there is no module 'hom'. Did you mean 'home'?"),
        ("zzz:answer", "there is no module 'zzz'; known: dynamic, home, parts, shop"),
        ("home:anwser", "home.py has no 'anwser'. Did you mean 'answer'?"),
        ("shop.agnts:support", "there is no module 'shop.agnts'. Did you mean 'shop.agents'?"),
        ("shop.agents:suport", "shop/agents.py has no 'suport'. Did you mean 'support'?"),
        ("parts.tool:x", "there is no module 'parts.tool'. Did you mean 'parts.tools'?"),
    ],
)
def test_what_cannot_exist_is_named_with_a_suggestion(
    root: Path, target: str, message: str
) -> None:
    assert target_error(target, root, installed=False) == message


def test_a_syntax_error_is_named_if_our_own_python_is_used(root: Path) -> None:
    (root / "wrong.py").write_text("x = '\\d'\ndef answer(message:\n    return 1\n")
    said = target_error("wrong:answer", root, installed=False, is_ours=True)
    assert said.startswith("wrong.py has a syntax error in line 2: ")
    assert target_error("wrong:answer", root, installed=False) == ""
    for target in ("home:answer", "shop.agents:support"):
        assert target_error(target, root, installed=False, is_ours=True) == ""


def test_an_installed_module_is_not_looked_into(root: Path) -> None:
    assert target_error("hom:answer", root, installed=True) == ""
    assert target_error("hom:answer", root, installed=None) == ""


def test_a_link_out_of_the_repository_is_not_read(root: Path, tmp_path_factory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.py"
    outside.write_text("token = 1\n")
    (root / ".git").mkdir()
    (root / "link.py").symlink_to(outside)
    assert target_error("link:tokn", root, installed=False) == ""


def test_our_own_python_knows_what_is_installed() -> None:
    assert installed_for_us("json")
    assert installed_for_us("pydantic")
    assert not installed_for_us("no_module_has_this_name")


def test_only_a_virtual_environment_on_its_own_is_known(tmp_path: Path) -> None:
    site = tmp_path / "lib/python3.12/site-packages"
    python = str(tmp_path / "bin/python")
    assert installed_for(python, "shop") is None
    (tmp_path / "pyvenv.cfg").write_text("include-system-site-packages = false\n")
    assert installed_for(python, "shop") is None
    (site / "shop").mkdir(parents=True)
    (site / "single.py").touch()
    assert installed_for(python, "shop")
    assert installed_for(python, "single")
    assert installed_for(python, "json")
    assert installed_for(python, "other") is False
    (site / "__editable__.other.pth").touch()
    assert installed_for(python, "other") is None
    (site / "__editable__.other.pth").unlink()
    (tmp_path / "pyvenv.cfg").write_text("include-system-site-packages = true\n")
    assert installed_for(python, "other") is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("shop/agent.py", ". Did you mean 'shop/agents.py'?"),
        ("shp/agents.py", ". Did you mean 'shop/agents.py'?"),
        ("shp/agent.py", ". Did you mean 'shop/agents.py'?"),
        ("shp/quite_another.py", ""),
        ("nothing/like/this.txt", ""),
        ("../elsewhere/x", ""),
    ],
)
def test_a_similar_path_is_suggested(root: Path, given: str, said: str) -> None:
    assert similar_path(root, given) == said
