"""The dialler for addresses that came from a model or a document."""
