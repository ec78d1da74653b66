"""The pictures of a comment and a report in the README, from a run of `examples/regression`.

    python benchmarks/readme_pictures.py

It needs npm (for GitHub's style sheet) and Chromium.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import cmarkgfm
from cmarkgfm.cmark import Options

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/images"
SIZE = (900, 950)
BACKGROUNDS = {"light": "#ffffff", "dark": "#0d1117"}
_ALERT = re.compile(r"<blockquote>\s*<p>\[!(\w+)\]\s*(?:<br\s*/?>)?")


def main() -> None:
    """Write each picture in both color schemes."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("there is no chromium on the PATH")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        run = [sys.executable, "-m", "ci_eval", "run", "-c", "examples/regression/ci-eval.yaml"]
        # The run fails, which is what the picture shows.
        subprocess.run([*run, "--out", name, "-q"], cwd=ROOT, check=False)
        npm = ["npm", "install", "--silent", "--prefix", name, "github-markdown-css@5"]
        subprocess.run(npm, check=True)
        body = as_github(scratch.joinpath("comment.md").read_text(encoding="utf-8"))
        styles = scratch / "node_modules/github-markdown-css"
        for theme, color in BACKGROUNDS.items():
            style = (styles / f"github-markdown-{theme}.css").read_text(encoding="utf-8")
            page = scratch / f"{theme}.html"
            page.write_text(
                f"<!doctype html><meta charset=utf-8><style>{style}"
                f"body{{margin:0;background:{color}}} main{{padding:16px}}</style>"
                f"<main class=markdown-body>{body}</main>",
                encoding="utf-8",
            )
            photograph(chromium, page.as_uri(), FOLDER / f"comment-{theme}.png", theme, scratch)
            report = scratch.joinpath("report.html").as_uri()
            photograph(chromium, report, FOLDER / f"report-{theme}.png", theme, scratch)


def as_github(markdown: str) -> str:
    """Return the HTML of a comment, with alerts as GitHub shows them."""
    html = cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)
    return _ALERT.sub(
        lambda found: (
            f'<blockquote class="markdown-alert markdown-alert-{found[1].lower()}">'
            f'<p class="markdown-alert-title">{found[1].title()}</p><p>'
        ),
        html,
    )


def photograph(chromium: str, page: str, picture: Path, theme: str, scratch: Path) -> None:
    """Write the top of a page as a picture."""
    scheme = {"dark": 0, "light": 1}[theme]  # Blink's numbers
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options += [f"--user-data-dir={scratch / 'profile'}", f"--screenshot={picture}"]
    options += [f"--blink-settings=preferredColorScheme={scheme}"]
    options += [f"--window-size={SIZE[0]},{SIZE[1]}", "--virtual-time-budget=5000", page]
    subprocess.run([chromium, *options], check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main()
