"""Near-duplicates are found, and only they."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from written import LOGS, LOGS_AGAIN, OTHERS

from t1x.curation.overlap import overlap, texts
from t1x.curation.shingles import FIELDS, shared_files, shingles
from t1x.tasks.synthetic import SyntheticPool
from t1x.tasks.task import Task, TaskFile

SENSIBLE = 0.5
"""The command's default threshold."""


def bundled(split: str, size: int) -> list[Task]:
    tasks = SyntheticPool(split=split, size=size).build()
    return [tasks[index] for index in range(size)]


POOL = [LOGS, *OTHERS, *bundled("train", 200)]


def test_a_paraphrased_copy_is_found_in_every_field_and_nothing_else_is():
    """Its files are renamed, its numbers changed, its sentences and tests in another order."""
    found = overlap(POOL, [LOGS_AGAIN], SENSIBLE)
    assert {(pair.field, pair.task, pair.held_out) for pair in found.pairs} == {(f, LOGS.name, LOGS_AGAIN.name) for f in FIELDS}


def test_unrelated_tasks_are_far_from_the_threshold():
    unrelated = overlap([*OTHERS, *POOL[1 + len(OTHERS) :]], [LOGS], SENSIBLE)
    assert unrelated.pairs == ()
    for field in FIELDS:
        assert unrelated.nearest[field][0].score < SENSIBLE / 2
    written = overlap([LOGS], list(OTHERS), 0.25)
    assert written.pairs == ()


def test_the_same_task_is_wholly_like_itself_even_in_the_smallest_pool():
    assert [pair.score for pair in overlap([LOGS], [LOGS], SENSIBLE).pairs] == pytest.approx([1] * len(FIELDS))


def test_bundled_splits_of_the_same_families_word_tasks_alike():
    """What the splits promise is that no instance is shared, not that no wording is."""
    same = overlap(bundled("train", 300), bundled("held_out", 40), SENSIBLE)
    other = overlap(bundled("train", 300), bundled("held_out_families", 40), SENSIBLE)

    def median(found, field: str) -> float:
        scores = sorted(pair.score for pair in found.nearest[field])
        return scores[len(scores) // 2]

    assert median(same, "instruction") > median(other, "instruction")
    assert any(pair.field == "instruction" and pair.score > 0.9 for pair in same.pairs)


def test_what_all_tasks_share_is_no_likeness():
    long = ("def common():\n" + "    prepare the whole machine and look around\n" * 5).encode()
    words = [["sort", "lines"], ["pack", "archive"], ["link", "file"], ["count", "words"], ["move", "folder"]]
    tasks = [
        Task(f"t{index}", "Please work in the given folder: " + " ".join(pair), (), (TaskFile("verify.py", long),), ())
        for index, pair in enumerate(words)
    ]
    found = overlap(tasks[:4], tasks[4:], 0.2)
    assert found.pairs == ()
    assert found.nearest["tests"] == ()
    assert shared_files(tasks) == {long}
    assert shared_files(tasks[:3]) == frozenset()


@given(
    st.lists(st.text("ab c", max_size=12), min_size=1, max_size=6), st.lists(st.text("ab c", max_size=12), min_size=1, max_size=4)
)
def test_scores_are_the_weighted_jaccard_index(pool, suite):
    tasks = [Task(f"t{index}", text, (), (), ()) for index, text in enumerate([*pool, *suite])]
    found = overlap(tasks[: len(pool)], tasks[len(pool) :], 0.0)
    sets = [set(shingles(text)) for text in (*pool, *suite)]

    def weight(some: set[str]) -> float:
        return sum(math.log((1 + len(sets)) / sum(shingle in each for each in sets)) for shingle in some)

    scores = {(pair.task, pair.held_out): pair.score for pair in found.pairs}
    for row in range(len(pool)):
        for column in range(len(pool), len(tasks)):
            either = weight(sets[row] | sets[column])
            expected = weight(sets[row] & sets[column]) / either if either else 0.0
            assert scores.get((f"t{row}", f"t{column}"), 0.0) == pytest.approx(expected, abs=1e-5)


def test_names_of_files_numbers_and_case_are_all_one():
    assert set(shingles("Sort /app/data/fern.txt by column 3")) == set(shingles("sort grape.txt by Column 12"))
    assert set(shingles("sort fern.txt")) != set(shingles("sort fern.csv"))
    assert "out" in shingles("read_out")
    assert set(shingles("a > b")) != set(shingles("a >> b"))


def test_every_text_is_read_once_and_empty_pools_are_refused():
    read = []
    overlap(OTHERS, [LOGS], SENSIBLE, lambda: read.append(1))
    assert len(read) == texts(OTHERS, [LOGS]) == 3 * (len(OTHERS) + 1)
    with pytest.raises(ValueError, match="the suite has no task"):
        overlap(OTHERS, [], SENSIBLE)


def test_binary_files_are_left_out():
    binary = dataclasses.replace(LOGS, tests=(*LOGS.tests, TaskFile("data.bin", bytes(range(256)) * 50)))
    assert [pair.score for pair in overlap([binary], [LOGS], SENSIBLE).pairs] == pytest.approx([1] * len(FIELDS))
