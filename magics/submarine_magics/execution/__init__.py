"""Cells that are being executed: request, interrupts, threads, assigned name."""
