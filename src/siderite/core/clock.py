"""The clock. Domain and store never ask it: `now` comes in from whoever does."""

import time

now = time.time
