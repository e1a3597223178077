"""`python -m t1x.cli` is the `t1x` command."""

import sys

from t1x.cli import main

sys.exit(main())
