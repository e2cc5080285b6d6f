"""What ends a program of the harness or of those that use it."""


class HarnessError(Exception):
    """The message says what happened and what to do; where a process failed, its last lines."""
