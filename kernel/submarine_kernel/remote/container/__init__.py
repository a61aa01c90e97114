"""What runs in a kernel's container; standard library only, Python >= 3.8, no import of ours."""
