"""One run of the user's program: environment, start, monitoring and end."""
