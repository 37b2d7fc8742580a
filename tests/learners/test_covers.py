"""Covers of a box: every point is near one, and hopeless ones are refused."""

import numpy as np
import pytest

from quorate.core.bounds.grid import Ball, Box, Interval
from quorate.exceptions import ParameterError
from quorate.learners.covers import ball_cover, box_cover, cover_of, published_radius


@pytest.mark.claim("U7: Corollary 4")
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("radius", [0.1, 0.33, 5.0])
def test_every_point_of_the_box_is_within_the_radius(d, radius):
    rng = np.random.default_rng(0)
    lower, upper = -rng.random(d), rng.random(d) + 0.5
    cover = box_cover(lower, upper, radius=radius)
    points = rng.uniform(lower, upper, (300, d))
    corners = np.array(np.meshgrid(*zip(lower, upper, strict=True))).reshape(d, -1).T
    for point in (*points, *corners):
        assert np.linalg.norm(cover - point, axis=1).min() <= radius * (1 + 1e-12)
    assert np.all((cover >= lower) & (cover <= upper))


def test_a_cover_in_many_dimensions_is_refused_with_an_alternative():
    with pytest.raises(ParameterError, match=r"quorate\.models"):
        box_cover([0.0] * 30, [1.0] * 30, radius=0.1)


@pytest.mark.parametrize(
    ("lower", "upper", "radius"),
    [([0.0], [0.0], 0.1), ([0.0], [np.inf], 0.1), ([0.0], [1.0], 0.0), ([0.0], [1.0, 2.0], 0.1)],
)
def test_boxes_that_are_none_are_refused(lower, upper, radius):
    with pytest.raises(ParameterError):
        box_cover(lower, upper, radius=radius)


def test_the_published_radius_shrinks_with_users_and_records():
    known = {"bound": 1.0, "lipschitz": 2.0, "dimension": 3, "epsilon": 1.0}
    first = published_radius(n_users=100, records=10, **known)
    assert published_radius(n_users=400, records=10, **known) < first
    assert published_radius(n_users=100, records=40, **known) == pytest.approx(first / 2)


@pytest.mark.claim("U7: Corollary 4")
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("radius", [0.2, 0.45, 5.0])
def test_every_point_of_the_ball_is_within_the_radius(d, radius):
    rng = np.random.default_rng(0)
    centre, size = rng.normal(size=d), 0.8
    cover = ball_cover(centre, size, radius=radius)
    points = rng.normal(size=(500, d))
    lengths = size * rng.random((500, 1)) ** (1 / d)
    lengths[:200] = size
    points = centre + lengths * points / np.linalg.norm(points, axis=1, keepdims=True)
    for point in points:
        assert np.linalg.norm(cover - point, axis=1).min() <= radius * (1 + 1e-12)
    # The candidates are parameters themselves, and fewer than those of the box around the ball.
    assert np.all(np.linalg.norm(cover - centre, axis=1) <= size * (1 + 1e-12))
    assert len(cover) <= len(box_cover(centre - size, centre + size, radius=radius))


def test_bounds_become_covers():
    assert np.array_equal(
        cover_of(Box([0.0, 0.0], [1.0, 2.0]), radius=0.3), box_cover([0, 0], [1, 2], radius=0.3)
    )
    assert cover_of(Interval(0.0, 1.0), radius=0.25).ravel().tolist() == [0.25, 0.75]
    ball = Ball(2.0, centre=[1.0, 1.0])
    assert np.array_equal(cover_of(ball, radius=0.5), ball_cover([1.0, 1.0], 2.0, radius=0.5))
    with pytest.raises(ParameterError, match="Expected a Ball"):
        cover_of("ball", radius=0.5)
