"""What speaks with skein's application master; the one place in the runtime that may import skein.

In this release only the helper that shows a job on its own YARN page.
"""
