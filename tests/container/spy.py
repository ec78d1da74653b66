"""An agent that tries what no agent may; it is run in the container, as command and callable."""

import importlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

SECRET = "rennur-eht-fo-terces-a"[::-1]  # so that it is not found in here


def tried(action: Any) -> str:
    try:
        return action() or "made"
    except (OSError, ImportError) as exc:
        return type(exc).__name__


def secrets() -> list[str]:
    """Return where the secret can be read."""
    found = ["environ"] if SECRET in str(os.environ) else []
    places = [*Path("/proc").glob("[0-9]*/environ"), *Path("/proc").glob("[0-9]*/cmdline")]
    for folder in ("/github", os.environ["HOME"], "/tmp"):
        for at, _, names in os.walk(folder):
            places += [Path(at, name) for name in names]
    for place in places:
        try:
            found += [str(place)] if SECRET.encode() in place.read_bytes() else []
        except OSError:
            continue
    return found


def made(*parts: str) -> None:
    path = Path(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("by the agent", encoding="utf-8")


def written(name: str) -> None:
    with open(name, "a", encoding="utf-8") as file:  # noqa: PTH123  # as agents do it
        file.write("FORGED=1\n")


def spied() -> dict[str, Any]:
    sys.stderr.write("::set-output name=verdict::forged\none ##[add-mask]e\n")
    subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)
    return {
        "user": [os.getresuid(), os.getresgid(), os.getgroups()],
        "secrets": secrets(),
        "names": [name for name in os.environ if name.startswith(("ACTIONS_", "INPUT_"))],
        "command files": tried(lambda: written("/github/file_commands/set_env")),
        "the summary": tried(lambda: written("/github/file_commands/step_summary")),
        "docker": tried(lambda: socket.socket(socket.AF_UNIX).connect("/var/run/docker.sock")),
        "ending us": tried(lambda: os.kill(1, 9)),
        "memory of ours": tried(lambda: written("/proc/1/mem")),
        "our code": tried(lambda: made("/opt/ci-eval/lib/new.py")),
        "importing us": tried(lambda: importlib.import_module("ci_eval") and None),
        "what is checked out": tried(lambda: written("evals/smoke.evalset.json")),
        "a name that is taken": tried(lambda: Path("evals").rename("other")),
        "the configuration": tried(lambda: Path("ci-eval.yaml").unlink()),
        "our reports": tried(lambda: made("/github/workspace/ci-eval-report/run.json")),
        "our notes": tried(lambda: made(".ci-eval/setup/note")),
        "becoming root": tried(lambda: os.setuid(0)),
        "a new file": tried(lambda: made("made", "deep", "file")),
        "home": tried(lambda: made(os.environ["HOME"], "cache", "file")),
    }


def answer(_message: Any) -> str:
    return json.dumps(spied())


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps({"response": answer(line)}) + "\n")
        sys.stdout.flush()
