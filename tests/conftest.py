"""Fixtures for all tests. Those of the cluster come with the minicluster itself."""

from __future__ import annotations

import signal

from hypothesis import settings

# A busy machine may be slow for a moment; how long a test may take is pytest-timeout's matter.
settings.register_profile("project", deadline=None)
settings.load_profile("project")

pytest_plugins = ["submarine_minicluster.pytest_plugin"]

# Under nohup, or in the background of a shell, signals are ignored, and by all processes of the
# tests with them: what a signal does could not be tested.
for number in (signal.SIGHUP, signal.SIGINT):
    if signal.getsignal(number) is signal.SIG_IGN:
        usual = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
        signal.signal(number, usual)
