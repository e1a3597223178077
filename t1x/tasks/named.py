"""A pool that is known by its name, wherever its tasks come from."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from t1x.config import Role
from t1x.tasks.pool import Pool, TaskPool


class NamedPool(Pool):
    """A pool of the literature with the properties that a study depends on; a site says where its tasks come from, and a stand-in
    has the same properties."""

    name: Annotated[str, Field(pattern=r"^[\w.-]+$")]
    """What it is called, e.g. `t1_15k`."""
    per_assertion: bool
    """Whether its verifiers report every assertion (report, section 3.1: T1-15k's do, TMax-15k's only pass or fail)."""
    order: Literal["stored", "quality"] = "stored"
    """The order in which it holds its tasks: `quality` is from best to worst, so that shuffling anew in each epoch is part of what
    keeps rewards stationary (report, sections 3.1 and 5.4); `stored` is no order in particular."""
    size: Annotated[int, Role.SCALE, Field(ge=1)]
    """Number of tasks (report: 15,000 in T1-15k)."""
    tasks: Annotated[Pool, Role.SCALE]
    """Where they come from on this site; has exactly `size` of them."""

    @model_validator(mode="after")
    def _verifiers_agree(self) -> Self:
        if self.tasks.per_assertion != self.per_assertion:
            raise ValueError(
                f"pool {self.name} has per_assertion = {self.per_assertion}, but its tasks, a {type(self.tasks).__name__}, have "
                f"{self.tasks.per_assertion}; set both to what the verifiers report"
            )
        return self

    def build(self) -> TaskPool:
        tasks = self.tasks.build()
        if len(tasks) != self.size:
            raise ValueError(
                f"pool {self.name} has size = {self.size}, but its tasks, a {type(self.tasks).__name__}, are {len(tasks)}; set "
                f"size to that, or tasks to a pool of {self.size}"
            )
        return tasks
