"""The reference pages say what the source says, and links in the docs lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from siderite.cli import docs
from tests.support.app import standing

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("bench/*.md"),
        *ROOT.glob("packaging/*.md"),
    ]
)


def test_generated_pages_are_fresh() -> None:
    assert docs.stale(ROOT / "docs" / "reference") == []


def test_check_names_what_is_out_of_date(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert docs.main(["--into", str(tmp_path)]) == 0
    assert docs.main(["--into", str(tmp_path), "--check"]) == 0
    (tmp_path / "errors.md").write_text("old")
    (tmp_path / "metrics.md").unlink()
    (tmp_path / "stray.md").touch()
    assert docs.main(["--into", str(tmp_path), "--check"]) == 1
    said = capsys.readouterr().err
    assert [Path(name).name for name in re.findall(r"out of date: (\S+);", said)] == [
        "errors.md",
        "metrics.md",
        "stray.md",
    ]


def test_pages_do_not_depend_on_the_machine_or_the_terminal(tmp_path: Path) -> None:
    changed = {
        "COLUMNS": "40", "LANG": "C", "HOME": str(tmp_path), "SIDERITE_LISTEN": "0.0.0.0:1",
        "PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": "7",
        "TZ": "Asia/Tokyo", "NO_COLOR": "", "FORCE_COLOR": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "siderite.cli.docs", "--into", str(tmp_path / "out")]
    subprocess.run(command, env=changed, cwd=tmp_path, check=True, timeout=60)
    assert docs.stale(tmp_path / "out") == []


def test_the_list_of_addresses_has_those_of_every_service(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "reference" / "routes.md").read_text()
    with standing(tmp_path) as app:
        paths = app.ask("GET", "/openapi.json", version=None).json["paths"]
    services = {path.split("/")[1] for path in paths if path.count("/") > 1}
    assert {name for name in services if not re.search(f"^## .*`/{name}`$", text, re.M)} == set()


def test_a_line_of_usage_shows_what_must_be_given_and_what_may_be_given_again() -> None:
    text = (ROOT / "docs" / "reference" / "cli.md").read_text()
    assert "siderite server create NAME … --flavor FLAVOR --image IMAGE [--key-name NAME]" in text
    assert "\nsiderite node show NODE … [-o FORM] [--data DIR]\n" in text
    assert "| `-o, --output, -f, --format FORM` | table (default), json, yaml or name |" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    files = [link.partition("#")[0] for link in links if not re.match(r"\w+:", link)]
    assert [link for link in files if link and not (page.parent / link).exists()] == []
