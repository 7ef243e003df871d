"""Parts of an interface: buttons, fields, toggles, panels, and their labels."""
