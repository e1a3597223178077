"""Tokenizers, chat templates and increments at id level."""
