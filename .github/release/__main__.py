"""The commands of `.github/workflows/release.yml`, for the repository in the working directory."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from release import sources, tags
from release.version import ReleaseError, Version


def main(arguments: Sequence[str] | None = None, root: Path = Path()) -> int:
    """Run a command, and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        printed = _run(options, root)
    except ReleaseError as error:
        sys.stderr.writelines(f"{problem}\n" for problem in error.problems)
        return 1
    except OSError as error:
        sys.stderr.write(
            f"{error.filename}: {error.strerror}; run it at the top of the repository.\n"
        )
        return 1
    sys.stdout.write(printed)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    check = commands.add_parser("check", help="whether the sources are this version, a new one")
    check.add_argument("version")

    pin = commands.add_parser("pin", help="let action.yml run an image")
    pin.add_argument("image", help="its name with the digest")

    tag = commands.add_parser("tag", help="commit, tag and push; prints the commit")
    tag.add_argument("version")
    tag.add_argument("--source", required=True, help="the commit that was built")
    tag.add_argument("--image", required=True, help="what was built, with its digest")

    notes = commands.add_parser("notes", help="print the text of the release")
    notes.add_argument("version")
    notes.add_argument("--commit", required=True, help="the commit that `tag` printed")
    notes.add_argument("--image", required=True, help="the image, with its digest")
    return parser


def _run(options: argparse.Namespace, root: Path) -> str:
    """Do it, and return what is printed."""
    if options.command == "pin":
        action = root / "action.yml"
        action.write_text(
            sources.pinned(action.read_text(encoding="utf-8"), options.image), encoding="utf-8"
        )
        return ""
    version = Version.read(options.version)
    if options.command == "check":
        sources.check(root, version)
        tags.check_new(root, version)
        return ""
    if options.command == "notes":
        return sources.notes(root, version, commit=options.commit, image=options.image)
    return tags.publish(root, version, source=options.source, image=options.image) + "\n"


if __name__ == "__main__":
    sys.exit(main())
