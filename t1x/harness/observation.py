"""What the agent is shown of a command."""

from t1x.sandbox.protocol import ExecResult
from t1x.text.tokenizer import ChatTokenizer

GAP = "..."
"""Stands where the middle of a long output was cut out."""


def observation(result: ExecResult, tokenizer: ChatTokenizer, *, head: int, tail: int) -> str:
    """The command's output, cut to its first `head` and last `tail` tokens, and how it failed where it did."""
    lines = [cut(result.output.strip(), tokenizer, head=head, tail=tail)]
    if result.stopped:
        lines.append(f"{result.stopped} limit, shell restarted")
    elif result.timed_out:
        lines.append("timeout")
    elif result.shell_restarted:
        lines.append("shell restarted")
    elif result.exit_code:
        lines.append(f"exit {result.exit_code}")
    return "\n".join(line for line in lines if line)


def cut(text: str, tokenizer: ChatTokenizer, *, head: int, tail: int) -> str:
    """The text itself where it has at most `head + tail` tokens, else its ends around a gap. Cuts fall between ids, and the
    ends are put together as text: the template's own ids are never touched."""
    ids = tokenizer.encode(text)
    if len(ids) <= head + tail:
        return text
    return tokenizer.decode(ids[:head]) + GAP + tokenizer.decode(ids[len(ids) - tail :])
