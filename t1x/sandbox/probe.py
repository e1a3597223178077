"""Whether bubblewrap works on this host, and if not, what to do about it."""

import re
import shutil
import subprocess
from pathlib import Path

from t1x.sandbox.fixed_clock import NOW
from t1x.sandbox.isolation import Launch

_OR = "or choose `@ProcessSandbox()`, which isolates nothing"
_MANY = 15000
"""User namespaces: more than t1x ever needs."""
_SYSCTLS = (
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("user/max_user_namespaces", "0", f"{_MANY}"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
)
"""(sysctl, the value that forbids user namespaces to ordinary users, one that allows them)."""
_TOO_LITTLE = ("Resource temporarily unavailable", "Cannot allocate memory", "cannot allocate memory", "failed to map segment")
"""What programs say where a limit on processes or memory is too low."""
_PROFILE = Path("/etc/apparmor.d/bwrap-userns-restrict")
"""Where distributions keep the profile that lets bubblewrap make namespaces, but not what runs in it."""
_RETRIES, _KILLED = 2, (-9, 137)
"""A probe that was killed says nothing about the machine: where memory runs out, the kernel kills what is in sandboxes first."""
CHECK = "cat /proc/self/uid_map; grep CapEff /proc/self/status; ls /sys/class/net 2>/dev/null; grep -c : /proc/net/dev"
"""Run inside by the probe; `require_confined` reads what it prints."""


def require_programs() -> None:
    """Raises `ValueError` where bubblewrap or what it needs isn't installed."""
    missing = {"bwrap": "bubblewrap", "bash": "bash"}
    packages = [package for program, package in missing.items() if shutil.which(program) is None]
    if packages:
        names = " ".join(packages)
        raise ValueError(f"BubblewrapSandbox needs {names}, which this machine lacks: `apt-get install {names}`, {_OR}")


def probe(launch: Launch) -> None:
    """Runs a launch whose command is `CHECK` and raises `ValueError` where it fails or finds itself not confined."""
    require_confined(_printed(launch))


def probe_nested(launch: Launch) -> None:
    """The same for a launch whose command is `CHECK` in a second bubblewrap, as a verifier confines programs of the agent."""
    require_confined(_printed(launch, nested=True))


def probe_clock(launch: Launch) -> None:
    """Runs a launch whose command is `date +%s` and raises `ValueError` where its clock isn't the fixed one."""
    if (printed := _printed(launch).strip()) != NOW:
        raise ValueError(
            f"the clock of a deterministic sandbox is {printed!r} and not {NOW!r}: it needs a system with glibc; "
            "or set deterministic to False"
        )


def _printed(launch: Launch, nested: bool = False) -> str:
    run = _run(launch)
    for _ in range(_RETRIES):
        if run.returncode not in _KILLED:
            break
        run = _run(launch)
    said = run.stderr.strip() or f"exit status {run.returncode}"
    if run.returncode != 0 and any(said in run.stderr for said in _TOO_LITTLE):
        raise ValueError(
            f"a sandbox has too few processes or too little memory to start in ({run.stderr.strip().splitlines()[-1]}): raise "
            "`processes` or `memory`, or what keeps them lower on this machine (`ulimit -u`, `ulimit -v`, limits of a container)"
        )
    if run.returncode != 0 and nested:
        raise ValueError(
            f"bubblewrap works on this machine, but not inside itself ({said}), as verifiers need it to confine what "
            f"agents wrote: {_nested_advice(run.stderr)}, {_OR}"
        )
    if run.returncode != 0:
        raise ValueError(f"bubblewrap doesn't work on this machine ({said}): {_advice(run.stderr)}, {_OR}")
    return run.stdout


def _run(launch: Launch) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            launch.argv,
            env=launch.env,
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"bubblewrap doesn't start within 60 s on this machine; check `{' '.join(launch.argv)}`, {_OR}") from error


def require_confined(printed: str) -> None:
    """Raises `ValueError` unless the output of `CHECK` shows one mapped user, no capability and no network but the loopback."""
    one_user = re.match(r"\s*1000\s+\d+\s+1\n", printed) is not None
    no_capability = re.search(r"CapEff:\s*0+\n", printed) is not None
    no_network = printed.rstrip().endswith("\n1")
    if not (one_user and no_capability and no_network):
        raise ValueError(
            f"bubblewrap starts on this machine but doesn't confine: {printed!r}; is it a wrapper? Use the distribution's, {_OR}"
        )


def _nested_advice(stderr: str) -> str:
    if _read(_PROFILE) is not None:
        return f"AppArmor keeps bubblewrap's programs from making namespaces; `apparmor_parser -R {_PROFILE}` until the next boot"
    if (most := _read(Path("/proc/sys/user/max_user_namespaces"))) is not None and int(most) < _MANY:
        return f"{most} user namespaces are allowed, and each sandbox takes two; `sysctl -w user.max_user_namespaces={_MANY}`"
    return _advice(stderr)


def _advice(stderr: str) -> str:
    forbidding = [(name, allowed) for name, bad, allowed in _SYSCTLS if _read(Path("/proc/sys", name)) == bad]
    if forbidding:
        return "user namespaces are forbidden here; " + ", ".join(f"`sysctl -w {n.replace('/', '.')}={v}`" for n, v in forbidding)
    if "namespace" in stderr or "setting up uid map" in stderr or "pivot_root" in stderr:
        return (
            "in a container, start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined` or `--privileged`"
        )
    if "proc" in stderr:
        return (
            "a new /proc can't be mounted; in a container, start it with `--security-opt systempaths=unconfined` or `--privileged`"
        )
    if "Can't find source path" in stderr or "Permission denied" in stderr:
        return "the sandboxes' folder can't be reached by an unprivileged user; set `root` to a folder that anyone may enter"
    if "nknown option" in stderr:
        return "it is too old; 0.4 or newer is needed"
    return "see what it says"


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
