"""Values only: every other room speaks in these words, and nothing here does anything."""
