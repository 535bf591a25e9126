"""House rules that no linter knows: size and names of modules, and what no file may mention.

The walls between rooms are import-linter's work (pyproject.toml); style is ruff's.
"""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "siderite"
MAX_LINES = 400
NAMES_THAT_SAY_NOTHING = {"utils", "helpers", "common", "manager", "base", "misc"}

# Requirements are pinned by hash and fetched from wherever the user's pip looks, so no file names a
# registry. Written in two halves so that this file passes its own test.
REGISTRIES = [
    ".".join(halves)
    for halves in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("crates", "io"),
        ("deb.debian", "org"),
    )
]
# Where somebody's checkout or home happens to be.
MACHINE_PATH = re.compile(r"(?<![\w.}*-])/(?:root|work|workspace|builds|home/\w+|Users/\w+)/")


def _modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def _files_of_the_repository() -> list[Path]:
    """Files that are tracked, or would be with the next commit."""
    if (ROOT / ".git").exists():
        listing = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-zco", "--exclude-standard"]
        names = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True, text=True)
        return [p for name in names.stdout.split("\0") if name and (p := ROOT / name).is_file()]
    hidden = re.compile(r"(^|/)(\.(?!ci/)|__pycache__/)")  # environments and caches
    return [p for p in ROOT.rglob("[!.]*") if not hidden.search(_name(p)) and p.is_file()]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _lines_with(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in _files_of_the_repository():
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{_name(path)}:{number}: {line.strip()[:100]}")
    return found


def test_no_module_is_longer_than_one_idea() -> None:
    lengths = {_name(m): len(m.read_text().splitlines()) for m in _modules()}
    assert {m: n for m, n in lengths.items() if n > MAX_LINES} == {}


def test_every_module_is_named_for_what_it_does() -> None:
    parts = {m: {*m.relative_to(SOURCE).parent.parts, m.stem.strip("_")} for m in _modules()}
    assert [_name(m) for m in parts if parts[m] & NAMES_THAT_SAY_NOTHING] == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [m for m in _modules() if not re.match(r'\s*r?"""', m.read_text())]
    assert [_name(m) for m in silent] == []


def test_no_file_names_a_package_registry() -> None:
    assert _lines_with(re.compile("|".join(map(re.escape, REGISTRIES)))) == []


def test_no_file_mentions_a_path_of_the_machine_it_was_made_on() -> None:
    assert _lines_with(MACHINE_PATH) == []
    if len(ROOT.parts) > 2:
        assert _lines_with(re.compile(re.escape(f"{ROOT}/"))) == []


def test_a_nodes_state_is_written_behind_the_one_door_only() -> None:
    """`domain/node.py` says what a move is, `enrol.py` gives a new node its first state."""
    writes = re.compile(r"""["'](target_)?provision_state["']\s*:|provision_state=(?!=)""")
    rooms = ("usecases", "workers", "drivers")  # the web has no way to the store
    found = [
        f"{_name(module)}: {line.strip()}"
        for room in rooms
        for module in (SOURCE / "baremetal" / room).rglob("*.py")
        if module.name != "enrol.py"
        for line in module.read_text().splitlines()
        if writes.search(line)
    ]
    assert found == []
    for module in _modules():
        assert not re.search(r"(UPDATE|INSERT INTO) nodes", module.read_text()), _name(module)
