"""How often property tests try what the project promises of tokens and routing: twice as often as other property tests, by the
hypothesis profile (200 times; 5,000 in `make soak`)."""

from hypothesis import HealthCheck, settings

promise = settings(max_examples=2 * settings().max_examples, deadline=None, suppress_health_check=list(HealthCheck))
"""Decorates a property test of a promise; `settings(promise, max_examples=…)` for one whose examples are slow."""
