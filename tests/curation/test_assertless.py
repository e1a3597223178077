"""Tests that can't fail are found by reading them."""

import pytest

from t1x.curation.assertless import assertless
from t1x.tasks.task import Task, TaskFile


def idle(source: str, path: str = "test_outputs.py") -> list[str]:
    return assertless(Task("a", "", (), (TaskFile(path, source.encode()),), ()))


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        '"""Looks at the output."""',
        "print(open)",
        "assert True",
        'assert (path == "x", "message")',
        "os.path.exists('/app/x')",
        "result = Path('/app/x').exists()",
        "try:\n        assert 0\n    except AssertionError:\n        pass",
        "try:\n        check()\n    except:\n        print('failed')",
    ],
)
def test_a_body_that_cannot_fail_is_named(body):
    assert idle(f"def test_it():\n    {body}\n") == ["test_outputs.py::test_it"]


@pytest.mark.parametrize(
    "body",
    [
        "assert x",
        "assert 0",
        "raise ValueError",
        "check_output()",
        "with pytest.raises(OSError):\n        open('/app/x')",
        "for line in lines:\n        assert line",
        "try:\n        assert x\n    except OSError:\n        pass",
        "try:\n        check()\n    except Exception as error:\n        pytest.fail(str(error))",
        "try:\n        run()\n    except Exception:\n        raise",
        "pytest.fail('no')",
    ],
)
def test_a_body_that_can_fail_is_not(body):
    assert idle(f"def test_it():\n    {body}\n") == []


def test_classes_coroutines_and_files_are_looked_at_as_pytest_does():
    source = (
        "class TestIt:\n    def test_one(self): pass\n    def helper(self): pass\n\nasync def test_two(): pass\ndef check(): pass\n"
    )
    assert idle(source) == ["test_outputs.py::TestIt::test_one", "test_outputs.py::test_two"]
    assert idle(source, "deep/it_test.py") == ["deep/it_test.py::TestIt::test_one", "deep/it_test.py::test_two"]
    assert idle(source, "verify.py") == []
    assert idle("def test_it(:", "test_x.py") == []
