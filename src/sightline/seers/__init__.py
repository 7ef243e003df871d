"""Vision models: one file for each way of asking one."""
