"""The Drevo that this process runs: its version, where its sources stand, and since when they are loaded."""

from __future__ import annotations

import os
from time import time

VERSION = "0.1.0"
FOLDER = os.path.dirname(os.path.dirname(__file__))  # of the package
PROCESS_START = time()  # sources that change later are not what this process runs
