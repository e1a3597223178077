"""Trees are removed whatever is in them, also those that an interrupted removal has left."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t1x.sandbox import removal
from t1x.sandbox.removal import remove_tree

NAMES = st.sampled_from(["a", "b", "removing-0", "removing-1", "x.removed"])
TREES = st.recursive(st.none(), lambda inside: st.dictionaries(NAMES, inside, max_size=4), max_leaves=20)


def make(path: Path, tree) -> None:
    if tree is None:
        path.write_text("")
        return
    path.mkdir()
    for name, below in tree.items():
        make(path / name, below)
    if len(tree) % 2:
        path.chmod(0o000)


class Interrupted(BaseException):
    pass


@settings(deadline=None)
@given(tree=st.dictionaries(NAMES, TREES, max_size=4), after=st.integers(0, 12))
def test_an_interrupted_removal_is_finished_by_the_next_call(tmp_path_factory, tree, after):
    base = tmp_path_factory.mktemp("base")
    beside = base / "beside"
    make(beside, {"kept": None})
    folder = base / "folder"
    make(folder, tree)
    left = itertools.count(after, -1)

    def counted(work):
        def step(*args, **named):
            if next(left) <= 0:
                raise Interrupted
            return work(*args, **named)

        return step

    with pytest.MonkeyPatch.context() as patch:
        for name in ("rename", "unlink", "chmod"):
            patch.setattr(removal.os, name, counted(getattr(removal.os, name)))
        try:
            remove_tree(folder)
        except Interrupted:
            patch.setattr(removal, "_numbers", itertools.count())  # as in a new process
    for rest in sorted(base.glob("folder*")):
        remove_tree(rest)
    assert sorted(path.name for path in base.iterdir()) == ["beside"]
    beside.chmod(0o700)
    assert [path.name for path in beside.iterdir()] == ["kept"]


def test_what_is_missing_is_fine(tmp_path):
    remove_tree(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


def test_two_of_a_name_are_both_removed(tmp_path):
    make(tmp_path / "x.removed", {"removing-0": {"a": None}})
    make(tmp_path / "x", {"b": None})
    remove_tree(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
