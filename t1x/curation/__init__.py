"""Judging a pool before training on it: by running its tasks, by counting, by comparing it with held-out suites."""
