"""`python -m sightline`: the same as the command `sightline`."""

from __future__ import annotations

import sys

from sightline.cli.main import main

sys.exit(main())
