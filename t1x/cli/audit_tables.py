"""What `t1x audit` prints."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from t1x.campaign.run_audit import BatchAudit
from t1x.cli.token_name import token_name
from t1x.text.tokenizer import ChatTokenizer
from t1x.text.visible import legible
from t1x.trajectory.audit import Audit
from t1x.trajectory.audit_finding import BEFORE, Finding
from t1x.trajectory.audit_record import SUBSTITUTED_BOUND
from t1x.trajectory.records import Boundary


def summary(batches: Sequence[BatchAudit], audits: Sequence[Audit], stitcher: str, faithful: bool) -> Iterator[RenderableType]:
    """A line a batch, and what holds for all of them."""
    whole = sum(audits, Audit())
    cases = [case for case in Boundary if whole.boundaries[case]]
    table = Table(pad_edge=False, box=None, padding=(0, 1, 0, 0))
    table.add_column("batch", no_wrap=True)
    for column in ("trials", "loss\ntokens", "own\nturn", "context", *map(str, cases)):
        table.add_column(column, justify="right", no_wrap=True)
    for batch, found in zip(batches, audits, strict=True):
        table.add_row(batch.file.name, f"{batch.trials}", *_cells(found, cases))
    if len(audits) > 1:
        table.add_row("all", f"{sum(batch.trials for batch in batches)}", *_cells(whole, cases), end_section=True)
    yield table
    yield Text(_positions(whole))
    if without := [batch.file.name for batch in batches if not batch.routing]:
        yield Text(f"without routing, which wasn't kept: {', '.join(without)}")
    if not faithful:
        yield Text(f"{stitcher} is a baseline: what differs is what it stands for, no fault")
    elif whole.violations:
        yield Text(
            f"{whole.own_turn_violations} loss positions, {whole.misplaced_rows} routing rows of context and "
            f"{whole.cached_differences} cached rows aren't what was captured, {whole.wrong_labels} temperatures and boundaries "
            f"aren't what streams say: {stitcher} must leave none",
            style="bold red",
        )


def examples_of(findings: Sequence[Finding], tokenizer: ChatTokenizer | None) -> Iterator[RenderableType]:
    """The findings, each with what the stream has beside what the engine had; without text where there is no tokenizer."""
    for found in findings:
        later = f" and of {found.later} later turn{'s' * (found.later > 1)}" if found.later else ""
        where = f"\n{found.trial}, turn {found.turn}: {found.kind}, {found.count} position{'s' * (found.count != 1)} of it{later}"
        yield Text(legible(f"{where}; {found.detail}" if found.detail else where))
        if found.detail and not found.stream_ids:  # of a turn as a whole: there are no ids to be compared
            continue
        table = Table(pad_edge=False, box=None)
        for column, justify in (("position", "right"), ("stream", "right"), ("", "left"), ("engine's", "right"), ("", "left")):
            table.add_column(column, justify=justify, overflow="fold")  # type: ignore[arg-type]
        before = min(BEFORE, found.position), min(BEFORE, found.engine_position)
        for offset in range(-max(before), max(len(found.stream_ids) - before[0], len(found.engine_ids) - before[1])):
            sides = [
                _id(ids, offset + back, tokenizer) for ids, back in zip((found.stream_ids, found.engine_ids), before, strict=True)
            ]
            here = "bold" if offset == 0 else "red" if sides[0] != sides[1] else ""
            places = dict.fromkeys((found.position, found.engine_position) if found.stream_ids else (found.engine_position,))
            place = " / ".join(str(each + offset) for each in places)
            table.add_row(f"{'> ' * (offset == 0)}{place}", *sides[0], *sides[1], style=here)
        yield table


def _id(ids: Sequence[int], index: int, tokenizer: ChatTokenizer | None) -> tuple[Text, Text]:
    if not 0 <= index < len(ids):
        return Text("-"), Text("")
    if tokenizer is None or not 0 <= ids[index] < tokenizer.vocab_size:
        return Text(f"{ids[index]}"), Text("")
    return Text(f"{ids[index]}"), Text(token_name(tokenizer.bytes_of(ids[index])))


def _cells(found: Audit, cases: Sequence[Boundary]) -> list[str]:
    counts = (str(found.boundaries[case]) for case in cases)
    return [f"{found.loss_tokens}", _percent(found.own_turn_fidelity), _percent(found.context_fidelity), *counts]


def _positions(found: Audit) -> str:
    """The partition of positions of Eq. 11."""
    aligned = found.positions - found.retokenized - found.substituted_rows
    said = f"at most {100 * SUBSTITUTED_BOUND:.3f} % in the report"
    if found.substituted_share > SUBSTITUTED_BOUND:
        said += ", whose trials are long: there is at most one such row a boundary, so short trials have a larger share"
    return (
        f"{found.positions:,} positions: {aligned:,} aligned, {found.retokenized:,} encoded anew,\n"
        f"{found.substituted_rows:,} with a substituted row ({100 * found.substituted_share:.4f} %; {said})\n"
        f"{found.placeholder_tokens:,} placeholder ids\n"
        f"{found.recomputed_rows:,} rows were recomputed, {found.recomputed_differences:,} of them differ\n"
        f"drift in the loss region (1 - own turn): {100 * found.own_turn_violations / max(1, found.loss_tokens):.4f} %"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.4f}".rstrip("0").rstrip(".") + " %" if share < 1 else "100 %"
