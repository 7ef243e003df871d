"""Eyes with no key and no network: text, shapes, charts and codes, read on this machine."""
