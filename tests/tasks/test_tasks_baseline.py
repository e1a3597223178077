"""What is told from a task's files against what the verifier finds in a folder that holds them."""

import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from t1x.tasks import assertions as a
from t1x.tasks import verify
from t1x.tasks.assertions import Assertion
from t1x.tasks.baseline import baseline
from t1x.tasks.disk import write_files
from t1x.tasks.families.archives import tar
from t1x.tasks.synthetic import SyntheticPool
from t1x.tasks.task import TaskFile


def verified(told: bytes, files: Mapping[str, bytes]) -> frozenset[str]:
    """What the real verifier finds to hold of the content of an `assertions.json`."""
    folder = Path(tempfile.mkdtemp())
    looking: ModuleType = verify
    try:
        write_files([TaskFile(path, body) for path, body in files.items()], folder)
        looking.ROOT = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        return frozenset(each["name"] for each in json.loads(told) if verify.entry(each)[1])
    finally:
        os.close(looking.ROOT)
        looking.ROOT = -1
        shutil.rmtree(folder)


PATHS = ("a", "b", "d/a", "d/b", "d/e/a", "e/a")
FOLDERS = ("d", "d/e", "e")
BODIES = st.sampled_from(
    [b"", b"x\n", b"x\ny\n", b"one\ntwo", "é\n".encode(), b"\xff\xfe", tar({"p": "x\n"}), tar({"p": "x\n", "q": ""}), tar({})[:700]]
)
MEMBERS = st.lists(st.sampled_from(["p", "q", "r"]), unique=True)
TEXTS = st.sampled_from(["", "x\n", "x", "y", "one\ntwo", "é", "x\ny\n"])
ANYWHERE = st.sampled_from([*PATHS, *FOLDERS, "gone", "gone/a", "a/b", "d/a/b"])
FILES = st.dictionaries(st.sampled_from(PATHS), BODIES)
ASSERTIONS = st.lists(
    st.one_of(
        st.builds(a.file, ANYWHERE),
        st.builds(a.absent, ANYWHERE),
        st.builds(a.directory, ANYWHERE),
        st.builds(a.listing, ANYWHERE, st.lists(st.sampled_from(["a", "b", "e"]), unique=True)),
        st.builds(a.content, ANYWHERE, TEXTS),
        st.builds(a.contains, ANYWHERE, TEXTS),
        st.builds(a.line_count, ANYWHERE, st.integers(0, 2)),
        st.builds(a.mode, st.sampled_from([*PATHS, "gone"]), st.sampled_from(["644", "755", "600"])),
        st.builds(a.link, ANYWHERE),
        st.builds(a.link_target, ANYWHERE, TEXTS),
        st.builds(a.tar_members, ANYWHERE, MEMBERS),
        st.builds(a.output, st.sampled_from(["gone", "gone/a"]), TEXTS),
    ),
    min_size=1,
    unique_by=lambda each: each.name,
)


@given(files=FILES, assertions=ASSERTIONS)
@example({"a": b"x" * (verify.LARGEST + 1)}, [a.contains("a", "x"), a.file("a")])
@example({"a": b"x" * verify.LARGEST}, [a.contains("a", "x")])
def test_it_says_what_the_verifier_finds_in_these_files(files: dict[str, bytes], assertions: list[Assertion]) -> None:
    for per_assertion in (True, False):
        assert baseline(assertions, files, per_assertion) == verified(a.to_json(assertions, per_assertion), files)


@given(body=st.binary(max_size=600) | st.binary(max_size=40).map(lambda junk: tar({"p": "x\n"})[:500] + junk))
def test_any_bytes_are_an_archive_to_both_or_to_neither(body: bytes) -> None:
    assertions = [a.tar_members("a", ["p"])]
    assert baseline(assertions, {"a": body}) == verified(a.to_json(assertions), {"a": body})


def test_a_link_or_a_folder_in_an_archive_is_no_member() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:") as archive:
        for kind, name in ((tarfile.DIRTYPE, "./d"), (tarfile.SYMTYPE, "./l"), (tarfile.REGTYPE, "./f")):
            member = tarfile.TarInfo(name)
            member.type = kind
            archive.addfile(member)
    assertions, files = [a.tar_members("a", ["f"])], {"a": packed.getvalue()}
    assert baseline(assertions, files) == verified(a.to_json(assertions), files) == {"tar_members a"}


def test_what_only_running_it_would_tell_is_never_asserted() -> None:
    with pytest.raises(AssertionError, match=r"output a\.sh: what a script prints"):
        baseline([a.output("a.sh", "x\n")], {"a.sh": b"echo x\n"})


@pytest.mark.parametrize("per_assertion", [True, False])
@pytest.mark.parametrize("split", ["demo", "train", "validation", "held_out", "held_out_families"])
def test_the_bundled_tasks_know_theirs(split: str, per_assertion: bool) -> None:
    pool = SyntheticPool(seed=3, split=split, size=100, per_assertion=per_assertion).build()
    for index in range(len(pool)):
        task = pool[index]
        (told,) = (file.content for file in task.tests if file.path == "assertions.json")
        assert task.baseline == verified(told, {file.path: file.content for file in task.environment})
