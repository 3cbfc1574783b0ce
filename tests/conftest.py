"""What all tests share."""

from __future__ import annotations

import signal

# A shell lets what it starts in the background ignore interrupts, and what is started from there inherits that: the
# tests that send one would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
