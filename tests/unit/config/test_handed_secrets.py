"""The secrets that a configuration contains, or passes to agents."""

import os
from pathlib import Path

import pytest

from ci_eval.config.handed_secrets import handed
from ci_eval.config.load_config import load
from ci_eval.runtime.context import RunContext

ENV = {"X": "of-the-job", "PATH": os.environ["PATH"]}


def secrets_of(folder: Path, agent: str) -> dict[str, str]:
    path = folder / "ci-eval.yaml"
    more = "evalsets: {e: e.json}\ncriteria: {response_match_score: 1}\n"
    path.write_text(f"agents: {{bot: {{{agent}}}}}\n{more}")
    context = RunContext(env=ENV, root=folder, now=lambda: 0.0)
    config = load(path, shown="ci-eval.yaml", context=context)
    return {value: name for name, value in handed(config.agents["bot"], context)}


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        (
            "http: 'https://shop:literal-1@example.com/chat'",
            {"shop:literal-1": "a login of an agent", "literal-1": "a login of an agent"},
        ),
        ("http: 'https://${X}@example.com/chat'", {"of-the-job": "X"}),
        (
            (
                "http: 'http://localhost:{port}', start: [echo, '{port}'],"
                " env: {API_KEY: literal-2}, headers: {API_KEY: '${X}'}"
            ),
            {"of-the-job": "X", "literal-2": "API_KEY"},
        ),
        ("command: [echo], env: {KEYCLOAK_URL: 'http://localhost:8080'}", {}),
        (
            "command: [echo], env: {WEBHOOK: 'https://example.com/a/literal-3'}",
            {"https://example.com/a/literal-3": "WEBHOOK"},
        ),
    ],
)
def test_what_an_agent_gets_or_its_configuration_contains_is_a_secret(
    tmp_path: Path, agent: str, expected: dict[str, str]
) -> None:
    assert secrets_of(tmp_path, agent) == expected
