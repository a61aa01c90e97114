"""Files that the launcher applies when the program imports a framework."""
