"""What a sandbox has of this machine's own system, beside /usr."""

import os
import shutil
from pathlib import Path

from t1x.sandbox.trial_folder import HOME

_MANUALS = shutil.ignore_patterns("*.gz")
_COPIED_ETC = ("alternatives", "ld.so.cache", "localtime", "magic", "mime.types", "protocols", "services", "ssl/openssl.cnf")


def system_links() -> list[str]:
    """/bin, /lib and so on as the host has them: links into /usr, or folders."""
    parts: list[str] = []
    for name in ("/bin", "/sbin", "/lib", "/lib64"):
        if os.path.islink(name):
            parts += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            parts += ["--ro-bind", name, name]
    return parts


def write_etc(etc: Path) -> Path:
    """A minimal /etc: what programs need to start and to name the user, and nothing about the host."""
    etc.mkdir()
    (etc / "passwd").write_text(f"root:x:0:0:root:/root:/bin/bash\nagent:x:1000:1000:agent:{HOME}:/bin/bash\n")
    (etc / "group").write_text("root:x:0:\nagent:x:1000:\n")
    (etc / "hosts").write_text("127.0.0.1 localhost sandbox\n")
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
    for name in _COPIED_ETC:
        source, target = Path("/etc", name), etc / name
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, ignore=_MANUALS)
        elif source.exists():
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)
    for path in (etc, *etc.rglob("*")):
        if not path.is_symlink():  # whatever the umask
            path.chmod(0o755 if path.is_dir() else 0o644)
    return etc
