"""Advantages, objectives and the trainer."""
