"""The `ci-eval` command."""

import sys


def main() -> None:
    """Run the command and exit with its code."""
    from ci_eval.cli import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
