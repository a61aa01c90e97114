"""The notebook as a front end: cards, text, tracebacks and questions in the output of a cell."""
