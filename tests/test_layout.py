"""The map that CONTRIBUTING draws holds: imports point one way, and no module needs itself."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "voxrisk"
# Room → the rooms it may import from. A module that is no package is a room of its own.
# Any room above may keep, run and tell of long work.
WORK = {"types", "files", "models", "shards", "store", "journal", "progress", "vocoder", "corpus"}
WORK |= {"scratch", "hearing", "whisper", "mel"}
MAP = {
    "types": set(),
    "knowledge": {"types"},
    "notices": set(),
    "vocoder": {"types"},
    "mel": set(),
    "whisper": {"types", "mel", "corpus"},
    "language": {"types", "files", "models", "progress"},
    "measure": {"types"},
    "progress": {"types"},
    "scratch": set(),
    "cluster": {"types", "progress"},
    "shards": {"types", "progress", "cluster"},
    "files": {"types", "notices", "measure"},
    "models": {"types", "files", "progress"},
    "results": {"types", "notices", "files"},
    "corpus": {"types", "files", "models", "shards", "progress"},
    "journal": {"types", "files", "progress", "shards", "corpus"},
    "store": {"types", "files", "progress", "journal", "corpus", "scratch"},
    "hearing": {"types", "files", "models", "corpus", "shards"},
    "protect": {*WORK, "hearing"},
    "attack": {*WORK, "measure", "language"},
    "utility": {*WORK, "hearing", "measure", "results", "language"},
    "slicing_results": {"types", "notices", "files", "results"},
    "report": {"types", "knowledge", "files", "notices", "measure", "results", "scratch"},
}
MAP["report"] |= {"slicing_results"}
MAP["pipeline"] = set(MAP)
MAP["api"] = set(MAP)
MAP["cli"] = set(MAP)


def modules() -> dict[str, Path]:
    """Module name (without ``voxrisk.``) → file."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path
    return found


def imports(path: Path, known: set[str], *, typing_too: bool = False) -> set[str]:
    """Modules of ours that a file imports, also inside functions; not those for typing alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            skipped.update(ast.walk(node) if not typing_too else ())
    found = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("voxrisk"):
            base = (node.module or "").removeprefix("voxrisk").lstrip(".")
            inside = {f"{base}.{alias.name}".lstrip(".") for alias in node.names} & known
            found |= inside or ({base} if base else set())
        elif isinstance(node, ast.Import):
            names = {alias.name.removeprefix("voxrisk.") for alias in node.names}
            found |= names & known
    return found


def test_imports_follow_the_map() -> None:
    known = set(modules())
    wrong = []
    for name, path in modules().items():
        room = name.split(".")[0]
        if not room or room == "__main__":
            continue
        assert room in MAP, f"{name} is in no room of the map; draw it"
        for other in imports(path, known):
            there = other.split(".")[0]
            if there != room and there not in MAP[room]:
                wrong.append(f"{name} imports {other}")
    assert wrong == []


def test_a_package_gives_no_name_that_one_of_its_modules_has() -> None:
    """``from package import name`` means one thing, whatever was imported before."""
    doubled = []
    for name, path in modules().items():
        if path.stem != "__init__":
            continue
        parts = {p.stem for p in path.parent.glob("*.py")}
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module != f"voxrisk.{name}":
                names = {alias.asname or alias.name for alias in node.names}
                doubled += [f"{name}.{both}" for both in sorted(names & parts)]
    assert doubled == []


def test_no_module_needs_itself_not_even_late() -> None:
    known = modules()
    graph = {name: imports(path, set(known)) - {name} for name, path in known.items() if name}
    # A package's __init__ gathers its parts; a part must not ask the gathering for another part.
    state: dict[str, int] = {}
    cycles: list[str] = []

    def visit(name: str, way: tuple[str, ...]) -> None:
        state[name] = 1
        for other in sorted(graph.get(name, ())):
            if state.get(other) == 1:
                cycles.append(" → ".join((*way[way.index(other) :], other)))
            elif other not in state:
                visit(other, (*way, other))
        state[name] = 2

    for name in sorted(graph):
        if name not in state:
            visit(name, (name,))
    assert cycles == []


def test_measure_knows_nothing_of_files_audio_or_torch() -> None:
    heavy = {"torch", "soundfile", "pathlib", "csv", "json", "jinja2", "rich"}
    for name, path in modules().items():
        if name.startswith("measure"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            used = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import)
                    for a in n.names}  # fmt: skip
            used |= {(n.module or "").split(".")[0] for n in ast.walk(tree)
                     if isinstance(n, ast.ImportFrom)}  # fmt: skip
            assert not used & heavy, name
