import hashlib
import re
import subprocess
import sys
from itertools import combinations

import pytest
from pydantic import ValidationError

from t1x.tasks.families import HELD_OUT, TRAINED
from t1x.tasks.families.family import WORDS
from t1x.tasks.synthetic import HASHED_SPLITS, SyntheticPool


def tasks(split, seed=0, size=600, **more):
    pool = SyntheticPool(seed=seed, split=split, size=size, **more).build()
    return [pool[i] for i in range(len(pool))]


def content(task):
    """What a task is, without its wording and order: recomputed here from the finished task."""
    files = frozenset((f.path, f.content) for f in task.environment)
    return files, frozenset((goal.family, goal.commands) for goal in task.solution)


def test_splits_share_no_instance():
    instances = {
        split: {content(t) for seed in (0, 1) for t in tasks(split, seed)} for split in (*HASHED_SPLITS, "held_out_families")
    }
    for one, other in combinations(instances, 2):
        assert not instances[one] & instances[other]
    assert len(instances["train"]) > 1100, "another seed gives other tasks"


def test_held_out_families_are_never_trained_on():
    seen = {family for split in HASHED_SPLITS for task in tasks(split) for family in task.families}
    held_out = {family for task in tasks("held_out_families") for family in task.families}
    assert len(seen) >= 26
    assert len(held_out) >= 5
    assert not seen & held_out
    assert (len(seen), len(held_out)) == (len(TRAINED), len(HELD_OUT)), "every family is used"


@pytest.mark.parametrize("split", [*HASHED_SPLITS, "held_out_families"])
def test_same_task_whatever_the_size(split):
    large = SyntheticPool(seed=7, split=split, size=300).build()
    last = large[299]
    small = SyntheticPool(seed=7, split=split, size=20).build()
    assert [small[i] for i in range(20)] == [large[i] for i in range(20)]
    assert large[299] == last


def test_the_default_tasks_stay_those_that_runs_were_made_on():
    """Of what the tasks are; the verifier's own code may change."""
    pool = tasks("train", seed=3, size=200)
    told = repr([(t.name, t.instruction, t.environment, t.solution, t.tests[0].content, t.assertions) for t in pool])
    assert hashlib.sha256(told.encode()).hexdigest()[:16] == "e8325e73e1165a2b"


def test_the_order_by_quality_begins_with_the_richest_verifiers():
    drawn, ranked = tasks("train"), tasks("train", order="quality")
    assert ranked == sorted(drawn, key=lambda task: -task.assertions), "as drawn where two have as many"
    assert ranked != drawn
    assert SyntheticPool(split="train", size=600, order="quality").build()[599] == ranked[599]
    binary = tasks("train", order="quality", per_assertion=False)
    assert [task.name for task in binary] == [task.name for task in ranked], "whether or not its verifiers tell"


def test_a_binary_only_pool_has_the_same_tasks():
    for one, other in zip(tasks("train"), tasks("train", per_assertion=False), strict=True):
        assert (one.name, one.instruction, one.solution) == (other.name, other.instruction, other.solution)
        assert other.assertions == 1


@pytest.mark.parametrize("counts", [(3,), (1,), (2, 3)])
def test_a_pool_of_chosen_counts_of_sub_goals(counts):
    pool = tasks("held_out", size=200, sub_goals=counts)
    assert {len(task.solution) for task in pool} == set(counts)
    assert not {content(t) for t in pool} & {content(t) for t in tasks("train", size=200, sub_goals=counts)}
    assert len({content(task) for task in pool}) == 200
    assert pool[:20] == tasks("held_out", size=20, sub_goals=counts), "whatever the size"


def test_no_instance_twice_in_a_pool():
    pool = tasks("demo", size=3000)
    assert len({content(task) for task in pool}) == len({task.name for task in pool}) == 3000


def test_bounds_of_a_task():
    for split in ("train", "held_out_families"):
        for task in tasks(split):
            assert 1 <= len(task.solution) <= 3
            assert 2 <= task.assertions <= 8
            assert sum(len(goal.commands) for goal in task.solution) <= 6
            assert task.families == tuple(goal.family for goal in task.solution)
            assert re.fullmatch(r"[\w-]+", task.name)
            assert [f.path for f in task.tests] == ["assertions.json", "test.sh", "verify.py"]


def test_every_family_has_paraphrases():
    wordings: dict[str, set[str]] = {}
    for task in (*tasks("train", size=2000), *tasks("held_out_families", size=400)):
        for family, phrase in zip(task.families, task.instruction.split(" ; "), strict=True):
            names = r"\b(" + "|".join(WORDS) + r"|build|cache|data|depot|docs|logs|notes|pack|rack|shelf|store|vault|\d+)\b"
            wordings.setdefault(family, set()).add(re.sub(names, "_", phrase))
    assert min(len(found) for found in wordings.values()) >= 2


def test_some_commands_need_an_observation():
    """The name to act on stands in no instruction: only in what an earlier command prints."""
    hidden = 0
    for task in tasks("train"):
        for goal, phrase in zip(task.solution, task.instruction.split(" ; "), strict=True):
            if goal.family in ("delete_named", "make_named", "move_found", "move_only", "mode_named"):
                assert goal.commands[0].split()[0] in ("cat", "ls", "grep")
                words = set(re.findall(r"[\w.]+", goal.commands[-1])[1:])
                assert not words <= set(re.findall(r"[\w.]+", phrase))
                hidden += 1
    assert hidden > 100


def test_same_pool_in_another_process():
    code = (
        "import hashlib; from t1x.tasks.synthetic import SyntheticPool; p = SyntheticPool(seed=3, split='train', size=100).build();"
        "print(hashlib.sha256(repr([p[i] for i in range(100)]).encode()).hexdigest())"
    )
    here = hashlib.sha256(repr(tasks("train", seed=3, size=100)).encode()).hexdigest()
    there = subprocess.check_output([sys.executable, "-c", code], text=True, env={"PYTHONHASHSEED": "1"}).strip()
    assert here == there


def test_no_word_is_part_of_another():
    assert [(a, b) for a in WORDS for b in WORDS if a != b and a in b] == []


def test_bad_fields_and_indices():
    with pytest.raises(ValidationError, match="held_out_families"):
        SyntheticPool(split="test", size=1)
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        SyntheticPool(split="train", size=0)
    for counts in ((), (0,), (4,)):
        with pytest.raises(ValidationError, match="sub_goals"):
            SyntheticPool(split="train", size=1, sub_goals=counts)
    pool = SyntheticPool(split="train", size=3).build()
    for index in (3, -1):
        with pytest.raises(IndexError, match="pool of 3"):
            pool[index]
