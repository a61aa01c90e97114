"""The project archive that is uploaded to Azkaban."""
