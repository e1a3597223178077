"""What runs a task's pytest tests inside the sandbox: a program of its own, of which the standard library and pytest are all.

Invariants:
- no code of the agent runs in this process: what the tests start is confined, and where they would run it themselves (import,
  unpickle, `exec`), the judge says so in its record and ends before it happens;
- nothing but this process has the record's descriptor.
"""
