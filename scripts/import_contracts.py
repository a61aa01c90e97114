"""Contract of import-linter: a package is imported through its ``__init__`` only."""

from __future__ import annotations

from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class PublicApiContract(Contract):
    """Modules of a package are imported by the same package only.

    Other modules import the package itself: its ``__init__`` is the public API.

    Attributes
    ----------
    roots
        Top packages; their own modules may be imported by any module.
    public_modules
        Modules of deeper packages that may be imported by any module.
    """

    type_name = "public_api"
    roots = fields.SetField(subfield=fields.StringField())
    public_modules = fields.SetField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Return the imports that bypass a package's ``__init__``."""
        public: set[str] = set(cast("set[str] | None", self.public_modules) or ())
        roots = cast("set[str]", self.roots)
        broken = [
            (importer, imported)
            for imported in sorted(graph.modules)
            if imported.count(".") > 1
            and imported not in public
            and imported.split(".")[0] in roots
            and not graph.find_children(imported)
            for importer in sorted(graph.find_modules_that_directly_import(imported))
            if not _inside(importer, imported.rpartition(".")[0])
        ]
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print each import with the package to import instead."""
        for importer, imported in check.metadata["broken"]:
            package = imported.rpartition(".")[0]
            output.print_error(f"{importer} imports {imported}: import from {package} instead.")
        output.new_line()


def _inside(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")
