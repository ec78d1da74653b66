"""A suite in a real git repository, with a stored run of its main branch and a change."""

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from support.commands import Ended, run_command
from support.git_repositories import ENV, Repo

YES = "def answer(message):\n    return 'yes'\n"
CONFIG = """\
name: shop
agents: {bot: {python: "bot:answer"}}
evalsets: {smoke: evals/smoke.csv}
criteria: {response_match_score: 0.8}
baseline: {store: file}
run: {concurrency: 2}
"""


def evalset(count: int) -> str:
    return "id,prompt,expected\n" + "".join(f"c{n},question {n},yes\n" for n in range(count))


class Suite(Repo):
    """A repository with an agent, its evalset and a stored run."""

    def ci_eval(self, *args: str, **env: str) -> Ended:
        """Run a command of ci-eval."""
        env = {**ENV, "PYTHONDONTWRITEBYTECODE": "1", **env}
        return run_command(*args, folder=self.folder, env=env)

    def begin(self, count: int = 5, *, env: dict[str, str] | None = None, **files: str) -> None:
        """Commit the agent, store a run of it, and begin a branch.

        A suite that began in the same way is copied, if nothing names its folder.
        """
        is_named = str(self.folder) in str(files)
        if env or is_named or any(each.name != ".git" for each in self.folder.iterdir()):
            self._begin(count, env or {}, files)
        else:
            shutil.rmtree(self.folder)
            shutil.copytree(_begun(count, tuple(files.items())), self.folder, symlinks=True)

    def _begin(self, count: int, env: dict[str, str], files: dict[str, str]) -> None:
        given = {
            "bot.py": YES,
            "ci-eval.yaml": CONFIG,
            ".gitignore": "ci-eval-report\nlog\n__pycache__\n",
        }
        self.commit("agent", **{**given, "evals/smoke.csv": evalset(count), **files})
        if "store: file" in given["ci-eval.yaml"] and "ci-eval.yaml" not in files:
            assert self.ci_eval("run", **env).code == 0
            assert self.ci_eval("baseline", "save").code == 0
            self.commit("baseline")
        self.git("checkout", "--quiet", "-b", "change")

    def change(self, code: str) -> Ended:
        """Commit another agent, and run the suite."""
        self.commit("change", **{"bot.py": code})
        return self.ci_eval("run")

    def report(self) -> Any:
        return json.loads((self.folder / "ci-eval-report/report.json").read_text())

    @property
    def base_run(self) -> Path:
        return self.folder / "ci-eval-report/base/run.json"


_BEGUN = tempfile.TemporaryDirectory(prefix="ci-eval-suites-")


@cache
def _begun(count: int, files: tuple[tuple[str, str], ...]) -> Path:
    """Return the folder of a suite that nobody may change."""
    suite = Suite(Path(tempfile.mkdtemp(dir=_BEGUN.name)) / "shop")
    suite._begin(count, {}, dict(files))
    return suite.folder
