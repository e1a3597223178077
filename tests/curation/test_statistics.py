"""What a pool has, counted."""

import dataclasses
import math
import re
import shutil
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from t1x.curation.journal import Journal, journal_of
from t1x.curation.statistics import percentile, statistics
from t1x.tasks.digest import folder_digest
from t1x.tasks.folder import FolderPool
from t1x.tasks.manifest import NAME, Entry, Settings
from t1x.tasks.synthetic import SyntheticPool
from t1x.tracking.pool_figure import pool_figure

BROKEN = Path(__file__).parent / "broken"


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(1, 100))
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(values, percent):
    found = percentile(values, percent)
    assert found in values
    assert sum(value <= found for value in values) * 100 >= percent * len(values)
    assert sum(value < found for value in values) * 100 < percent * len(values)


def test_a_pool_without_a_manifest_is_counted_by_what_its_tasks_declare(tmp_path):
    tasks = SyntheticPool(split="train", size=40).build()
    found = statistics(SyntheticPool(split="train", size=40), tmp_path / NAME)
    assert (found.tasks, found.unreadable, found.checked) == (40, 0, 0)
    assert found.assertions == tuple(tasks[index].assertions for index in range(40))
    assert sorted(found.assertions)[math.ceil(0.9 * 40) - 1] == found.scale
    assert sum(found.difficulties.values()) == 40
    assert sum(found.families.values()) == sum(len(set(tasks[index].families)) for index in range(40))
    assert list(found.families.values()) == sorted(found.families.values(), reverse=True)
    assert not any(found.seconds.values())


def test_a_manifest_tells_what_tasks_do_not(tmp_path, checked):
    pool = tmp_path / "pool"
    for name in ("fine", "flaky", "malformed_toml", "passes_untouched"):
        shutil.copytree(BROKEN / name, pool / name)
    checked(FolderPool(path=pool))
    manifest = tmp_path / "manifest.json"
    found = statistics(FolderPool(path=pool), manifest)
    assert (found.tasks, found.unreadable, found.checked) == (3, 1, 3)
    assert found.assertions == (2, 202, 1)
    assert found.held[0] == 0
    assert found.held[2] == 1
    assert found.findings == {"flaky": 1, "passes_untouched": 1}
    assert {part: len(values) for part, values in found.seconds.items()} == {"environment": 3, "solution": 3, "verifier": 3}
    (pool / "fine" / "instruction.md").write_text("Changed since.")
    assert statistics(FolderPool(path=pool), manifest).checked == 2
    journal = Journal(journal_of(manifest), Settings(sandbox="other", repeats=1))
    journal.add("fine", Entry(sha256=folder_digest(pool / "fine"), assertions=("a", "b", "c")))
    again = statistics(FolderPool(path=pool), manifest)
    assert (again.checked, again.assertions) == (3, (3, 202, 1)), "what a check that hasn't ended has found counts"
    journal.close()

    pool_figure(tmp_path / "figure.png", found, title="a pool")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_counts_have_whole_numbers_at_their_axes(tmp_path):
    found = statistics(SyntheticPool(split="train", size=2), tmp_path / NAME)
    pool_figure(tmp_path / "figure.svg", dataclasses.replace(found, held=()))
    numbers = re.findall(r"<!-- ([\d.]+) -->", (tmp_path / "figure.svg").read_text())
    assert numbers
    assert [number for number in numbers if "." in number] == []
