"""TensorBoard in a container, and the options of every TensorBoard."""
