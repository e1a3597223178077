"""Files whose rows claim to be huge are refused before they take memory, however small they are on disk."""

import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from promises import promise
from stored_trials import crafted, trial

from t1x.trajectory import storage_bounds, storage_footer, storage_reader, storage_writer
from t1x.trajectory.storage_footer import groups_of
from t1x.trajectory.storage_header import TrialFileError
from t1x.trajectory.storage_reader import read_header, read_ids, read_summaries, read_trial, read_trials
from t1x.trajectory.storage_thrift import I16, I32, I64, read_integer, read_struct
from t1x.trajectory.storage_writer import TrialWriter

BOMB = 2_000_000
"""Bytes of zeros, which are a few hundred on disk."""
READERS = (lambda path: list(read_trials(path)), read_ids, read_summaries, lambda path: read_trial(path, "trial-0"))


POOLS: list[pa.MemoryPool] = []
"""Those that were measured: what was allocated in one may outlive the measurement."""


class Peak:
    """Most bytes that Arrow and Python held."""

    arrow = python = 0


@contextmanager
def measured() -> Iterator[Peak]:
    before, pool, peak = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool()), Peak()
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        yield peak
    finally:
        peak.arrow, peak.python = pool.max_memory(), tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        pa.set_memory_pool(before)


def refused(path: Path, said: str) -> None:
    """By every reader, with place and advice, and cheaply."""
    for read in READERS:
        with measured() as peak, pytest.raises(TrialFileError, match=rf"{path.name} is damaged .*{said}.*; use another file"):
            read(path)
        assert peak.arrow + peak.python < 1_000_000


def varint(number: int) -> bytes:
    """Of a positive number in Thrift's compact protocol."""
    number, parts = number * 2, []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def wide(number: int, size: int) -> bytes:
    """As `varint`, in more bytes than it needs."""
    return bytes([number * 2 >> 7 * at & 127 | (128 if at < size - 1 else 0) for at in range(size)])


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bomb") / "bomb.parquet"
    experts = {"rows": BOMB // 4, "layers": 2, "k": 2, "bytes": 1, "data": bytes(BOMB)}
    return crafted(path, lambda row: row["turns"][0]["routing"].update(experts))


def large(bomb: Path) -> pq.ColumnChunkMetaData:
    """The column that has the zeros."""
    group = pq.read_metadata(bomb).row_group(0)
    return next(group.column(at) for at in range(group.num_columns) if group.column(at).total_uncompressed_size > BOMB)


def rewritten(bomb: Path, name: str, change: Callable[[bytes], bytes], start: Callable[[pq.ColumnChunkMetaData], int]) -> Path:
    """With other bytes from where the pages of the bomb's column begin, or the file's end does."""
    column = large(bomb)
    data, at = bomb.read_bytes(), start(column)
    changed = data[:at] + change(data[at:])
    assert len(changed) == len(data)
    assert changed != data
    (path := bomb.with_name(name)).write_bytes(changed)
    return path


def test_a_group_that_is_too_large_is_refused(bomb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bomb.stat().st_size < 20_000
    with measured() as peak, pytest.raises(TrialFileError, match="turn 0: its routing is long"):
        list(read_trials(bomb))
    assert peak.arrow > BOMB, "without a bound it is read"
    monkeypatch.setattr(storage_bounds, "LARGEST", BOMB)
    refused(bomb, r"group 0 of its rows can't be read \(it has 2,00\d,\d{3} bytes, but at most 2,000,000 are read\)")


def test_a_file_whose_end_says_less_than_its_pages_is_refused(bomb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = pq.read_metadata(bomb).row_group(0)
    sizes = [group.column(at).total_uncompressed_size for at in range(group.num_columns)]
    less = rewritten(
        bomb,
        "less.parquet",
        lambda end: end.replace(varint(max(sizes)), varint(1_100_000)),
        lambda column: column.data_page_offset + column.total_compressed_size,
    )
    monkeypatch.setattr(storage_bounds, "LARGEST", 1_500_000)
    with measured() as peak, pq.ParquetFile(less) as file:
        file.read_row_group(0)
    assert peak.arrow > BOMB, "Arrow believes the pages"
    refused(less, "the pages of column turns.list.element.routing.data are larger or smaller than the file's end says")


def test_pages_that_say_what_is_not_so_are_refused(bomb: Path) -> None:
    column = large(bomb)
    header = bomb.read_bytes()[column.data_page_offset :][:30]
    for name, wrong, said in (
        ("kind", b"\x15\x04" + header[2:], "a page of another kind"),
        (
            "more",
            header.replace(b"\x1c\x15" + varint(column.num_values), b"\x1c\x15" + varint(column.num_values + 50)),
            "larger or smaller",
        ),
        ("below", b"\x15\x00\x15" + bytes([header[3] | 1]) + header[4:], "a size of it isn't a number from 0 on"),
        ("list", b"\x19" + header[1:], "field 1 of a struct is of kind 9, but must be of kind 5"),
        ("wide", header[:2] + b"\x16" + header[3:], "field 2 of a struct is of kind 6, but must be of kind 5"),
        ("values", header.replace(b"\x1c\x15", b"\x1c\x16"), "field 1 of a struct is of kind 6, but must be of kind 5"),
        ("long", b"\x05" + header[1:], "a struct has a field 0, but they are numbered from 1 to"),
        ("endless", b"\x15" + b"\xff" * 127, "longer than 64 bits"),
    ):
        path = rewritten(
            bomb, f"{name}.parquet", lambda pages, wrong=wrong: wrong + pages[len(wrong) :], lambda each: each.data_page_offset
        )
        refused(path, said)


def test_a_dictionary_is_refused(tmp_path: Path) -> None:
    """It repeats a long text for a bit."""
    path = crafted(tmp_path / "sound.parquet", lambda row: None)
    table, said = pq.read_table(path), pq.read_metadata(path).metadata[b"t1x"]
    many = tmp_path / "many.parquet"
    with pq.ParquetWriter(many, table.schema.remove_metadata(), use_dictionary=["task"], write_statistics=False) as writer:
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata({"t1x": said})
    refused(many, "column task has a dictionary, which t1x doesn't write")


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.update(turns=row["turns"][:1] * 600, trajectories=[]),
        lambda row: row["trajectories"][0].update(boundaries=["exact"] * 600),
    ],
    ids=["turns", "boundaries"],
)
def test_lists_of_absurd_lengths_are_refused(
    tmp_path: Path, change: Callable[[dict], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = crafted(tmp_path / "lists.parquet", change)
    monkeypatch.setattr(storage_bounds, "MOST_RECORDS", 400)
    refused(path, r"\(it has 600 rows or turns, but at most 400 are read\)")


def repeating(row: dict, side: int) -> None:
    """A prompt of a million ids, and 300 turns that keep all of it but the last: 1.2 GB."""
    ids = 1_000_000 // side
    row["turns"][0].update(prompt_ids=np.zeros(ids, np.int32))
    row["turns"] = [row["turns"][0], *[{**row["turns"][1], "kept": ids - 1, "rendered": None}] * (300 // side)]


def rendering(row: dict, side: int) -> None:
    """A rendered text of a million characters that 300 turns keep."""
    characters = 1_000_000 // side
    row["turns"][0]["rendered"].update(text=bytes(characters), kept_text=0)
    again = {**row["turns"][1]["rendered"], "kept_text": characters, "text": b""}
    row["turns"] = [row["turns"][0], *[{**row["turns"][1], "rendered": again}] * (300 // side)]


def routed(row: dict, side: int) -> None:
    """One row of 8 MB that 200 trajectories take."""
    wide = {"rows": 1, "layers": 2048, "k": 4096 // side, "bytes": 1}
    row["turns"][0].update(routing={**wide, "data": bytes(wide["layers"] * wide["k"])})
    one = {**row["trajectories"][0], "token_ids": np.zeros(2, np.int32), "routing": {**wide, "rows": 0, "data": b""}}
    row["trajectories"] = [{**one, "routing_parts": np.array([0, 1])}] * (200 // side)


def in_parts(row: dict, side: int) -> None:
    """A million parts of five rows of 4 bytes: their views are 100 MB."""
    row["trajectories"][0].update(routing_parts=np.tile(np.array([0, 5]), 1_000_000 // side**2))


@pytest.mark.parametrize("side", [8, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("change", "limit", "of", "said"),
    [
        (repeating, "MOST_REPEATED", 1, "its prompts repeat {} ids and characters of those before, but at most {} are kept"),
        (rendering, "MOST_REPEATED", 1, "its prompts repeat {} ids and characters of those before, but at most {} are kept"),
        (routed, "LARGEST", 1, "the routing of its trajectories has {} bytes, but at most {} are kept"),
        (in_parts, "MOST_RECORDS", 2, "it lists {} turns, trajectories or parts of them, but at most {} are kept"),
    ],
)
def test_a_row_that_comes_to_more_than_it_has_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[dict, int], None],
    limit: str,
    of: int,
    said: str,
    side: int,
) -> None:
    """By the limits as they are, or, as that takes long, by a part of them: each side of a row is so much smaller."""
    monkeypatch.setattr(storage_bounds, limit, most := getattr(storage_bounds, limit) // side**2)
    path = crafted(tmp_path / "row.parquet", lambda row: change(row, side))
    wrong = said.format(r"[\d,]+", f"{most // of:,}")
    tracemalloc.start()
    try:
        with pytest.raises(TrialFileError, match=rf"row.parquet is damaged .*row 0 \(trial 'trial-0'\) can't be read \({wrong}"):
            list(read_trials(path))
        assert tracemalloc.get_traced_memory()[1] < 20_000_000 / side
    finally:
        tracemalloc.stop()


def test_more_rows_than_a_file_may_have_are_refused_and_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with TrialWriter(path := tmp_path / "rows.parquet", {}) as writer:
        for seed in range(3):
            writer.add(trial(seed))
    monkeypatch.setattr(storage_reader, "MOST_RECORDS", 2)
    refused(path, "it has 3 rows, but at most 2 are read")
    monkeypatch.setattr(storage_writer, "MOST_RECORDS", 2)
    with TrialWriter(path, {}) as writer:
        for seed in range(2):
            writer.add(trial(seed))
        with pytest.raises(ValueError, match=r"trial trial-2 can't be stored: a file has at most 2 trials"):
            writer.add(trial(2))


@pytest.mark.parametrize(
    ("module", "name", "said"),
    [
        (storage_bounds, "MOST_REPEATED", "its prompts repeat"),
        (storage_bounds, "MOST_RECORDS", "it lists"),
        (storage_bounds, "LARGEST", "the routing of its trajectories has"),
        (storage_writer, "LARGEST", r"it has [\d,]+ bytes, but at most 5 are kept"),
    ],
)
def test_what_could_not_be_read_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, name: str, said: str
) -> None:
    monkeypatch.setattr(module, name, 10)
    with (
        pytest.raises(ValueError, match=rf"trial trial-0 can't be stored: {said}"),
        TrialWriter(tmp_path / "a.parquet", {}) as writer,
    ):
        writer.add(trial(0, turns=8))
    assert not list(tmp_path.iterdir())


def test_a_varint_is_read_as_thrift_writes_it() -> None:
    for number in (0, 1, 63, 64, 8191, 8192, BOMB, 2**31 - 1):
        assert read_integer(varint(number) + b"\xff", 0, I32) == (number, len(varint(number)))
    assert read_integer(b"\x01", 0, I32) == (-1, 1)


@pytest.mark.parametrize(("kind", "bits"), [(I16, 16), (I32, 32), (I64, 64)])
def test_a_number_is_not_cut_to_its_bits(kind: int, bits: int) -> None:
    largest = 2 ** (bits - 1) - 1
    assert read_integer(varint(largest), 0, kind)[0] == largest
    with pytest.raises(ValueError, match=f"longer than {bits} bits"):
        read_integer(varint(largest + 1), 0, kind)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x15\x02\x06\x02\x04\x00", "a struct has field 1 twice"),
        (b"\x15\x02\x11\x05\x02\x04\x00", "a struct has field 1 twice"),
        (b"\x15\x02\x06" + varint(2**16 + 1) + b"\x04\x00", "a number is longer than 16 bits"),
        (b"\x05" + varint(2**15 - 1) + b"\x02\x15\x02\x00", "a struct has a field 32768, but they are numbered from 1 to 32,767"),
    ],
    ids=["another kind", "later", "its number cut to 16 bits", "its number beyond 16 bits"],
)
def test_a_field_that_comes_twice_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_struct(data)


def test_a_page_that_says_its_size_twice_is_refused(bomb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of its checksum, as a number of another kind, which Arrow skips."""
    less, column = 1_100_000, large(bomb)

    def twice(pages: bytes) -> bytes:
        page, header = read_struct(pages[:64])
        checksum = len(b"\x15\x00\x15" + varint(page[2][1]) + b"\x15" + varint(page[3][1]))
        data = pages.index(b"\x1c\x15" + varint(column.num_values))
        return pages[:checksum] + b"\x06\x04" + wide(less - header, data - checksum - 2) + b"\x3c" + pages[data + 1 :]

    path = rewritten(bomb, "twice.parquet", twice, lambda each: each.data_page_offset)
    end = path.read_bytes().replace(varint(column.total_uncompressed_size), varint(less))
    path.write_bytes(end)
    monkeypatch.setattr(storage_bounds, "LARGEST", 1_500_000)
    with measured() as peak, pq.ParquetFile(path) as file:
        file.read_row_group(0)
    assert peak.arrow > BOMB, "Arrow takes the first"
    refused(path, "a struct has field 2 twice")


def with_end(bomb: Path, name: str, change: Callable[[bytes, bytes], bytes]) -> Path:
    """With another end, which says of the bomb's column first how large it is (fields 6 and 7), then where its pages are (9)."""
    column = large(bomb)
    data = bomb.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    sizes = b"\x16" + varint(column.total_uncompressed_size) + b"\x16" + varint(column.total_compressed_size)
    end = data[start:-8]
    assert end.count(sizes + b"\x26") == 1
    changed = change(end, sizes)
    assert changed != end
    (path := bomb.with_name(name)).write_bytes(data[:start] + changed + len(changed).to_bytes(4, "little") + b"PAR1")
    return path


@pytest.mark.parametrize("field", [5, 6, 7, 9])
def test_an_end_that_says_a_number_twice_is_refused(bomb: Path, field: int) -> None:
    """Arrow takes the number of the right kind."""
    again = b"\x05" + varint(field) + b"\x02" + b"\x06"

    def twice(end: bytes, sizes: bytes) -> bytes:
        place = b"\x26" if field < 9 else b"\x26" + varint(large(bomb).data_page_offset)
        return end.replace(sizes + place, sizes + (again + varint(9) if field < 9 else place + again[:-1]) + place[1:])

    path = with_end(bomb, f"twice-{field}.parquet", twice)
    with pq.ParquetFile(path) as file:
        file.read_row_group(0)
    refused(path, f"a struct has field {field} twice")


def test_an_end_whose_number_is_of_another_kind_is_refused(bomb: Path) -> None:
    path = with_end(bomb, "kind.parquet", lambda end, sizes: end.replace(sizes, b"\x15" + sizes[1:]))
    refused(path, "field 6 of a struct is of kind 5, but must be of kind 6")


def test_an_end_that_hides_a_number_in_a_list_is_refused(bomb: Path) -> None:
    """Its keys and values are texts, it says: one of 24 bytes. Arrow reads a key, then a size."""
    most = 1_900_000

    def hidden(end: bytes, sizes: bytes) -> bytes:
        key, size, rest = b"\x01k\x00", b"\x06\x0c" + wide(most, 5), b"\x08\x10\x0b" + bytes(11)
        return end.replace(sizes + b"\x26", sizes + b"\x19\x18\x18" + key + size + rest + b"\x16")

    path = with_end(bomb, "hidden.parquet", hidden)
    arrow = pq.read_metadata(path).row_group(0)
    assert most in [arrow.column(at).total_uncompressed_size for at in range(arrow.num_columns)], "Arrow takes what is hidden"
    refused(path, r"the list in field 4.1.3.8 of its end has values of another kind than t1x writes")


def test_a_column_under_another_ones_name_is_refused(bomb: Path) -> None:
    """As one of numbers it might have more values."""
    data = bomb.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    schema = data.rindex(b"finish_reason")
    assert schema > data.index(b"finish_reason", start), "the columns come after the schema"
    path = bomb.with_name("name.parquet")
    path.write_bytes(data[:schema] + b"finish_raisin" + data[schema + 13 :])
    with pq.ParquetFile(path) as file:
        file.read_row_group(0)
    with pytest.raises(TrialFileError, match=r"name.parquet is damaged or cut off: its columns have changed"):
        read_ids(path)


def test_the_end_of_a_file_says_what_arrow_reads_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_writer, "GROUP", 1)
    with TrialWriter(path := tmp_path / "groups.parquet", {}) as writer:
        for seed in range(3):
            writer.add(trial(seed))
    metadata, groups = pq.read_metadata(path), groups_of(pa.OSFile(str(path)))
    assert len(groups) == metadata.num_row_groups == 3
    for index, group in enumerate(groups):
        arrow = metadata.row_group(index)
        assert group.rows == arrow.num_rows
        for at, column in enumerate(group.columns):
            same = arrow.column(at)
            assert (column.path, column.text) == (same.path_in_schema, same.physical_type == "BYTE_ARRAY")
            assert (column.values, column.bytes) == (same.num_values, same.total_uncompressed_size)
            assert (column.compressed, column.start) == (same.total_compressed_size, same.data_page_offset)


@promise
@given(data=st.binary(max_size=300))
def test_any_bytes_are_a_struct_or_refused(data: bytes) -> None:
    try:
        found, end = read_struct(data)
    except ValueError:
        return
    assert 0 < end <= len(data)
    assert all(isinstance(field, int) for field in found)


@pytest.mark.parametrize(
    "data",
    [b"\x1c" * 5000, b"\x19" * 5000, b"\x15" + b"\xff" * 5000, b"\x19\xf5\xff\xff\xff\xff\x7f", b"\x18\xff\x7f", b"\x1b\x00"],
)
def test_structs_without_an_end_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"no end|too deep|longer than 64 bits|kind \d+ isn't known"):
        read_struct(data)


def test_an_end_that_contradicts_itself_does_not_end_the_process(tmp_path: Path) -> None:
    """Arrow ends it where a column's histogram of levels, a list of 2 numbers, says that it has 6."""
    path = crafted(tmp_path / "a.parquet", lambda row: None)
    data = path.read_bytes()
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    places = [found.start() + 1 for found in re.finditer(rb"[\x19\x29]\x26", data) if found.start() > end]
    assert len(places) > 20
    code = f"""
from pathlib import Path
from t1x.trajectory.storage_header import TrialFileError
from t1x.trajectory.storage_reader import read_trials
data, path = bytearray(Path({str(path)!r}).read_bytes()), Path({str(tmp_path / "b.parquet")!r})
for at in {places}:
    data[at] ^= 64
    path.write_bytes(data)
    data[at] ^= 64
    try:
        list(read_trials(path))
    except TrialFileError:
        pass
print("lives")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("lives\n", 0), done.stderr


def test_an_end_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = crafted(tmp_path / "end.parquet", lambda row: None)
    monkeypatch.setattr(storage_footer, "LARGEST_END", 1000)
    with pytest.raises(TrialFileError, match=r"its end can't be read \(its end has [\d,]+ bytes, but at most 1,000 are read\)"):
        read_header(path)
