"""Read and write workflow files: Flow 2.0 YAML, Flow 1.0 job files."""
