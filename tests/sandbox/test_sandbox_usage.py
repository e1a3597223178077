"""How much a folder holds."""

import os
import resource
import threading
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from t1x.sandbox.usage import Usage

NAMES = st.sampled_from(["a", "b", "-rf", "new\nline", "\udcff", "dot."])
TREES = st.recursive(
    st.integers(0, 20_000) | st.just("link"), lambda below: st.dictionaries(NAMES, below, max_size=4), max_leaves=12
)


def make(path: Path, tree) -> None:
    if isinstance(tree, dict):
        path.mkdir()
        for name, below in tree.items():
            make(path / name, below)
    elif tree == "link":
        path.symlink_to("/usr")
    else:
        path.write_bytes(b"x" * tree)


def measured(folder: Path) -> Usage:
    usage = Usage()
    usage.add_tree(folder, lambda: True)
    return usage


@given(st.dictionaries(NAMES, TREES, max_size=4))
@settings(deadline=None, max_examples=40)
def test_every_entry_is_counted_and_no_link_followed(tmp_path_factory, tree):
    folder = tmp_path_factory.mktemp("usage") / "tree"
    make(folder, tree)
    entries = [Path(at, name).lstat() for at, folders, files in os.walk(folder) for name in folders + files]
    usage = measured(folder)
    assert usage.files == len(entries)
    assert usage.disk == sum(entry.st_blocks * 512 for entry in entries)


def test_a_file_with_several_names_takes_its_place_once(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 1_000_000)
    once = measured(tmp_path)
    for number in range(5):
        os.link(tmp_path / "a", tmp_path / f"a{number}")
    assert measured(tmp_path).disk == once.disk
    assert measured(tmp_path).files == once.files + 5


def test_a_deep_tree_takes_few_descriptors(tmp_path):
    script = f"import os; os.chdir({str(tmp_path)!r})\nfor _ in range(300):\n os.mkdir('d' * 40); os.chdir('d' * 40)"
    assert os.system(f'python3 -c "{script}"') == 0
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 20, before[1]))
    try:
        usage = measured(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert usage.files == 300
    assert os.system(f"rm -rf {tmp_path}/*") == 0


def test_nothing_outside_is_counted_while_all_is_moved_about(tmp_path):
    """Folders are moved, removed and replaced by links to a large folder, again and again, while they are counted."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    outside.mkdir()
    for number in range(2000):
        (outside / str(number)).touch()
    for number in range(20):
        (inside / f"{number}" / "a" / "b").mkdir(parents=True)
    ending = threading.Event()

    def disturb() -> None:
        while not ending.is_set():
            for number in range(20):
                folder = inside / f"{number}"
                folder.rename(inside / "away")
                folder.symlink_to(outside)
                (inside / "away" / "a").rename(inside / "a")
                (inside / "a").rename(inside / "away" / "a")
                folder.unlink()
                (inside / "away").rename(folder)

    mover = threading.Thread(target=disturb)
    mover.start()
    try:
        counts = [measured(inside).files for _ in range(300)]
    finally:
        ending.set()
        mover.join()
    assert max(counts) <= 3 * 20 + 50  # what is moved may be met twice
    assert measured(inside).files == 60


def test_it_ends_when_told_to_and_a_missing_folder_is_empty(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name / "below").mkdir(parents=True)
    usage = Usage()
    usage.add_tree(tmp_path, iter([True, False]).__next__)
    assert 3 <= usage.files < 6
    assert measured(tmp_path / "none").files == 0
