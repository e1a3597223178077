import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from t1x.rollout.streams import stream

keys = st.lists(st.one_of(st.integers(), st.text(max_size=5)), max_size=5)


@given(keys, keys)
@settings(deadline=None)
def test_streams_differ_where_keys_differ(one, other):
    assert (stream(*one) == stream(*other)) == (one == other)
    assert 0 <= stream(*one) < 2**64


def test_keys_do_not_run_together():
    assert len({stream("a", "b"), stream("ab"), stream("a,b"), stream(1, 2), stream(12), stream("1", 2), stream("1", "2")}) == 7


def test_a_stream_is_the_same_in_another_process():
    code = "from t1x.rollout.streams import stream; print(stream(7, 'sample', 3, 'trial', 0))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "1"})
    assert int(other.stdout) == stream(7, "sample", 3, "trial", 0)
