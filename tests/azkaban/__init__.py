"""Azkaban as its source says that it is: what it takes, answers and runs. For tests."""
