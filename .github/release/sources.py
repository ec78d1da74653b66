"""What the files of the repository say of a release."""

import re
import tomllib
from pathlib import Path

from release.version import ReleaseError, Version

_VERSION = re.compile(r'^__version__ = "([^"]*)"$', re.MULTILINE)
_IMAGE_LINE = re.compile(r"^(  image: )(\S+)(.*)$", re.MULTILINE)
_IMAGE = re.compile(
    r"[a-z0-9.-]+(?::[0-9]+)?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+@sha256:[0-9a-f]{64}"
)


def check(root: Path, version: Version) -> None:
    """Check that the sources in `root` are those of this version.

    Raises:
        ReleaseError: they are not; with all problems.

    """
    problems = []
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    file = project.get("tool", {}).get("hatch", {}).get("version", {}).get("path", "")
    if "version" not in project["project"].get("dynamic", ()) or not file:
        problems.append("pyproject.toml: the version is not taken from a file of the package.")
    else:
        said = _VERSION.findall((root / file).read_text(encoding="utf-8"))
        if said != [str(version)]:
            problems.append(
                f"{file}: __version__ is {', '.join(said) or 'missing'}, not {version}."
            )
    image = _IMAGE_LINE.search((root / "action.yml").read_text(encoding="utf-8"))
    if not image or image[2] != "Dockerfile":
        problems.append("action.yml: the image is not 'Dockerfile': only a release names another.")
    try:
        changes(root, version)
    except ReleaseError as error:
        problems += error.problems
    if problems:
        raise ReleaseError(*problems)


def changes(root: Path, version: Version) -> str:
    """Return what `CHANGELOG.md` says under the heading of this version.

    Raises:
        ReleaseError: it says nothing, or has that heading twice.

    """
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.split(r"^## +(.*?)[ \t]*$", text, flags=re.MULTILINE)[1:]
    found = [
        body.strip()
        for heading, body in zip(sections[::2], sections[1::2], strict=True)
        if heading == str(version)
    ]
    if len(found) != 1:
        count = "no" if not found else "more than one"
        raise ReleaseError(f"CHANGELOG.md: there is {count} section '## {version}'.")
    if not found[0]:
        raise ReleaseError(f"CHANGELOG.md: the section '## {version}' is empty.")
    return found[0]


def notes(root: Path, version: Version, *, commit: str, image: str) -> str:
    """Return the text of the release: what changed, and what to pin."""
    return (
        f"{changes(root, version)}\n\n"
        f"Pin this release as `ci-eval@{commit} # {version.tag}`.\n"
        f"Its image is `{image}`.\n"
    )


def pinned(action: str, image: str) -> str:
    """Return an `action.yml` that runs `image`, which is named by its digest.

    Nothing but the name of the image changes.

    Raises:
        ReleaseError: the image has no digest, or the file not one line that names an image.

    """
    if not _IMAGE.fullmatch(image):
        raise ReleaseError(f"{image!r} is no image with its digest: host/owner/name@sha256:….")
    text, count = _IMAGE_LINE.subn(lambda line: f"{line[1]}docker://{image}{line[3]}", action)
    if count != 1:
        raise ReleaseError(f"action.yml: {count} lines name an image, and one should.")
    return text
