"""The jobs of one server: session, job details, links."""
