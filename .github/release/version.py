"""The number of a release, and the tags that follow from it."""

import math
import re
from dataclasses import dataclass

_FORM = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:rc([1-9][0-9]*))?")


class ReleaseError(Exception):
    """Why there is no release; each argument is a problem."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems


@dataclass(frozen=True)
class Version:
    """A version as `1.2.3`, or a candidate for one as `1.2.3rc1`."""

    major: int
    minor: int
    patch: int
    candidate: int | None = None

    @classmethod
    def read(cls, text: str) -> "Version":
        """Return the version that `text` is.

        Raises:
            ReleaseError: it is none.

        """
        found = _FORM.fullmatch(text)
        if not found:
            raise ReleaseError(f"{text!r} is no version such as '1.2.3' or '1.2.3rc1'.")
        major, minor, patch, candidate = found.groups()
        return cls(int(major), int(minor), int(patch), int(candidate) if candidate else None)

    @classmethod
    def of_tag(cls, tag: str) -> "Version | None":
        """Return the version that is tagged so, if the tag is one of a release."""
        found = _FORM.fullmatch(tag.removeprefix("v")) if tag.startswith("v") else None
        return cls.read(found[0]) if found else None

    def __str__(self) -> str:
        candidate = "" if self.candidate is None else f"rc{self.candidate}"
        return f"{self.major}.{self.minor}.{self.patch}{candidate}"

    @property
    def order(self) -> tuple[float, ...]:
        """Return what sorts versions: candidates come before what they are candidates for."""
        return (self.major, self.minor, self.patch, self.candidate or math.inf)

    @property
    def tag(self) -> str:
        """Return the tag that is never moved."""
        return f"v{self}"

    @property
    def branch(self) -> str:
        """Return the branch on which all releases of this minor version lie."""
        return f"releases/v{self.major}.{self.minor}"

    def moved_tags(self, released: "list[Version]") -> list[str]:
        """Return the tags that mean this version now, `released` being all that are out.

        `v1` is the newest 1.x.y and `v1.2` the newest 1.2.y; so a patch for an older version
        takes neither from a newer one, and a candidate has none.
        """
        if self.candidate is not None:
            return []
        final = [each for each in released if each.candidate is None]
        line = {
            f"v{self.major}": [each for each in final if each.major == self.major],
            f"v{self.major}.{self.minor}": [
                each for each in final if (each.major, each.minor) == (self.major, self.minor)
            ],
        }
        return [
            tag for tag, others in line.items() if all(each.order <= self.order for each in others)
        ]
