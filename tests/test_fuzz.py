"""Every reader on some damaged files; `make fuzz` goes on for as long as one likes."""

from collections import Counter

import fuzz
import pytest

CASES = {"models": 60, "checkpoints": 60, "annotations": 300, "images": 200}


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_damaged_files_give_a_result_or_our_error(name, tmp_path):
    outcomes = Counter()
    for seed in range(CASES.get(name, 100)):
        for path in tmp_path.iterdir():
            path.unlink()
        try:
            outcomes[fuzz.check(name, seed, tmp_path)] += 1
        except Exception as error:
            raise AssertionError(f"tests/fuzz.py --only {name} --seed {seed}") from error
    assert outcomes["refused"] > 0


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_whole_files_are_read(name, tmp_path):
    for file, content in fuzz.originals(name).items():
        (tmp_path / file).write_bytes(content)
        fuzz.TARGETS[name].read(tmp_path / file)
