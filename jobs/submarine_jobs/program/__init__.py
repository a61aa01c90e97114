"""From notebook cells to a bundle: collection, merging, IPython syntax, documents, source map."""
