"""What `t1x grid run --dry-run` prints."""

from rich.console import Group
from rich.table import Table

from t1x.campaign.grid_plan import Guess, Plan, total
from t1x.campaign.resolve_cells import Cells
from t1x.campaign.wording import duration

UNKNOWN = "unknown"


def dry_run_tables(plan: Plan) -> list[Group]:
    """The starts that would be run first, if there are any, and the cells."""
    tables = []
    if plan.starts:
        starts = Table(pad_edge=False)
        for column in ("start", "run digest", "time"):
            starts.add_column(column, no_wrap=True)
        for each in plan.starts:
            starts.add_row(each.start.experiment, each.start.run_digest, _time(each.guess))
        tables.append(Group("Starts that would be run first, once each", starts))
    cells = Table(pad_edge=False)
    for column in ("cell", "seed", "run digest", "state", "time"):
        cells.add_column(column, no_wrap=column != "cell", overflow="fold")
    for planned in plan.cells:
        cell = planned.experiment.cell
        cells.add_row(cell.combination, str(cell.seed), planned.experiment.digest, planned.state, _time(planned.guess))
    return [*tables, Group("Cells", cells)]


def dry_run_text(cells: Cells, plan: Plan, jobs: int) -> str:
    """The sum, and from what it was judged."""
    due = plan.due
    if not due:
        return f"nothing to run: all {len(plan.cells)} cells have finished. `t1x grid report` compares them."
    seconds, whole = total(plan, jobs)
    time = duration(seconds) if whole else f"at least {duration(seconds)}" if seconds else UNKNOWN
    guesses = [*(start.guess for start in plan.starts), *(cell.guess for cell in due)]
    how = sorted({guess.how for guess in guesses if guess})
    said = f"estimated from: {', '.join(how)}" if how else f"no run in {cells.grid.runs} is of these sizes, so nothing is known"
    return f"to run: {len(due)} of {len(plan.cells)} cells, {jobs} at a time: {time} ({said})\nfolder: {cells.folder}"


def _time(guess: Guess | None) -> str:
    return duration(guess.seconds) if guess else UNKNOWN
