"""The help of commands: examples, and groups that list full summaries."""

import click

EXAMPLES = {
    "adk": (
        "ci-eval adk agents/shop agents/shop/smoke.evalset.json --print_detailed_results\n"
        "ci-eval adk agents/shop smoke:greets,refunds --interpreter .venv/bin/python\n"
        "ci-eval adk agents/shop smoke --eval_storage_uri gs://bucket"
    ),
    "baseline diff": "ci-eval baseline diff",
    "baseline prune": "ci-eval baseline prune --keep 20",
    "baseline save": "ci-eval baseline save ci-eval-report",
    "baseline show": "ci-eval baseline show --json",
    "compare": "ci-eval compare before/run.json ci-eval-report --gate",
    "evalset": "ci-eval evalset create agents/shop smoke",
    "evalset add": (
        'ci-eval evalset add evals/smoke.yaml --prompt Hello --expected "How can I help?"\n'
        "ci-eval evalset add agents/shop smoke --from-traces traces.jsonl --case greets\n"
        "ci-eval evalset add agents/shop smoke --file case.json"
    ),
    "evalset convert": "ci-eval evalset convert evals/smoke.evalset.json --to cases",
    "evalset create": (
        "ci-eval evalset create evals/smoke.yaml\n"
        "ci-eval evalset create agents/shop smoke  # like `adk eval_set create agents/shop smoke`"
    ),
    "evalset delete": "ci-eval evalset delete evals/smoke.yaml --case refund-7",
    "evalset list": "ci-eval evalset list evals",
    "evalset migrate": "ci-eval evalset migrate evals",
    "evalset results list": "ci-eval evalset results list agents/shop",
    "evalset results show": "ci-eval evalset results show agents/shop shop_smoke_1763900000.5",
    "evalset update": "ci-eval evalset update smoke.yaml --case refunds --from-traces traces.jsonl",
    "explain": "ci-eval explain CE0103",
    "gate explain": "ci-eval gate explain",
    "gate power": "ci-eval gate power --drop 0.05",
    "init": "ci-eval init --yes",
    "judge check": "ci-eval judge check labels.jsonl --min-kappa 0.6",
    "list": "ci-eval list criteria ci/regex",
    "merge": "ci-eval merge shards/*",
    "models check": "ci-eval models check",
    "models prune": "ci-eval models prune",
    "models show": "ci-eval models show --case refund-7",
    "plan": "ci-eval plan --agent weather",
    "publish": "ci-eval publish ci-eval-report",
    "report": "ci-eval report -c stricter.yaml",
    "run": "ci-eval run --case 'refund-*' --repeats 3",
    "schema": "ci-eval schema > ci-eval.schema.json",
    "show": "ci-eval show refund-7 --agent support",
    "validate": "ci-eval validate ci-eval.yaml evals/smoke.yaml",
}
"""Example command lines by command, one per line."""


def add_examples(command: click.Command, path: str) -> None:
    """Add examples to the help of a command and of its subcommands."""
    if path in EXAMPLES:
        command.epilog = "\b\nExample: " + EXAMPLES[path].replace("\n", "\n         ")
    for name, each in command.commands.items() if isinstance(command, click.Group) else ():
        add_examples(each, f"{path} {name}")


class Group(click.Group):
    """A group of commands whose summaries are never truncated."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the name and the first sentence of each command."""
        names = self.list_commands(ctx)
        found = {name: self.get_command(ctx, name) for name in names}
        rows = [(name, each.get_short_help_str(limit=1000)) for name, each in found.items() if each]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
