"""Badge with the number of passed cases: as an SVG and for shields.io."""

import json
from dataclasses import asdict, dataclass
from xml.sax.saxutils import escape

from ci_eval.records.findings import Counts

MAX_CHARS = 60
"""Maximum length of a text on a badge."""
_COLORS = {
    "brightgreen": "#4c1",
    "yellow": "#dfb317",
    "orange": "#fe7d37",
    "red": "#e05d44",
    "lightgrey": "#9f9f9f",
}
"""Colors by shields.io's names, <https://shields.io/docs/static-badges>."""
_NARROW, _WIDE = "fijltrI.,:;|!'()[] 1", "mwMW%@—"
_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" \
aria-label="{label}: {message}">
<title>{label}: {message}</title>
<rect width="{left}" height="20" fill="#555"/>
<rect x="{left}" width="{right}" height="20" fill="{color}"/>
<g fill="#fff" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11">
<text x="6" y="14" textLength="{label_length}">{label}</text>
<text x="{message_at}" y="14" textLength="{message_length}">{message}</text>
</g>
</svg>
"""


@dataclass(frozen=True)
class Badge:
    """The content of a badge."""

    label: str
    message: str
    color: str
    """One of shields.io's names."""

    @classmethod
    def of(cls, suite: str, cases: Counts) -> "Badge":
        """Return the badge of a suite, given the cases of its last run."""
        judged = cases.passed + cases.failed
        message = f"{cases.passed}/{judged} passed" if judged else "nothing measured"
        if cases.errors:
            message += f", {cases.errors} error{'s' if cases.errors > 1 else ''}"
        return cls(_short(suite), message, _color(cases))

    def endpoint(self) -> str:
        """Return the JSON for shields.io, see <https://shields.io/badges/endpoint-badge>."""
        fields = {"schemaVersion": 1, **asdict(self)}
        return json.dumps(fields, ensure_ascii=False) + "\n"

    def svg(self) -> str:
        """Return the badge as SVG; its texts fit in any font."""
        label_length, message_length = _width(self.label), _width(self.message)
        left, right = label_length + 12, message_length + 12
        return _SVG.format(
            label=escape(self.label, {'"': "&quot;"}),
            message=escape(self.message, {'"': "&quot;"}),
            color=_COLORS[self.color],
            width=left + right,
            left=left,
            right=right,
            label_length=label_length,
            message_length=message_length,
            message_at=left + 6,
        )


def _color(cases: Counts) -> str:
    """Return the color: green only if every case was measured and passed."""
    judged = cases.passed + cases.failed
    if not judged:
        return "lightgrey"
    rate = cases.passed / judged
    if rate == 1 and not cases.errors:
        return "brightgreen"
    return "yellow" if rate >= 0.9 else "orange" if rate >= 0.5 else "red"


def _short(text: str) -> str:
    shown = "".join(each if each.isprintable() else " " for each in text)
    return shown if len(shown) <= MAX_CHARS else shown[: MAX_CHARS - 1] + "…"


def _width(text: str) -> int:
    """Return the approximate width in pixels of a text in 11-pixel Verdana."""
    return sum(4 if each in _NARROW else 11 if each in _WIDE else 7 for each in text)
