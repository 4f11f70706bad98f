"""YAML as a person reads it: no tags, no aliases, no key twice, and numbers in plain digits."""

import re
from pathlib import Path
from typing import Any

from voxrisk.files.errors import reading
from voxrisk.files.limits import MOST_YAML, refuse_size
from voxrisk.files.text import read_text
from voxrisk.types import InputError


def read_plain_yaml(path: Path) -> Any:
    """Read a YAML file of plain values.

    YAML 1.1 reads ``1_0`` as 10, ``010`` as 8 and ``1:30`` as 90; here they are text, so that a
    wrong number is found where types are checked. The second of two equal keys would win without a
    word, and aliases can grow a file a million times; both are refused.

    Raises:
        InputError: If it is not such a file; the message names file and line.
    """
    import yaml

    refuse_size(path, MOST_YAML)

    class Plain(yaml.SafeLoader):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                line = self.peek_event().start_mark.line + 1
                raise InputError(f"{path} line {line}: aliases (*name) are not read; write it out")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[str] = set()
            for key, _ in node.value:
                where = f"{path} line {key.start_mark.line + 1}"
                if key.tag == "tag:yaml.org,2002:merge":
                    raise InputError(f"{where}: << is not read; write it out")
                if str(key.value) in seen:
                    raise InputError(f"{where}: {key.value} is there twice; keep one")
                seen.add(str(key.value))
            return super().construct_mapping(node, deep)

    number = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    Plain.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in rules if tag not in number]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    digits = list("-+.0123456789")
    Plain.add_implicit_resolver(number[0], re.compile(r"[-+]?(0|[1-9][0-9]*)\Z"), digits)
    decimal = r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?\Z"
    Plain.add_implicit_resolver(number[1], re.compile(decimal), digits)
    with reading(path, "YAML", way_out="correct it"):
        return yaml.load(read_text(path), Loader=Plain)  # a SafeLoader: nothing is made but data
