"""Parse and run command lines: verbs, groups, shared options, usage errors, completion."""
