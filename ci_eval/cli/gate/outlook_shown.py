"""Console output of the power analysis."""

from collections.abc import Iterator

from ci_eval.cli.console import say, say_list, say_table
from ci_eval.cli.gate.costs import Cost
from ci_eval.cli.gate.outlook import Break, Outlook, Sensitivity, Wanted
from ci_eval.run_files.wording import named
from ci_eval.text.templates import counted, dollars, duration, percent, plain

_HEADS = ("agent", "evalset", "criterion", "cases", "mean", "varies by", "finds a drop of")


def show_outlook(found: Outlook) -> None:
    """Print the detectable drops, and the cost of detecting more."""
    say(
        f"{counted(found.cases, 'case')}, {counted(found.repeats, 'repeat')}, compared with "
        f"{counted(found.runs, 'run')} of the baseline (at most {found.window} are pooled)"
    )
    for tier, count in found.hypotheses.items():
        looks = f", over {found.looks} looks" if found.looks > 1 else ""
        verb = "blocks" if tier == "block" else "warns"
        hypotheses = counted(count, "hypothesis", "hypotheses")
        say(f"noise {verb} in at most {percent(found.false_block)}: {hypotheses}{looks}")
    say()
    say(f"detected in {percent(found.power)} of runs, if all cases drop by the same amount:")
    say_table(_HEADS, [_row(each) for each in found.criteria])
    if found.together is not None:
        say(f"if all blocking criteria drop together: {percent(found.together)} of their ranges")
    doubts = [f"{named(each.group)}: {line}" for each in found.criteria for line in _doubts(each)]
    say_list("notes", doubts)
    breaks = [f"{named(e.group)}: {_break(e.single, e)}" for e in found.criteria if e.single]
    say_list("a single case that always passed and now always fails", breaks)
    if found.wanted_drop is not None:
        wanted = [f"{named(e.group)}: {_wanted(e.wanted)}" for e in found.criteria if e.wanted]
        say_list(f"to detect a drop of {percent(found.wanted_drop)}", wanted)
    say()
    for title, cost in (
        ("a run as planned", found.cost),
        ("a run with these repeats", found.cost_of_repeats),
        ("a run with these cases", found.cost_of_cases),
    ):
        if cost:
            say(f"{title}: {_cost(cost)}")
    if found.budget > 1:
        say(f"with reruns of inconclusive results: at most {found.budget:g} times as much")


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
        yield "these cases always scored the same before: one case that drops is enough"
    elif each.drop is None:
        yield "there are too few cases or runs to tell any drop from noise"
    if each.trial_sd is not None and each.run_sd is None:
        yield "the baseline has one run: variance between runs is unknown and assumed to be zero"


def _break(single: Break, each: Sensitivity) -> str:
    if each.steady and single.proven:
        return "is proven, because it always scored the same before"
    if single.trials is None:
        return "cannot be proven with this many cases and runs; store more runs"
    trials = f"{counted(single.trials, 'trial')} that all fail"
    if single.drawn:
        return f"is proven by {trials}, which are drawn when it is suspected"
    if single.proven:
        return f"is proven by {trials}"
    return (
        f"is only suspected: it takes {trials}. `on_inconclusive: rerun` draws them when they are "
        "needed"
    )


def _wanted(wanted: Wanted | None) -> str:
    if wanted is None:
        return ""
    if wanted.cases is None and wanted.repeats is None:
        return f"not possible: {wanted.reason}"
    repeats = counted(wanted.repeats, "repeat") if wanted.repeats else f"({wanted.reason})"
    cases = counted(wanted.cases, "case") if wanted.cases else "no number of cases"
    return f"{repeats}, or {cases} with the current repeats"


def _cost(cost: Cost) -> str:
    parts = [
        counted(cost.trials, "trial"),
        f"agents {_usd(cost.agents_usd, 'ci/cost_usd was not measured')}",
        f"judges {_usd(cost.judges_usd, 'pass a run with --run')}",
    ]
    if cost.seconds is None:
        parts.append("time unknown (ci/latency_s was not measured; pass a run with --run)")
    else:
        parts.append(f"{duration(cost.seconds)} of trials, run sequentially")
    return ", ".join(parts)


def _usd(amount: float | None, unknown: str) -> str:
    return f"unknown ({unknown})" if amount is None else dollars(amount)
