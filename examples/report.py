"""Read a go.mod from standard input and print a report of its modules.

Try it:  rillbox run examples/report.py < go.mod

rich (pure Python) and pydantic (with its core in WebAssembly) are fetched at the
first run; nothing is installed on the machine.
"""

import re
import sys
from collections import Counter

from pydantic import BaseModel, field_validator
from rich.console import Console
from rich.table import Table


class Module(BaseModel):
    path: str
    version: str
    indirect: bool

    @field_validator("version")
    @classmethod
    def is_semver(cls, version: str) -> str:
        if not re.match(r"v\d+\.\d+\.\d+", version):
            raise ValueError(f"{version!r} is not a semantic version")
        return version

    @property
    def host(self) -> str:
        return self.path.split("/", 1)[0]


line_form = re.compile(r"^(?:require )?\s*([\w.\-/~]+\.[\w.\-/~]+) (v\S+)(.*)$")
modules = [
    Module(path=m[1], version=m[2], indirect="// indirect" in m[3])
    for line in sys.stdin
    if (m := line_form.match(line.rstrip()))
]

table = Table(title=f"{len(modules)} modules")
for heading in ("module", "version", "needed"):
    table.add_column(heading)
for module in sorted(modules, key=lambda m: (m.indirect, m.path)):
    table.add_row(module.path, module.version, "indirectly" if module.indirect else "directly")
Console(width=100).print(table)

hosts = Counter(module.host for module in modules)
print("by host:", ", ".join(f"{host} {count}" for host, count in hosts.most_common()))

{
    "modules": len(modules),
    "direct": sum(not m.indirect for m in modules),
    "hosts": dict(hosts),
}
