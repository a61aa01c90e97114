from .targets import TARGETS as TARGETS, Export as Export, ExportOptions as ExportOptions
