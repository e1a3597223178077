"""MLflow, figures and transcripts."""

from t1x.tracking.protocol import TrackedRun, Tracking

__all__ = ["TrackedRun", "Tracking"]
