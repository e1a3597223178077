"""What `t1x audit` prints."""

import json
from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from t1x.campaign.run_audit import BatchAudit
from t1x.text.tokenizer import ChatTokenizer
from t1x.text.visible import legible
from t1x.trajectory.audit import Audit
from t1x.trajectory.audit_finding import BEFORE, Finding
from t1x.trajectory.audit_record import SUBSTITUTED_BOUND
from t1x.trajectory.records import Boundary


def summary(batches: Sequence[BatchAudit], audits: Sequence[Audit], stitcher: str, faithful: bool) -> Iterator[RenderableType]:
    """A line a batch, and what holds for all of them."""
    table = Table(pad_edge=False, box=None)
    table.add_column("batch", no_wrap=True)
    rows = ("placeholders", "substituted", "recomputed")
    for column in ("trials", "loss tokens", "own turn", "context", *map(str, Boundary), *rows):
        table.add_column(column, justify="right", no_wrap=True)
    for batch, found in zip(batches, audits, strict=True):
        table.add_row(batch.file.name, f"{batch.trials}", *_cells(found))
    whole = sum(audits, Audit())
    if len(audits) > 1:
        table.add_row("all", f"{sum(batch.trials for batch in batches)}", *_cells(whole), end_section=True)
    yield table
    yield Text(_positions(whole))
    if without := [batch.file.name for batch in batches if not batch.routing]:
        yield Text(f"without routing, which wasn't kept: {', '.join(without)}")
    if not faithful:
        yield Text(f"{stitcher} is a baseline: what differs is what it stands for, no fault")
    elif whole.violations:
        yield Text(
            f"{whole.own_turn_violations} loss positions, {whole.misplaced_rows} routing rows of context and "
            f"{whole.cached_differences} cached rows aren't what was captured: {stitcher} must leave none",
            style="bold red",
        )


def examples_of(findings: Sequence[Finding], tokenizer: ChatTokenizer | None) -> Iterator[RenderableType]:
    """The findings, each with what the stream has beside what the engine had; without text where there is no tokenizer."""
    for found in findings:
        where = f"\n{found.trial}, turn {found.turn}: {found.kind}, {found.count} position{'s' * (found.count != 1)} of it"
        yield Text(legible(f"{where}; {found.detail}" if found.detail else where))
        table = Table(pad_edge=False, box=None)
        for column, justify in (("position", "right"), ("stream", "right"), ("", "left"), ("engine's", "right"), ("", "left")):
            table.add_column(column, justify=justify, overflow="fold")  # type: ignore[arg-type]
        before = min(BEFORE, found.position), min(BEFORE, found.engine_position)
        for offset in range(-max(before), max(len(found.stream_ids) - before[0], len(found.engine_ids) - before[1])):
            sides = [
                _id(ids, offset + back, tokenizer) for ids, back in zip((found.stream_ids, found.engine_ids), before, strict=True)
            ]
            here = "bold" if offset == 0 else "red" if sides[0] != sides[1] else ""
            table.add_row(f"{'> ' * (offset == 0)}{found.position + offset}", *sides[0], *sides[1], style=here)
        yield table


def _id(ids: Sequence[int], index: int, tokenizer: ChatTokenizer | None) -> tuple[Text, Text]:
    if not 0 <= index < len(ids):
        return Text("-"), Text("")
    if tokenizer is None or not 0 <= ids[index] < tokenizer.vocab_size:
        return Text(f"{ids[index]}"), Text("")
    text = tokenizer.decode_spans(np.array([ids[index]], np.int32)).text
    return Text(f"{ids[index]}"), Text(json.dumps(legible(text), ensure_ascii=False))


def _cells(found: Audit) -> list[str]:
    counts = (
        *(found.boundaries[case] for case in Boundary),
        found.placeholder_tokens,
        found.substituted_rows,
        found.recomputed_rows,
    )
    return [f"{found.loss_tokens}", _percent(found.own_turn_fidelity), _percent(found.context_fidelity), *map(str, counts)]


def _positions(found: Audit) -> str:
    """The partition of positions of Eq. 11."""
    aligned = found.positions - found.retokenized - found.substituted_rows
    share = f"{100 * found.substituted_share:.4f} % (report: at most {100 * SUBSTITUTED_BOUND:.3f} %)"
    return (
        f"{found.positions} positions: {aligned} aligned, {found.retokenized} re-tokenized, {found.substituted_rows} with a "
        f"substituted row, {share}\n{found.recomputed_rows} rows were recomputed, {found.recomputed_differences} of them differ\n"
        f"drift in the loss region: {100 * found.own_turn_violations / max(1, found.loss_tokens):.4f} %"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.4f}".rstrip("0").rstrip(".") + " %" if share < 1 else "100 %"
