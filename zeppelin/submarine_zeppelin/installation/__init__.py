"""Install and check the interpreter: ``submarine zeppelin install|check``."""
