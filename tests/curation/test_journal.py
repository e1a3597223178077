"""A journal that was cut off anywhere still has every whole line."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t1x.curation.journal import Journal
from t1x.tasks.manifest import Entry, Finding, Settings

SETTINGS = Settings(sandbox="BubblewrapSandbox", repeats=3)

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
entries = st.builds(
    Entry,
    sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
    assertions=st.none() | st.tuples(names, names),
    findings=st.tuples() | st.tuples(st.builds(Finding, fault=st.just("flaky"), detail=names)),
)


def written(path: Path, settings: Settings = SETTINGS, fresh: bool = False) -> dict[str, Entry]:
    journal = Journal(path, settings, fresh)
    journal.close()
    return journal.entries


@given(st.dictionaries(names, entries, max_size=4), st.data())
def test_what_is_whole_is_read_and_added_to_wherever_it_was_cut(rows, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        journal = Journal(path, SETTINGS)
        sizes = [path.stat().st_size]
        for name, entry in rows.items():
            journal.add(name, entry)
            sizes.append(path.stat().st_size)
        journal.close()
        cut = data.draw(st.integers(0, sizes[-1]))
        path.write_bytes(path.read_bytes()[:cut])
        whole = sum(size <= cut for size in sizes[1:])
        again = Journal(path, SETTINGS)
        assert again.entries == dict(list(rows.items())[:whole])
        again.add("one more", Entry(sha256="0"))
        again.close()
        assert written(path) == {**again.entries, "one more": Entry(sha256="0")}


def test_other_settings_or_a_fresh_start_begin_anew(tmp_path):
    path = tmp_path / "deep" / "journal"
    for other in ({"settings": Settings(sandbox="BubblewrapSandbox", repeats=1)}, {"fresh": True}):
        journal = Journal(path, SETTINGS)
        journal.add("a", Entry(sha256="0"))
        journal.close()
        assert written(path) == {"a": Entry(sha256="0")}
        assert written(path, **other) == {}
        assert written(path) == {}


def test_a_journal_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"can't be written .* with --out"):
        Journal(tmp_path / "file" / "journal", SETTINGS)
