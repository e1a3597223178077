from types import SimpleNamespace

from t1x.rollout.cost import virtual_cost


def turn(prompt: int, sampled: int) -> SimpleNamespace:
    return SimpleNamespace(prompt_ids=range(prompt), completion=SimpleNamespace(ids=range(sampled)))


def test_a_trial_costs_what_it_read_and_sampled() -> None:
    assert virtual_cost([]) == 0
    assert virtual_cost([turn(10, 3)]) == 13
    assert virtual_cost([turn(10, 3), turn(15, 4)]) == 10 + 3 + 2 + 4
    assert virtual_cost([turn(10, 3), turn(15, 4), turn(6, 1)]) == 19 + 6 + 1, "a compacted history is read anew"
