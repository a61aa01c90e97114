"""Program of a kernel's job. It runs in the container: standard library only, Python 3.8."""
