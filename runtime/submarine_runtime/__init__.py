"""Code that runs in containers; it is copied there unchanged.

Standard library only, Python 3.8 or later, because the user's environment may lack any package. The
package ``submarine_jobs`` submits, watches and displays jobs.
"""
