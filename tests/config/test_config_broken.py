"""Real configurations with one kind of mistake each: what is reported, where, and that nothing else is.

The first lines of a file in broken/ say `# expect WHERE: part | part` for each problem, in order: a line of the file, `file` for
the file as a whole, `FILE:LINE`, or `error` where nothing could be resolved at all; and `# site NAME` where it is loaded for one.
"""

import re
from pathlib import Path

import pytest

from t1x.config import Component, ConfigError, load

BROKEN = Path(__file__).parent / "broken"
FILES = sorted(BROKEN.glob("*.gin"))
WHOLE = ("campaign", "cluster", "grpo", "terminus")


def reported(name: str, site: str | None) -> list[tuple[str, str]]:
    """Place and message of each problem."""
    with pytest.raises(ValueError, match=r".") as caught:
        load(name, site=site)
    if not isinstance(caught.value, ConfigError):
        return [("error", str(caught.value))]
    return [(str(problem.origin), problem.message) for problem in caught.value.problems]


@pytest.fixture(autouse=True)
def shipped_components_alone(monkeypatch):
    """Messages list what a field takes; other tests' components aren't in a user's list."""
    for name, component in list(Component.registry.items()):
        if not component.__module__.startswith("t1x."):
            monkeypatch.delitem(Component.registry, name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_broken_configuration(path, monkeypatch):
    monkeypatch.chdir(BROKEN)
    text = path.read_text()
    expected = re.findall(r"^# expect (\S+): (.*)$", text, re.MULTILINE)
    site = re.search(r"^# site (\S+)$", text, re.MULTILINE)
    found = reported(path.name, site[1] if site else None)
    places = {"file": path.name, "error": "error"}
    assert [place for place, _ in found] == [
        f"{path.name}:{where}" if where.isdigit() else places.get(where, where) for where, _ in expected
    ], found
    for (_, message), (_, parts) in zip(found, expected, strict=True):
        for part in parts.split(" | "):
            assert part in message


@pytest.mark.parametrize("name", WHOLE)
def test_what_the_broken_ones_include_is_whole(name, monkeypatch):
    monkeypatch.chdir(BROKEN)
    assert load(f"whole/{name}.gin").root


def test_there_are_many_kinds_of_mistakes():
    assert len(FILES) >= 40
    assert len({path.read_text().splitlines()[0] for path in FILES}) == len(FILES)
