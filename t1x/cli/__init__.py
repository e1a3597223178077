"""The `t1x` command. Every import of a room is made by the command that needs it, so that `t1x --help` is instant."""

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line (`sys.argv` where `arguments` is None) and returns its exit code."""
    from t1x.cli.outcome import outcome

    return outcome(arguments)
