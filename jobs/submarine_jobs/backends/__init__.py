"""Where jobs run: ``yarn`` (skein) and ``local`` (processes on this machine)."""
