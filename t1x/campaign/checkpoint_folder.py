"""One checkpoint as a folder: `manifest.json`, a folder for each network in Hugging Face's layout, and `state/`.

Invariants:
- a folder has its name only when all of it is on disk, and loses it before the first file goes;
- one that loses its state has a manifest of weights first.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from t1x.campaign.manifest import Manifest, describe, read_manifest, write_manifest
from t1x.campaign.state_tree import load_tree, save_tree
from t1x.model.checkpoint import read_config, read_weights, write_network
from t1x.model.durable import sync, sync_below
from t1x.training.algorithm import Network

STATE = "state"
WRITING, REMOVING = ".writing-", ".removing-"
"""Begin the names of folders that aren't whole: not yet, or no longer."""


@dataclass(frozen=True, slots=True)
class StoredNetwork:
    """A network apart from any module."""

    config: Mapping[str, Any]
    """Content of `config.json`."""
    weights: Mapping[str, Tensor]
    """By Hugging Face name; float32 on disk."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All that going on from a place in a run needs."""

    name: str
    """`start`, `warmup-2`, `step-30`."""
    index: int
    """Grows from one checkpoint of a run to the next."""
    networks: Mapping[Network, StoredNetwork]
    state: dict[str, Any]
    """Nested dicts and lists of tensors, NumPy arrays and plain values; see `save_tree`."""


def write_checkpoint(parent: Path, checkpoint: Checkpoint) -> None:
    """Writes a full one; one of the same name is replaced. Raises what the file system does; nothing of it is left then."""
    parent.mkdir(parents=True, exist_ok=True)
    draft = parent / f"{WRITING}{checkpoint.name}"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir()
        for which, network in checkpoint.networks.items():
            (draft / which).mkdir()
            write_network(draft / which, network.config, network.weights)
        (draft / STATE).mkdir()
        save_tree(draft / STATE, checkpoint.state)
        write_manifest(draft, describe(draft, checkpoint.name, checkpoint.index, "full"))
        sync_below(draft)
        if (parent / checkpoint.name).exists():
            remove_checkpoint(parent / checkpoint.name)
        draft.rename(parent / checkpoint.name)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    sync(parent)


def read_checkpoint(folder: Path, manifest: Manifest) -> Checkpoint:
    """Reads a full one that is sound."""
    networks: dict[Network, StoredNetwork] = {}
    for which in ("policy", "critic"):
        if which in manifest.networks:
            weights = {name: tensor.clone() for name, tensor in read_weights(folder / which).items()}
            networks[which] = StoredNetwork(read_config(folder / which), weights)
    return Checkpoint(manifest.name, manifest.index, networks, load_tree(folder / STATE))


def keep_weights(folder: Path, manifest: Manifest, networks: frozenset[Network]) -> None:
    """Makes one of weights alone out of a full one, of these networks as far as it has them."""
    files = {path: file for path, file in manifest.files.items() if path.partition("/")[0] in networks}
    write_manifest(folder, replace(manifest, kind="weights", files=files))
    drop_unlisted(folder)


def drop_unlisted(folder: Path) -> None:
    """Removes parts that the manifest doesn't list: what is left where making one of weights was interrupted."""
    listed = {path.partition("/")[0] for path in read_manifest(folder).files}
    for part in {"policy", "critic", STATE} - listed:
        if (folder / part).exists():
            shutil.rmtree(folder / part)


def remove_checkpoint(folder: Path) -> None:
    """Removes one; it has lost its name before its first file goes."""
    gone = folder.with_name(f"{REMOVING}{folder.name}")
    if gone.exists():
        shutil.rmtree(gone)
    folder.rename(gone)
    sync(folder.parent)
    shutil.rmtree(gone)


def remove_interrupted(parent: Path) -> None:
    """Removes what a killed process left half written or half removed."""
    for prefix in (WRITING, REMOVING):
        for left in parent.glob(f"{prefix}*"):
            shutil.rmtree(left)
