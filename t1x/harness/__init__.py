"""Agent loops."""
