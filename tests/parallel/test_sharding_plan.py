"""Plans that can't be, and plans that don't fit a network, are refused with what to change."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from t1x.parallel.plan import MegatronPlan, TorchPlan
from t1x.training.trainer import TorchTrainer

DEGREES = st.integers(1, 8)


@given(DEGREES, DEGREES, DEGREES, DEGREES)
def test_devices_are_the_product_of_the_four_degrees(tensor, pipeline, context, data):
    assert MegatronPlan(tensor=tensor, pipeline=pipeline, context=context, data=data).devices == tensor * pipeline * context * data


@pytest.mark.parametrize("field", ["tensor", "pipeline", "context", "data", "expert", "expert_tensor"])
def test_every_degree_is_at_least_1(field):
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        MegatronPlan(**{field: 0})


@given(DEGREES, DEGREES, DEGREES, DEGREES, DEGREES)
def test_experts_are_sharded_over_the_devices_of_a_stage(tensor, context, data, expert, expert_tensor):
    degrees = {"tensor": tensor, "context": context, "data": data, "expert": expert, "expert_tensor": expert_tensor}
    if any(expert * expert_tensor * replicas == tensor * context * data for replicas in range(1, 513)):
        MegatronPlan(**degrees)
    else:
        with pytest.raises(ValidationError, match=r"must divide the \d+ devices of a pipeline stage"):
            MegatronPlan(**degrees)


def test_a_plan_that_fits_has_nothing_against_it():
    plan = MegatronPlan(tensor=2, pipeline=4, context=4, data=2, expert=16)
    assert plan.devices == 64
    assert plan.objection(layers=48, heads=32, experts=256) == ""
    assert MegatronPlan(tensor=2).objection(layers=48, heads=32, experts=0) == ""


@pytest.mark.parametrize(
    ("degrees", "experts", "message"),
    [
        ({"pipeline": 5}, 256, "pipeline = 5 must divide its 48 layers"),
        ({"tensor": 3, "expert_tensor": 3}, 256, "tensor = 3 must divide its 32 query heads"),
        ({"data": 3, "expert": 3}, 256, "expert = 3 must divide its 256 experts a layer"),
        ({"data": 2, "expert": 2}, 0, "must be 1, it has no experts"),
        ({"tensor": 2}, 256, "trains wrong weights.* set expert or expert_tensor to 2"),
        ({"tensor": 2, "data": 4}, 256, "trains wrong weights"),
    ],
)
def test_a_plan_that_does_not_fit_says_which_degree(degrees, experts, message):
    assert re.search(message, MegatronPlan(**degrees).objection(layers=48, heads=32, experts=experts))


def test_ranks_of_the_torch_trainer_are_devices_only_where_they_are_gpus():
    assert TorchTrainer().devices == TorchTrainer(plan=TorchPlan(data=4)).devices == 0
    assert TorchTrainer(plan=TorchPlan(data=4, device="cuda")).devices == 4


def test_one_rank_has_nothing_to_shard_over():
    with pytest.raises(ValidationError, match="fully_sharded = True shards over ranks, but data = 1"):
        TorchPlan(fully_sharded=True)
