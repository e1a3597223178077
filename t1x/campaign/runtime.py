"""Which processes the parts of an experiment live in."""

from typing import Annotated

from pydantic import Field

from t1x.config import Component, Role
from t1x.config.requirements import gpus, package, worker

Devices = Annotated[int, Role.PLACEMENT, Field(ge=0)]


class Runtime(Component):
    """Which processes the parts of an experiment live in."""

    def objection(self, inference: int, training: int, trials: int) -> str:
        """Why it can't give so many devices to sampling and to training, or host so many trials at a time, and what to set; empty
        where it can."""
        return ""


class InlineRuntime(Runtime):
    """Everything in this process; sandboxes are processes of their own."""

    def objection(self, inference: int, training: int, trials: int) -> str:
        return f"it is one process, and the trainer's plan needs {training}; use @RayRuntime()" if training > 1 else ""


class RayRuntime(Runtime):
    """Ray actors on a cluster: sampling and training on devices of their own, one step apart, and the sandboxes' side of trials on
    the nodes that sample."""

    address: Annotated[str | None, Role.PLACEMENT] = None
    """Of a running cluster, `auto` or `host:port`; one is started on this machine where None."""
    inference_devices: Devices
    """GPUs that sample (n in Eq. 22; about half of all, report section 7.5)."""
    training_devices: Devices
    """GPUs that train, none of which samples (G - n in Eq. 22)."""
    devices_per_node: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 8
    """GPUs of one node (not stated in the report)."""
    trials_per_node: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 70
    """Trials alive at a time on each node that samples (report, section 7.4: 35 at batch 256, 70 to 94 at batch 512)."""
    steps_ahead: Annotated[int, Field(ge=0, le=1)] = 1
    """How many steps sampling is ahead of training (σ in Eq. 23; report: 1). With 0 the two take turns."""
    control_deadline: Annotated[float, Role.PLACEMENT, Field(gt=0)] = 120.0
    """Seconds for one control operation. All have this deadline, bulk transfers have none (report, section 7.3, which doesn't state
    the number)."""

    def missing(self) -> list[str]:
        devices = gpus(self.inference_devices + self.training_devices) if self.address is None else []
        return [*package("ray", ">=2.55,<3"), *devices, *worker(self)]

    def objection(self, inference: int, training: int, trials: int) -> str:
        if inference > self.inference_devices:
            return f"the engine needs {inference} GPUs, but inference_devices is {self.inference_devices}; raise it or use less"
        if training > self.training_devices:
            return (
                f"the trainer's plan needs {training} GPUs, but training_devices is {self.training_devices}; raise it or use less"
            )
        nodes = -(-self.inference_devices // self.devices_per_node)
        if nodes and trials > nodes * self.trials_per_node:
            return (
                f"concurrency is {trials}, but {nodes} nodes that sample host {nodes * self.trials_per_node} trials; raise "
                f"trials_per_node or lower concurrency"
            )
        return ""
