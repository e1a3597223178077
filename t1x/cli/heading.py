"""The lines that say which experiment a text is about."""

from t1x.campaign.identity import run_digest_of
from t1x.config import Resolved
from t1x.config.digest import study_digest
from t1x.config.places import shown


def heading(resolved: Resolved) -> list[tuple[str, str]]:
    """What each line is called and says."""
    return [
        ("file", shown(resolved.path)),
        ("site", resolved.root.site or "none"),
        ("study", study_digest(resolved.root)),
        ("run", run_digest_of(resolved.root)),
    ]
