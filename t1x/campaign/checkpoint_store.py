"""The checkpoints of a run: `checkpoints/<name>/`, written while training goes on, and read when it goes on from one.

Invariants:
- whatever ends the process, what is found under a checkpoint's name is whole, and until a new full one is, an older one is there;
- one that was damaged since is never used: it is said, and the one before is taken.
"""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError

from t1x.campaign.checkpoint_folder import (
    Checkpoint,
    StoredNetwork,
    drop_unlisted,
    keep_weights,
    read_checkpoint,
    remove_checkpoint,
    remove_interrupted,
    write_checkpoint,
)
from t1x.campaign.checkpoint_retention import retained
from t1x.campaign.checkpointing import Checkpointing
from t1x.campaign.manifest import Manifest, read_manifest, verify
from t1x.campaign.state_tree import snapshot
from t1x.model.durable import replace_text
from t1x.training.algorithm import Network

SCORES = "scores.json"


class CheckpointStore:
    """The checkpoints in one folder, of which one process at a time is in charge."""

    def __init__(self, folder: Path, spec: Checkpointing, keeps: frozenset[Network], say: Callable[[str], None]) -> None:
        """`folder` is the run's `checkpoints`; what a killed process left unfinished there is removed. `keeps` are the networks of
        those that become weights alone, `say` tells the user."""
        self._folder, self._spec, self._keeps, self._say = folder, spec, keeps, say
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._write: Future[None] | None = None
        remove_interrupted(folder)
        for manifest in self._readable():
            if manifest.kind == "weights":
                drop_unlisted(folder / manifest.name)
        self._scores = self._stored_scores()

    def save(self, checkpoint: Checkpoint) -> Path:
        """Writes a full checkpoint and then removes what isn't kept any more. Where that is asynchronous it returns as soon as all
        was copied, and an earlier write has ended. Raises `ValueError` where it, or the earlier one, can't be written; the
        checkpoints before are untouched then."""
        self.finish()
        copied = replace(
            checkpoint,
            networks={which: _copied(network) for which, network in checkpoint.networks.items()},
            state=snapshot(checkpoint.state),
        )
        self._scores.pop(checkpoint.name, None)  # of a policy that is no more
        scores = dict(self._scores)
        if self._spec.asynchronous:
            self._write = self._writer.submit(self._save, copied, scores)
        else:
            self._save(copied, scores)
        return self._folder / checkpoint.name

    def scored(self, suite: str, name: str, value: float) -> None:
        """Takes note of a suite's value for the policy of a checkpoint, the last one given counts; of suites other than the one
        that decides none is taken."""
        if suite != self._spec.best or self._scores.get(name) == value:
            return
        self._scores[name] = value
        self._folder.mkdir(parents=True, exist_ok=True)
        replace_text(self._folder / SCORES, json.dumps({suite: self._scores}, indent=1) + "\n")

    def finish(self) -> None:
        """Waits for a write that is under way. Raises what stopped it."""
        write, self._write = self._write, None
        if write is not None:
            write.result()

    def close(self) -> None:
        """As `finish`, for a run that is ended by something else: an error is said, not raised."""
        try:
            self.finish()
        except ValueError as error:
            self._say(str(error))
        finally:
            self._writer.shutdown()

    def newest(self) -> Checkpoint | None:
        """The newest full checkpoint that is sound; None where there is none. Says which damaged ones it passed over."""
        self.finish()
        damaged = self._unreadable()
        for manifest in sorted(self._readable(), key=lambda each: -each.index):
            if manifest.kind == "full":
                if not (wrong := verify(self._folder / manifest.name)):
                    self._say_damaged(damaged, f"{manifest.name} is used, the newest one that is sound")
                    return read_checkpoint(self._folder / manifest.name, manifest)
                damaged[manifest.name] = wrong
        self._say_damaged(damaged, "no sound one is left, so the run begins anew")
        return None

    def newest_weights(self) -> Path | None:
        """The folder of the newest checkpoint whose networks are sound; None where there is none."""
        self.finish()
        for manifest in sorted(self._readable(), key=lambda each: -each.index):
            if not verify(self._folder / manifest.name, manifest.networks):
                return self._folder / manifest.name
        return None

    def _save(self, checkpoint: Checkpoint, scores: Mapping[str, float]) -> None:
        try:
            write_checkpoint(self._folder, checkpoint)
            self._prune(checkpoint, scores)
        except (OSError, SafetensorError) as error:
            raise ValueError(
                f"checkpoint {checkpoint.name} can't be written to {self._folder}: {error}; the ones before are as they were. Make "
                f"room or mend it, then go on from the last one with --resume"
            ) from error

    def _prune(self, newest: Checkpoint, scores: Mapping[str, float]) -> None:
        """Those with a higher index than the newest's are of a past that the run has turned away from: it went on from before."""
        found = [each for each in self._readable() if each.index < newest.index or each.name == newest.name]
        kept = retained(found, self._spec, scores)
        for manifest in self._readable():
            folder = self._folder / manifest.name
            if manifest.name not in kept:
                remove_checkpoint(folder)
            elif kept[manifest.name] == "weights" and manifest.kind == "full":
                keep_weights(folder, manifest, self._keeps)

    def _readable(self) -> list[Manifest]:
        """Manifests of all checkpoints that have a sound one."""
        found = []
        for folder in self._folders():
            try:
                manifest = read_manifest(folder)
            except ValueError:
                continue
            if manifest.name == folder.name:  # otherwise a user's copy
                found.append(manifest)
        return found

    def _unreadable(self) -> dict[str, list[str]]:
        return {folder.name: wrong for folder in self._folders() if (wrong := verify(folder, ()))}

    def _folders(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return sorted(path for path in self._folder.iterdir() if path.is_dir() and not path.name.startswith("."))

    def _say_damaged(self, damaged: Mapping[str, list[str]], instead: str) -> None:
        for name, wrong in damaged.items():
            self._say(f"checkpoint {name} is damaged: {'; '.join(wrong)}; {instead}")

    def _stored_scores(self) -> dict[str, float]:
        file = self._folder / SCORES
        if self._spec.best is None or not file.is_file():
            return {}
        try:
            stored = json.loads(file.read_text(encoding="utf-8")).get(self._spec.best, {})
            return {name: float(value) for name, value in stored.items()}
        except (OSError, ValueError, AttributeError, TypeError) as error:
            self._say(f"{file} can't be read ({error}); the best checkpoint is chosen among those that are evaluated from now on")
            return {}


def _copied(network: StoredNetwork) -> StoredNetwork:
    weights = {name: tensor.detach().to("cpu", dtype=torch.float32, copy=True) for name, tensor in network.weights.items()}
    return replace(network, weights=weights)
