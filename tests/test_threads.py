"""BLAS on one thread."""

from threading import Event, Thread

from threadpoolctl import threadpool_info

from bimichi._threads import one_blas_thread


def blas():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_the_last_of_overlapping_blocks_restores_the_threads():
    before, entered, left = blas(), Event(), Event()

    def other():
        with one_blas_thread():
            entered.set()
            left.wait()

    thread = Thread(target=other)
    with one_blas_thread():
        thread.start()
        entered.wait()
    assert blas() <= {1}
    left.set()
    thread.join()
    assert blas() == before
