"""An assistant for HPC users: documentation and live commands, answered with sources."""
