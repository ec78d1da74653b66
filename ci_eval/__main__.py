"""The `ci-eval` command."""

import gc
import sys


def main() -> None:
    """Run the command and exit with its code."""
    # A run of a hundred thousand trials is kept as small objects that live to the end.  Searching
    # them for cycles again and again would take a third of the time of a comparison.
    gc.set_threshold(50_000, 10, 10)
    from ci_eval.cli.main import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
