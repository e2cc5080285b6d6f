"""What ends the demo early."""


class DemoError(Exception):
    """The message says what happened and what to do; where a process failed, its last lines."""
