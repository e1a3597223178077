"""Tasks: what one is, where pools of them come from."""
