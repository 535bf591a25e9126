"""By hand: `python -m tests.lab` serves a host until Ctrl-C; `… linux` fills the cache folder."""

import signal
import sys

from tests.lab.cache import LabUnavailable
from tests.lab.host import lab_host
from tests.lab.linux import linux_boot


def main() -> int:
    """Do as the command line says."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        if sys.argv[1:] == ["linux"]:
            print(linux_boot())
            return 0
        with lab_host() as host:
            print(host.uri, flush=True)
            signal.pause()
    except KeyboardInterrupt:
        return 0
    except LabUnavailable as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
