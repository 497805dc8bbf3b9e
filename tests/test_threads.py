"""BLAS on one thread."""

from threading import Event, Thread

from threadpoolctl import threadpool_info, threadpool_limits

from bimichi._progress import one_blas_thread


def blas():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_overlapping_blocks_restore_the_threads():
    entered, left = Event(), Event()

    def other():
        with one_blas_thread():
            entered.set()
            left.wait()

    thread = Thread(target=other)
    with threadpool_limits(2, "blas"):
        before = blas()
        with one_blas_thread():
            assert blas() <= {1}
            thread.start()
            entered.wait()
        left.set()
        thread.join()
        assert blas() == before
