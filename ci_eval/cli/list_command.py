"""`ci-eval list` and `ci-eval schema`: what a configuration may name."""

import click

from ci_eval.cli import console
from ci_eval.cli.exit_codes import print_json
from ci_eval.cli.reference import catalogue, json_schema, table
from ci_eval.cli.reference_pages import page
from ci_eval.cli.shared_options import json_option


@click.command(name="list")
@click.argument("kind", required=False)
@click.argument("name", required=False)
@json_option
def list_plugins(kind: str | None, name: str | None, *, as_json: bool) -> None:
    """List plugins and presets, or show the options of one: `list criteria ci/regex`.

    KIND is one of agents, evalsets, recordings, criteria, judges, simulators, baselines, reporters,
    engines and presets.
    """
    shown = page(kind, name) if kind and name else ""  # raises for an unknown name
    if shown and not as_json:
        click.echo(shown, nl=False)
        return
    found = catalogue(kind, options=as_json)
    if as_json:
        print_json(
            {of: [e for e in each if name in (None, e["name"])] for of, each in found.items()}
        )
    else:
        click.echo(table(found, console.width()), nl=False)


@click.command()
def schema() -> None:
    """Print the JSON schema of a configuration, for editors."""
    print_json(json_schema())
