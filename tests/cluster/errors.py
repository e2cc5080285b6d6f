"""What ends a command of the cluster tool."""


class ClusterError(Exception):
    """The message says what happened and what to do."""
