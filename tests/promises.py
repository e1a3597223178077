"""How often property tests try what the project promises of tokens and routing: `T1X_EXAMPLES` says it (`make soak`: 5,000)."""

import os

from hypothesis import HealthCheck, settings

EXAMPLES = int(os.environ.get("T1X_EXAMPLES", "200"))
promise = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
"""Decorates a property test of a promise; `settings(promise, max_examples=…)` for one whose examples are slow."""
