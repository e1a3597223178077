"""An installed wheel, not a checkout, in an empty folder."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from open_folder import open_folder

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed() -> Iterator[tuple[Path, Path]]:
    """An empty folder, and the `t1x` of a new environment that has the wheel and sees this environment's other packages."""
    with open_folder() as folder:
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*pip, "-w", str(folder), str(CHECKOUT)], check=True)
        (wheel,) = folder.glob("*.whl")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
        python = folder / "env" / "bin" / "python"
        packages = next((folder / "env" / "lib").glob("python*/site-packages"))
        # a path alone: the editable installs in it don't count
        (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
        (folder / "empty").mkdir()
        yield folder / "empty", folder / "env" / "bin" / "t1x"


def done_in(folder: Path, program: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(program), *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_the_wheel_that_runs(installed: tuple[Path, Path]) -> None:
    python = installed[1].parent / "python"
    place = done_in(installed[0], python, "-c", "import t1x; print(t1x.__file__)")
    assert Path(place.strip()).is_relative_to(python.parents[1])


def test_every_shipped_experiment_is_in_it(installed: tuple[Path, Path]) -> None:
    names = sorted(str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "experiments").rglob("*.gin"))
    for site in ("laptop", "cluster"):
        assert done_in(*installed, "check", "--site", site, *names).count(": ok") == len(names)


@pytest.mark.ci
def test_the_quickstart_runs_from_an_empty_folder(installed: tuple[Path, Path]) -> None:
    said = done_in(*installed, "run", "experiments/quickstart.gin", "--smoke")
    assert "report" in said
    assert [path.name for path in installed[0].iterdir()] == ["runs"]
