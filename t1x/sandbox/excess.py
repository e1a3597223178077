"""What is said about a sandbox that took too much."""

from dataclasses import dataclass, replace

from t1x.sandbox.protocol import ExecResult


@dataclass(frozen=True, slots=True)
class Excess:
    """What a sandbox takes too much of."""

    limit: str
    """The limit's name, as that of its field."""
    reason: str
    """A sentence with both amounts."""

    def before(self, result: ExecResult) -> ExecResult:
        """The result of a command that ran after everything in the sandbox was killed for it."""
        return replace(result, output=self._line + result.output, stopped=self.limit)

    def at_end_of(self, result: ExecResult) -> ExecResult:
        """The result of what was running when that happened."""
        output = result.output if result.output.endswith("\n") or not result.output else result.output + "\n"
        return replace(result, output=output + self._line, exit_code=None, stopped=self.limit)

    @property
    def _line(self) -> str:
        return f"[stopped: {self.reason}]\n"
