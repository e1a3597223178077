"""What `t1x gap` prints."""

from collections.abc import Callable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from t1x.campaign.gap import EXPERTS, Estimate
from t1x.campaign.gap_report import GapReport
from t1x.campaign.margin import Margins


def gap_tables(report: GapReport) -> Iterator[RenderableType]:
    """Lines and tables, in the order in which they are read. Lines of paths aren't to be wrapped."""
    measured = report.measured
    origin = report.origin
    yield Text(f"weights: {report.weights}\ntrials: {origin.trials}", no_wrap=True)
    if origin.versions:
        several = "versions" if len(origin.versions) > 1 else "version"
        told = ", ".join(map(str, origin.versions))
        yield Text(
            f"sampled by {origin.sampled_by or 'a run without a name'}, {several} {told}; measured with {origin.measured_with}"
        )
    if origin.note:
        yield Text(f"note: {origin.note}")
    yield Text(
        f"policy's entropy: {_plain(measured.entropy)} nats a token\nnon-canonical ids (not how the tokenizer encodes their text): "
        f"{_share(measured.noncanonical)} of the sampled ones; with all behind them in their trial {_share(measured.affected)}"
    )
    yield Text("\nMean |o - q| in nats a token, ± standard error over trials (- for a single one), all on the same sampled ids")
    yield _cells(report)
    for stitcher, lost in measured.lost.items():
        if lost:
            yield Text(f"{stitcher}: {lost} more loss tokens are left out, since their trials became longer than the model takes")
    yield Text(
        f"\nWhat each takes off (paired difference ± standard error): R3 with {report.tokens}, TITO (instead of {report.text}) "
        f"under replay, both together"
    )
    yield _effects(report)
    if measured.margins:
        yield Text("\nExperts: the trainer's own choice against the engine's record, at every position and layer")
        yield _flips(report)
        yield Text(
            "AUC: how well a small margin γ foretells a flip, as the probability that of two pairs, one that flips and one that "
            "doesn't, the former has the smaller margin; 0.5 is chance, 1 is certainty. ϵ: scores that differ by "
            "at most ϵ flip a pair only where γ ≤ 2ϵ"
        )
        yield Text("\nPairs that flip by top-k margin γ, a tenth of the pairs a line")
        yield _bins(report)


def _table(*columns: str) -> Table:
    table = Table(pad_edge=False, box=None, padding=(0, 1, 0, 0))
    table.add_column(columns[0], no_wrap=True)
    for column in columns[1:]:
        table.add_column(column, justify="left" if column in ("stitcher", "experts") else "right", no_wrap=True)
    return table


def _cells(report: GapReport) -> Table:
    table = _table("engine", "stitcher", "experts", "mean |o - q|", "loss tokens")
    for cell, gap in report.measured.cells.items():
        table.add_row(cell.dtype, cell.stitcher, EXPERTS[cell.mode], _gap(gap.estimate), f"{int(gap.counts.sum())}")
    return table


def _effects(report: GapReport) -> Table:
    table = _table("engine", "R3", "TITO", "both")
    for dtype, found in report.effects.items():
        table.add_row(dtype, *(_gap(found[name]) for name in ("R3", "TITO", "both")))
    return table


def _flips(report: GapReport) -> Table:
    margins = report.measured.margins
    table = _table("", *(f"{dtype} engine" for dtype in margins))
    lines: list[tuple[str, Callable[[Margins], str]]] = [
        ("pairs that flip", lambda found: _share(found.rate)),
        ("positions with a flip in some layer", lambda found: _share(found.any_layer)),
        ("AUC of -γ", lambda found: _plain(found.auc) if found.auc else "-"),
        ("perturbation ϵ of router scores", lambda found: f"≥ {found.perturbation:.2e}" if found.perturbation else "-"),
        ("gap where no layer flips", lambda found: _gap(found.gaps[0]) if found.gaps[0] else "-"),
        ("gap where one does", lambda found: _gap(found.gaps[1]) if found.gaps[1] else "-"),
    ]
    for name, told in lines:
        table.add_row(name, *(told(found) for found in margins.values()))
    return table


def _bins(report: GapReport) -> Table:
    """Margins are the trainer's, so that they are the same for every engine."""
    margins = report.measured.margins
    table = _table("γ from", "to", *margins)
    for bins in zip(*(found.tenths for found in margins.values()), strict=True):
        table.add_row(f"{bins[0].low:.2e}", f"{bins[0].high:.2e}", *(_share(each.flips) for each in bins))
    return table


def _gap(value: Estimate) -> str:
    return f"{value.mean:.2e} ± {'-' if value.stderr is None else f'{value.stderr:.1e}'}"


def _share(value: Estimate) -> str:
    return f"{100 * value.mean:.3f} ± {'-' if value.stderr is None else f'{100 * value.stderr:.3f}'} %"


def _plain(value: Estimate) -> str:
    return f"{value.mean:.3f} ± {'-' if value.stderr is None else f'{value.stderr:.3f}'}"
