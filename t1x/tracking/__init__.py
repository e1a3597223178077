"""MLflow, figures and transcripts."""
