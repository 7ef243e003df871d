"""From a tool's picture to a model's answer, through the real proxy, before providers that answer from pixels alone."""
