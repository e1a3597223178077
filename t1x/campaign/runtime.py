"""Which processes the parts of an experiment live in."""

from typing import Annotated

from pydantic import Field

from t1x.config import Component, Role
from t1x.config.requirements import package, worker

Devices = Annotated[int | None, Role.PLACEMENT, Field(ge=0)]


class Runtime(Component):
    """Which processes the parts of an experiment live in."""

    def objection(self, inference: int, training: int, trials: int) -> str:
        """Why it can't give so many devices to sampling and to training, or host so many trials at a time, and what to set; empty
        where it can."""
        return ""

    def devices(self, inference: int, training: int) -> int:
        """GPUs that must be on this machine where the engine needs `inference` of them and the trainer `training`."""
        return inference + training


class InlineRuntime(Runtime):
    """Everything in this process; sandboxes are processes of their own."""

    def objection(self, inference: int, training: int, trials: int) -> str:
        return f"it is one process, and the trainer's plan needs {training}; use @RayRuntime()" if training > 1 else ""


class RayRuntime(Runtime):
    """Ray actors on a cluster: sampling and training on devices of their own, and the sandboxes' side of trials on
    the nodes that sample."""

    address: Annotated[str | None, Role.PLACEMENT] = None
    """Of a running cluster, `auto` or `host:port`; one is started on this machine where None."""
    inference_devices: Devices = None
    """GPUs that sample (n in Eq. 22; about half of all, report section 7.5); as many as the engine needs where None."""
    training_devices: Devices = None
    """GPUs that train, none of which samples (G - n in Eq. 22); as many as the trainer's plan needs where None."""
    devices_per_node: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 8
    """GPUs of one node (not stated in the report)."""
    trials_per_node: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 70
    """Trials alive at a time on each node that samples (report, section 7.4: 35 at batch 256, 70 to 94 at batch 512)."""
    control_deadline: Annotated[float, Role.PLACEMENT, Field(gt=0)] = 120.0
    """Seconds for one control operation. All have this deadline, bulk transfers have none (report, section 7.3, which doesn't state
    the number)."""

    def missing(self) -> list[str]:
        return [*package("ray", ">=2.55,<3"), *worker(self)]

    def devices(self, inference: int, training: int) -> int:
        if self.address is not None:
            return 0
        sampling = inference if self.inference_devices is None else self.inference_devices
        return sampling + (training if self.training_devices is None else self.training_devices)

    def objection(self, inference: int, training: int, trials: int) -> str:
        sampling = inference if self.inference_devices is None else self.inference_devices
        if inference > sampling:
            return f"the engine needs {inference} GPUs, but inference_devices is {sampling}; raise it or use less"
        if self.training_devices is not None and training > self.training_devices:
            return (
                f"the trainer's plan needs {training} GPUs, but training_devices is {self.training_devices}; raise it or use less"
            )
        nodes = -(-sampling // self.devices_per_node)
        if nodes and trials > nodes * self.trials_per_node:
            return (
                f"concurrency is {trials}, but {nodes} nodes that sample host {nodes * self.trials_per_node} trials; raise "
                f"trials_per_node or lower concurrency"
            )
        return ""
