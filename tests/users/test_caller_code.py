"""Code of the caller: nothing but its result comes out, from any number of threads."""

import threading
import warnings

import numpy as np
import pytest

from quorate.users.caller_code import call_quietly


class TestResults:
    def test_a_result_is_returned(self):
        assert call_quietly(lambda: 7) == 7

    def test_an_exception_is_withheld(self):
        assert call_quietly(lambda: [][31337]) is None

    @pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, BaseException, MemoryError])
    def test_nothing_a_record_sets_off_ends_the_program(self, kind):
        def leave():
            raise kind("31337")

        assert call_quietly(leave) is None

    def test_somebody_who_wants_to_stop_can_and_tells_nothing(self):
        def stop():
            raise KeyboardInterrupt("31337")

        with pytest.raises(KeyboardInterrupt) as caught:
            call_quietly(stop)
        assert caught.value.args == ()
        assert caught.value.__context__ is None


class TestWarnings:
    @pytest.mark.parametrize("rule", ["always", "error"])
    def test_none_is_shown_and_none_becomes_an_error(self, rule):
        def noisy():
            warnings.warn("31337", stacklevel=1)
            return np.nanmean(np.array([])) + np.array([1.0]) / 0.0

        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter(rule)
            assert call_quietly(noisy) is not None
            assert seen == []
            with pytest.warns(UserWarning, match="outside"):
                warnings.warn("outside", stacklevel=1)

    def test_threads_that_leave_in_another_order_restore_the_filters(self):
        filters = list(warnings.filters)
        second_is_in, first_is_out = threading.Event(), threading.Event()
        seen = []

        def first():
            call_quietly(second_is_in.wait)
            first_is_out.set()

        def second():
            def stay():
                second_is_in.set()
                first_is_out.wait()
                warnings.warn("31337", stacklevel=1)
                seen.append("still quiet")

            call_quietly(stay)

        threads = [threading.Thread(target=work) for work in (first, second)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            inside = list(warnings.filters)
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(timeout=20)
            assert list(warnings.filters) == inside
        assert seen == ["still quiet"]
        assert list(warnings.filters) == filters
