"""What runs in the container; standard library only, and no import of the project's packages."""
