"""Sampling from the policy."""
