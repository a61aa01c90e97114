"""``submarine doctor`` on a running cluster."""
