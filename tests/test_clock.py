import sys
from threading import Thread

import numpy as np
import pytest

from bimichi import _progress as _clock
from bimichi._jit import jit
from bimichi._progress import FIRST_USE, CompileClock, CompileNotice, Stopwatch, progress_bar


@pytest.fixture
def hands(monkeypatch):
    """A clock that the test sets; seconds since it was made."""
    now = [0.0]
    monkeypatch.setattr(_clock.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(_clock, "COMPILING", CompileClock())
    return now


def test_compiling_is_no_part_of_the_time(hands):
    watch = Stopwatch()
    hands[0] = 2.0
    with _clock.COMPILING.running():
        hands[0] = 10.0
        assert watch.seconds == 2.0  # also while it goes on
        with _clock.COMPILING.running():  # a kernel inside a kernel
            hands[0] = 12.0
    hands[0] = 15.0
    assert watch.seconds == 5.0
    assert _clock.COMPILING.seconds == 10.0


def test_compiling_in_another_thread_counts_once(hands):
    with _clock.COMPILING.running():
        thread = Thread(target=_clock.COMPILING.enter)
        thread.start()
        thread.join()
        hands[0] = 3.0
    hands[0] = 4.0
    _clock.COMPILING.leave()
    assert _clock.COMPILING.seconds == 4.0


def test_numba_is_timed(monkeypatch):
    before = _clock.COMPILING.seconds

    @jit
    def doubled(x):
        return 2 * x

    watch = Stopwatch()
    assert doubled(np.float64(2)) == 4
    taken = _clock.COMPILING.seconds - before
    assert taken > 0
    assert watch.seconds < taken  # nothing but a call
    with pytest.raises(Exception, match="Cannot determine Numba type"):
        doubled(object())
    assert _clock.COMPILING.leave() is False  # nothing is left open: this one is one too many
    _clock.COMPILING.enter()


def test_a_method_is_not_charged_for_compiling(monkeypatch):
    from bimichi import compare
    from bimichi.datasets import street
    from bimichi.methods import MeanFusion

    clock = CompileClock()
    monkeypatch.setattr(_clock, "COMPILING", clock)
    fit = MeanFusion.fit

    def compiling_fit(self, *arguments, **options):
        with clock.running():
            return fit(self, *arguments, **options)

    monkeypatch.setattr(MeanFusion, "fit", compiling_fit)
    (result,) = compare({"mean": MeanFusion(bipolar_input=True)}, street(64, 64, 1, random_state=1), n_jobs=1).results
    assert not result.problem
    assert 0 <= result.fit_seconds < clock.seconds


def test_the_notice_comes_once(capsys):
    notice = CompileNotice()
    said = []
    notice.say = said.append
    for _ in range(3):
        notice.begin("_three")
        notice.end()
    assert said == [FIRST_USE]
    assert capsys.readouterr().err == ""  # no terminal, no bar


def test_a_bar_is_drawn_on_a_terminal_unless_another_is(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    notice = CompileNotice()
    notice.begin("_three")
    notice.end()
    drawn = capsys.readouterr().err
    assert FIRST_USE in drawn
    assert "kernel 1: three" in drawn
    monkeypatch.setattr("bimichi._progress.COMPILE_NOTICE", notice)
    with progress_bar("evolving", 3, 1):
        notice.begin("_evolve")
        notice.end()
    assert "kernel 2" not in capsys.readouterr().err
