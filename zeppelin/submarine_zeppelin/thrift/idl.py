"""Classes of Zeppelin's thrift protocol, generated from ``zeppelin.thrift`` at import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from thriftpy2.parser import load

#: Module with the structures and the two services of the file.
protocol: Any = load(
    str(Path(__file__).with_name("zeppelin.thrift")), module_name="submarine_zeppelin_thrift"
)
