"""The name of a suite whose configuration does not name it; the same in every clone."""

import re
from pathlib import Path

from ci_eval.run_files.file_names import CONFIG_FILE
from ci_eval.runtime.clone import Clone, top_of

_MAX_NAME = 100


def default_suite(path: Path, clone: Clone) -> str:
    """Return the name of the suite of the configuration at `path`.

    It is that of the folder; at the top of a clone, which may have any name, that of the remote
    repository.  Other files than `ci-eval.yaml` add their own name: a folder may have several.
    """
    folder = path.resolve().parent
    is_top = top_of(folder) == folder
    name = (_repository(clone) if is_top else "") or folder.name
    is_other = path.stem != Path(CONFIG_FILE).stem
    return (f"{name}-{path.stem}" if is_other else name)[:_MAX_NAME]


def _repository(clone: Clone) -> str:
    """Return the name of the repository at the remote `origin`; empty if there is none."""
    urls = [each.value for each in clone.settings if each.key == "remote.origin.url"]
    return re.split(r"[/\\:]", urls[-1].rstrip("/"))[-1].removesuffix(".git") if urls else ""
