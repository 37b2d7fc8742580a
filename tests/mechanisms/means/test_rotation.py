"""The random rotation: orthogonal, spread out, public."""

import numpy as np
import pytest
from scipy.linalg import hadamard

from quorate.exceptions import ParameterError
from quorate.mechanisms.means.rotation import Rotation


class TestOrthogonality:
    @pytest.mark.parametrize("dimension", [1, 2, 3, 17, 64, 100])
    def test_lengths_and_inner_products_survive(self, dimension):
        vectors = np.random.default_rng(0).normal(size=(9, dimension))
        turned = Rotation.random(dimension, random_state=1).apply(vectors)
        assert np.allclose(turned @ turned.T, vectors @ vectors.T, rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("dimension", [1, 5, 128])
    def test_undo_undoes(self, dimension):
        rotation = Rotation.random(dimension, random_state=2)
        vectors = np.random.default_rng(0).normal(size=(300, dimension))
        assert np.allclose(rotation.undo(rotation.apply(vectors)), vectors, atol=1e-12)

    def test_two_factors_make_the_hadamard_matrix(self):
        rotation = Rotation(np.ones(32), 32)
        assert np.allclose(rotation.apply(np.eye(32)) * np.sqrt(32), hadamard(32))

    def test_blocks_do_not_matter(self):
        rotation = Rotation.random(1000, random_state=3)
        vectors = np.random.default_rng(0).normal(size=(400, 1000))
        assert np.allclose(rotation.apply(vectors)[350:], rotation.apply(vectors[350:]))


@pytest.mark.claim("U3: Lemma 2")
class TestSpreading:
    def test_a_single_coordinate_is_spread_over_all(self):
        turned = Rotation.random(256, random_state=4).apply(np.eye(256)[:3] * 16.0)
        assert np.allclose(np.abs(turned), 1.0)


class TestPublicRandomness:
    def test_the_same_seed_gives_the_same_rotation(self):
        first, second = (Rotation.random(9, random_state=5).signs for _ in range(2))
        assert np.array_equal(first, second)

    def test_a_dimension_must_be_positive(self):
        with pytest.raises(ParameterError, match="dimension"):
            Rotation.random(0)
