from pathlib import Path

ANSWER = Path("/app/answer.txt")


def test_the_answer_is_there():
    assert ANSWER.is_file()


def test_the_module_is_right():
    import sys

    sys.path.insert(0, "/app")
    import answer

    assert answer.VALUE == 42
