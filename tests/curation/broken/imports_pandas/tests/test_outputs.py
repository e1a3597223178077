import pandas


def test_the_answer_is_right():
    assert pandas.read_csv("/app/answer.txt", header=None)[0][0] == 42
