"""The `ci-eval` command: what ends here ends with the right exit code."""

import sys

from ci_eval.errors import ExitCode


def main() -> None:
    """Run the command and exit."""
    from ci_eval.cli import main as cli_main

    try:
        code = cli_main(sys.argv[1:])
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except Exception:  # noqa: BLE001  # one of three: what arrives here is a bug of ours
        import traceback

        traceback.print_exc()
        sys.stderr.write("\nThis is a bug in ci-eval; please report it with the lines above.\n")
        code = ExitCode.INTERNAL_ERROR
    sys.exit(code)


if __name__ == "__main__":
    main()
