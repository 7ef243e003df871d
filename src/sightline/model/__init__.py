"""Values and ports that all other packages share. Pure: no I/O."""
