"""Script of `host/action.yml`: passes the inputs to ci-eval as a container action gets them.

A composite action gets no `INPUT_…` from the runner.  Its inputs come in one variable, as JSON, so
that no shell reads their text or their names, some of which have hyphens.
"""  # noqa: INP001  # a script of the action, not a module

import json
import os
import shutil
import sys

INPUTS = "CI_EVAL_INPUTS"
INTERPRETER = "CI_EVAL_INTERPRETER"
"""The Python of agents that name no `interpreter`: the job's own, not that of ci-eval."""


def prepare(env: "os._Environ[str] | dict[str, str]") -> None:
    """Change `env` to what the runner passes to a container action."""
    for name, value in json.loads(env.pop(INPUTS)).items():
        env[f"INPUT_{name.replace(' ', '_').upper()}"] = value
    found = shutil.which("python", path=env.get("PATH")) or shutil.which(
        "python3", path=env.get("PATH")
    )
    if found and not env.get(INTERPRETER):
        env[INTERPRETER] = found


if __name__ == "__main__":
    from ci_eval.cli.action import main

    prepare(os.environ)  # noqa: TID251  # it is what the action reads
    sys.exit(main())
