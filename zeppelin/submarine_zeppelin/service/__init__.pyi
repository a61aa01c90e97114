from .process import main as main
