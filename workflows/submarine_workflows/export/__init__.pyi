from .targets import TARGETS as TARGETS, Export as Export, Wishes as Wishes
