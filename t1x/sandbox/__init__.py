"""Where agents' commands run."""
