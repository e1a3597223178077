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
from t1x.trajectory.audit_finding import BEFORE, Finding, Kind
from t1x.trajectory.audit_record import SUBSTITUTED_BOUND
from t1x.trajectory.records import Boundary

BATCH = 12
"""Columns that a batch's name takes at least, which is wrapped where numbers leave it no more: these are never cut."""
EXACT = 0.999
"""From this share on it is told to 0.0001 %, below to 0.1 %."""


def summary(batches: Sequence[BatchAudit], audits: Sequence[Audit], stitcher: str, faithful: bool) -> Iterator[RenderableType]:
    """A line a batch, and what holds for all of them."""
    whole = sum(audits, Audit())
    cases = [case for case in Boundary if whole.boundaries[case]]
    rows = [(batch.file.name, f"{batch.trials}", *_cells(found, cases)) for batch, found in zip(batches, audits, strict=True)]
    if len(audits) > 1:
        rows.append(("all", f"{sum(batch.trials for batch in batches)}", *_cells(whole, cases)))
    table = Table(pad_edge=False, box=None, padding=(0, 1, 0, 0))
    table.add_column("batch", overflow="fold", min_width=min(BATCH, max(len(row[0]) for row in rows)))
    for index, column in enumerate(("trials", "loss\ntokens", "own\nturn", "context", *map(str, cases)), 1):
        table.add_column(column, justify="right", no_wrap=True, min_width=max(len(row[index]) for row in rows))
    for row in rows:
        table.add_row(*row)
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
        if found.kind is Kind.CACHED:  # the row that it's about is told, and stands beside no id of this turn alone
            continue
        if found.stream_values or found.engine_values:
            yield _values(found, tokenizer)
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
            table.add_row(_place(found, offset), *sides[0], *sides[1], style=here)
        yield table


def _values(found: Finding, tokenizer: ChatTokenizer | None) -> Table:
    """What differs beside the ids, which are told once: both where they differ too."""
    table = Table(pad_edge=False, box=None)
    what = "experts" if found.kind in (Kind.ROUTING, Kind.ROW) else str(found.kind)
    columns = ("position", "right"), ("id", "right"), ("", "left"), (f"stream's\n{what}", "right"), (f"engine's\n{what}", "right")
    for column, justify in columns:
        table.add_column(column, justify=justify, overflow="fold")  # type: ignore[arg-type]
    sides = (found.stream_ids, found.stream_values), (found.engine_ids, found.engine_values)
    before = min(BEFORE, found.position), min(BEFORE, found.engine_position)
    for offset in range(-max(before), max(len(ids) - back for (ids, _), back in zip(sides, before, strict=True))):
        ids = [_id(each, offset + back, tokenizer) for (each, _), back in zip(sides, before, strict=True)]
        told = [_at(each, offset + back) for (_, each), back in zip(sides, before, strict=True)]
        names = [Text(" / ".join(dict.fromkeys(each.plain for each in pair if each))) for pair in zip(*ids, strict=True)]
        table.add_row(_place(found, offset), *names, *told, style="bold" if offset == 0 else "red" if told[0] != told[1] else "")
    return table


def _place(found: Finding, offset: int) -> str:
    """`> 40 / 52`: a position of the stream, and the engine's where it's another."""
    places = dict.fromkeys((found.position, found.engine_position) if found.stream_ids else (found.engine_position,))
    return f"{'> ' * (offset == 0)}{' / '.join(str(each + offset) for each in places)}"


def _at(values: Sequence[str], index: int) -> str:
    return (values[index] if 0 <= index < len(values) else "") or "-"


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
    """`85.2 %`; 100 % is all of them, and never rounded to."""
    if share >= 1:
        return "100 %"
    return f"{100 * share:.1f} %" if share < EXACT else f"{min(100 * share, 99.9999):.4f}".rstrip("0").rstrip(".") + " %"
