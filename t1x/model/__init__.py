"""Architectures in Hugging Face weight layout, router modes, value head."""
