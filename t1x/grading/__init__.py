"""Running the held-out verifier, and what its report is worth."""
