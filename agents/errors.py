"""What goes wrong with agents that a user named."""

from __future__ import annotations


class AgentError(ValueError):
    """A saved agent cannot be used: missing, corrupt, of another puzzle. The message is one line for the user."""
