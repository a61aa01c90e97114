"""Program of a notebook server's job. It runs in the container: standard library only."""
