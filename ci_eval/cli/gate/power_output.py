"""Console output of the power analysis."""

from collections.abc import Iterator

from ci_eval.cli.console import out_table, out_text
from ci_eval.cli.gate.power_analysis import Outlook, Sensitivity
from ci_eval.run_files.report_phrases import named
from ci_eval.text.templates import percent, plain

_HEADS = ("agent", "evalset", "criterion", "cases", "mean", "varies by", "finds a drop of")


def show_outlook(found: Outlook) -> None:
    """Print the detectable drops, and the cost of detecting more."""
    out_text("outlook_head.txt.j2", found=found)
    out_table(_HEADS, [_row(each) for each in found.criteria])
    doubts = [f"{named(each.group)}: {line}" for each in found.criteria for line in _doubts(each)]
    out_text("outlook.txt.j2", found=found, doubts=doubts, named=named)


def _row(each: Sensitivity) -> tuple[str, ...]:
    key = each.group
    if each.drop is None:
        drop = "none" if each.trial_sd is not None else "not known"
    else:
        drop = plain(each.drop)
        drop += f" ({percent(each.share)})" if each.share is not None else ""
    varies = "not known" if each.trial_sd is None else plain(each.trial_sd)
    names = (key.agent, key.evalset, key.criterion)
    return (*names, str(each.cases), plain(each.mean), varies, drop)


def _doubts(each: Sensitivity) -> Iterator[str]:
    if each.trial_sd is None:
        yield "the variance of its cases is unknown; store another run, or run each case twice"
    elif each.steady:
        told = "these cases always scored the same before: one case that drops is enough"
        yield told + ", if it does not drop with the merge base, too" * each.arms
    elif each.drop is None:
        yield "there are too few cases or runs to tell any drop from noise"
    if each.trial_sd is not None and each.run_sd is None:
        yield "the baseline has one run: variance between runs is unknown and assumed to be zero"
