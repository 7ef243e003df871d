"""Real agents through the real proxy, against scripted providers, with no network but loopback."""
