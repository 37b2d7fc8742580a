"""What is read off the released sums of those inside and outside a ball."""

import numpy as np
import pytest

from quorate.distributions.categories.trimmed_mean import NOTICED, TrimmedMean

CENTRE = np.array([0.5, 0.3, 0.2])


def released(*, outside=(0.0, 0.0, 0.0), absent=0.0, offsets=(1.0, -0.5, -0.5), pure=True):
    """Return what 100 people gave, with noise of two people outside and one tenth of a radius."""
    return TrimmedMean(
        centre=CENTRE,
        radius=0.2,
        pure=pure,
        users=100,
        offsets=np.array(offsets),
        outside=np.array(outside),
        votes=(float(sum(outside)), absent),
        noise=0.4,
        whole=0.2,
    )


def test_nobody_outside_leaves_the_mean_of_those_inside():
    found = released()
    assert not found.noticed
    assert found.mean() == pytest.approx([0.51, 0.295, 0.195])
    assert found.mean() == pytest.approx(found.inside())


def test_many_outside_are_seen_and_counted_in():
    found = released(outside=(0.0, 0.0, 40.0))
    assert found.noticed
    # 40 people hold the last category only.
    assert found.mean() == pytest.approx(CENTRE + np.array([-19.0, -12.5, 31.5]) / 100)


def test_people_outside_are_seen_by_their_number_wherever_they_pull():
    # Where those outside are as those inside, nothing pulls; 5 and three deviations of 4.9 are few.
    for number, seen in ((18.0, False), (21.0, True)):
        assert released(outside=tuple(number * CENTRE)).noticed is seen
        assert not released(outside=tuple(number * CENTRE), pure=False).noticed


def test_absence_counts_from_what_noise_does_not_explain():
    few, many = (NOTICED * 2.0 * factor for factor in (0.9, 1.1))
    assert released(absent=few).present == 100
    assert released(absent=many).present == pytest.approx(100 - many)


@pytest.mark.parametrize("pure", [True, False])
def test_what_was_left_out_is_bounded_from_what_was_seen(pure):
    nobody, some = (released(outside=(0, 0, seen), pure=pure).left_out(0.05) for seen in (0.0, 5.0))
    assert some == pytest.approx(nobody + 0.05)
