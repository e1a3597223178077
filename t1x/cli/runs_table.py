"""What `t1x runs` prints."""

import math
import time
from collections.abc import Sequence

from rich.console import Group
from rich.table import Table

from t1x.campaign.standing import Standing
from t1x.campaign.wording import duration, size


def runs_table(found: Sequence[Standing]) -> Group:
    """A line a run, and the disk that all of them take."""
    table = Table(pad_edge=False, box=None)
    table.add_column("run", no_wrap=True)
    for column in ("status", "step", "started", "took", "disk"):
        table.add_column(column, no_wrap=True, justify="left" if column == "status" else "right")
    table.add_column("last score", overflow="fold")
    for each in found:
        run = each.run
        table.add_row(
            run.folder.name,
            str(run.status),
            "" if run.steps is None else f"{each.step}/{run.steps}",
            time.strftime("%m-%d %H:%M", time.localtime(run.started)),
            "" if math.isnan(each.seconds) else duration(each.seconds),
            size(each.disk),
            each.score,
        )
    return Group(table, f"{len(found)} run{'s' if len(found) > 1 else ''}, {size(sum(each.disk for each in found))}")
