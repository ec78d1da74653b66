"""Console output of an explained verdict."""

from ci_eval.cli.console import out_text
from ci_eval.cli.gate.comparison_output import against, sections
from ci_eval.cli.gate.verdict_explanation import Explanation
from ci_eval.run_files.report_phrases import drawn, named


def show(found: Explanation) -> None:
    """Print the explanation of a verdict."""
    comparison = found.comparison
    out_text(
        "verdict.txt.j2",
        found=found,
        comparison=comparison,
        sections=sections(comparison) if comparison else (),
        against=against,
        drawn=drawn,
        named=named,
    )
