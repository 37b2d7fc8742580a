"""The exact audit knows true epsilons, and sees the five classical mistakes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.auditing import (
    Law,
    SmallWorld,
    audit_exactly,
    discrete_gaussian_mass,
    discrete_laplace_mass,
    independent_laws,
)
from quorate.core.guarantees import Guarantee, Relation
from quorate.exceptions import ParameterError

REPLACE, ADD_REMOVE = Relation.REPLACE, Relation.ADD_REMOVE
ONE = Guarantee(epsilon=1.0)


def clip(record, bound=2):
    return max(-bound, min(bound, record))


def laplace_sum(records, *, scale, transform=clip, window=(-12, 12)):
    return discrete_laplace_mass(sum(map(transform, records)), scale=scale, window=window)


class TestWorlds:
    @given(n_records=st.integers(2, 4), n_users=st.integers(1, 3))
    def test_neighbours_are_the_pairs_that_differ_in_one_user(self, n_records, n_users):
        world = SmallWorld(records=range(n_records), n_users=n_users)
        everybody = world.data_sets(REPLACE)
        brute_force = {
            frozenset((a, b))
            for a in everybody
            for b in everybody
            if sum(x != y for x, y in zip(a, b, strict=True)) == 1
        }
        listed = list(world.neighbours(REPLACE))
        assert len(listed) == len(brute_force)
        assert {frozenset(pair) for pair in listed} == brute_force

    def test_under_add_remove_the_smaller_sets_are_neighbours(self):
        world = SmallWorld(records=("a", "b"), n_users=2)
        pairs = set(world.neighbours(ADD_REMOVE))
        assert (("a", "b"), ("a",)) in pairs
        assert (("a", "b"), ("b",)) in pairs
        assert (("a",), ()) in pairs
        assert all(len(larger) == len(smaller) + 1 for larger, smaller in pairs)

    @given(n_records=st.integers(2, 4), n_users=st.integers(1, 4))
    def test_without_order_every_pair_stays_once(self, n_records, n_users):
        world = SmallWorld(records=range(n_records), n_users=n_users, ordered=False)
        ordered = SmallWorld(records=range(n_records), n_users=n_users)
        for relation in Relation:
            listed = [frozenset(pair) for pair in world.neighbours(relation)]
            assert len(set(listed)) == len(listed)
            assert set(listed) == {
                frozenset(tuple(sorted(held)) for held in pair)
                for pair in ordered.neighbours(relation)
            }
            assert set(world.data_sets(relation)) == {
                tuple(sorted(held)) for held in ordered.data_sets(relation)
            }

    @pytest.mark.parametrize("records", [(), (1,), (1, 1)])
    def test_a_world_without_choice_is_refused(self, records):
        with pytest.raises(ParameterError, match="at least two records"):
            SmallWorld(records=records, n_users=1)

    def test_a_world_too_large_to_enumerate_is_refused(self):
        with pytest.raises(ParameterError, match="at most 20000 data sets"):
            SmallWorld(records=range(10), n_users=10)


class TestPureFigures:
    def test_randomized_response_in_fractions_is_exactly_tight(self):
        def law(answers):
            return {answers[0]: Fraction(3, 4), 1 - answers[0]: Fraction(1, 4)}

        audit = audit_exactly(
            law, SmallWorld(records=(0, 1), n_users=1), Guarantee(epsilon=math.log(3))
        )
        assert audit.holds
        assert audit.tightness == pytest.approx(1.0, abs=1e-15)
        assert audit.slack == 0.0
        assert set(audit.worst_pair) == {(0,), (1,)}
        # A claim that is too small by a millionth is violated.
        small = Guarantee(epsilon=math.log(3) * (1 - 1e-6))
        assert not audit_exactly(law, SmallWorld(records=(0, 1), n_users=1), small).holds

    @pytest.mark.parametrize(("relation", "sensitivity"), [(REPLACE, 4), (ADD_REMOVE, 2)])
    def test_the_laplace_sum_is_tight_under_both_relations(self, relation, sensitivity):
        audit = audit_exactly(
            lambda d: laplace_sum(d, scale=sensitivity / 0.7),
            SmallWorld(records=(-9, -1, 0, 2, 50), n_users=3),
            Guarantee(epsilon=0.7, relation=relation),
        )
        assert audit.holds
        assert audit.tightness == pytest.approx(1.0, abs=1e-12)
        assert audit.delta < 1e-12

    def test_an_output_only_one_neighbour_can_produce_is_an_infinite_loss(self):
        audit = audit_exactly(
            lambda d: {d[0]: 1}, SmallWorld(records=(0, 1), n_users=1), Guarantee(epsilon=50.0)
        )
        assert audit.epsilon == math.inf
        assert audit.delta == 1.0
        assert not audit.holds

    def test_a_constant_costs_nothing_and_is_seen_as_waste(self):
        audit = audit_exactly(lambda d: {"same": 1}, SmallWorld(records=(0, 1), n_users=2), ONE)
        assert audit.epsilon == 0.0
        assert audit.tightness == 0.0
        assert audit.holds

    def test_tiny_fractions_do_not_underflow(self):
        tiny = Fraction(1, 10**500)
        audit = audit_exactly(
            lambda d: {"rare": tiny * (2 if d[0] else 1), "usual": 1 - tiny * (2 if d[0] else 1)},
            SmallWorld(records=(0, 1), n_users=1),
            ONE,
        )
        assert audit.epsilon == pytest.approx(math.log(2), rel=1e-12)

    def test_arrays_are_read_as_laws_over_their_indices(self):
        audit = audit_exactly(
            lambda d: np.array([0.8, 0.2]) if d[0] else np.array([0.4, 0.6]),
            SmallWorld(records=(0, 1), n_users=1),
            Guarantee(epsilon=1.1),
        )
        assert audit.epsilon == pytest.approx(math.log(3))


def gaussian_delta(mu, epsilon):
    """Delta of the continuous Gaussian mechanism (Balle and Wang 2018, Theorem 8)."""

    def phi(x):
        return 0.5 * math.erfc(-x / math.sqrt(2))

    return phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


class TestApproximateFigures:
    def test_a_fine_discrete_gaussian_costs_what_the_continuous_one_costs(self):
        sigma, sensitivity = 60.0, 30
        claim = Guarantee(epsilon=1.0, delta=gaussian_delta(sensitivity / sigma, 1.0))
        audit = audit_exactly(
            lambda d: discrete_gaussian_mass(d[0], sigma=sigma, window=(-600, 600)),
            SmallWorld(records=(0, sensitivity), n_users=1),
            claim,
        )
        assert audit.delta == pytest.approx(claim.delta, rel=2e-3)
        assert audit.epsilon == pytest.approx(1.0, rel=2e-3)

    def test_epsilon_at_delta_and_delta_at_epsilon_agree(self):
        world = SmallWorld(records=(0, 1, 3), n_users=1)

        def law(d):
            return discrete_gaussian_mass(d[0], sigma=2.0, window=(-40, 40))

        at_epsilon = audit_exactly(law, world, Guarantee(epsilon=0.9, delta=0.5))
        at_delta = audit_exactly(law, world, Guarantee(epsilon=9.0, delta=at_epsilon.delta))
        assert at_delta.epsilon == pytest.approx(0.9, rel=1e-9)
        assert set(at_delta.worst_pair) == {(0,), (3,)}

    @settings(max_examples=30)
    @given(
        masses=st.lists(
            st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=2, max_size=2
        ),
        epsilon=st.floats(0, 3),
    )
    def test_the_hockey_stick_is_the_best_event(self, masses, epsilon):
        rows = [[Fraction(m + (i == 0), sum(row) + 1) for i, m in enumerate(row)] for row in masses]
        audit = audit_exactly(
            lambda d: rows[d[0]],
            SmallWorld(records=(0, 1), n_users=1),
            Guarantee(epsilon=epsilon, delta=0.1),
        )
        events = [[i for i in range(4) if mask >> i & 1] for mask in range(16)]
        brute_force = max(
            float(sum(p[i] for i in event)) - math.exp(epsilon) * float(sum(q[i] for i in event))
            for p, q in (rows, rows[::-1])
            for event in events
        )
        assert audit.delta == pytest.approx(max(0.0, brute_force), abs=1e-12)

    def test_the_tail_a_window_cuts_off_is_reported_as_slack(self):
        audit = audit_exactly(
            lambda d: discrete_gaussian_mass(d[0], sigma=2.0, window=(-4, 5)),
            SmallWorld(records=(0, 1), n_users=1),
            Guarantee(epsilon=1.0, delta=1e-3),
        )
        assert 0.005 < audit.slack < 0.05
        assert "at least" in str(audit)
        assert "a lower bound" in str(audit)

    def test_lost_mass_never_makes_a_mechanism_look_worse_than_it_is(self):
        def exact(d):
            return {0: 0.5, 1: 0.3 + 0.1 * d[0], 2: 0.2 - 0.1 * d[0]}

        def incomplete(d):
            return Law({0: 0.5, 1: 0.3 + 0.1 * d[0]}, lost=0.2 - 0.1 * d[0])

        world = SmallWorld(records=(0, 1), n_users=1)
        assert (
            audit_exactly(incomplete, world, ONE).epsilon < audit_exactly(exact, world, ONE).epsilon
        )
        assert audit_exactly(incomplete, world, ONE).slack == pytest.approx(0.2)


class TestBrokenTwins:
    """Each mistake is made on purpose; the audit must see it."""

    world = SmallWorld(records=(-9, -2, 0, 2, 9), n_users=3)

    def test_the_honest_mechanism_passes(self):
        audit = audit_exactly(lambda d: laplace_sum(d, scale=4.0), self.world, ONE)
        assert audit.holds
        assert "The claim holds" in str(audit)

    def test_noise_halved(self):
        audit = audit_exactly(lambda d: laplace_sum(d, scale=2.0), self.world, ONE)
        assert not audit.holds
        assert audit.tightness == pytest.approx(2.0)
        assert "The claim is violated" in str(audit)

    def test_clip_removed(self):
        audit = audit_exactly(
            lambda d: laplace_sum(d, scale=4.0, transform=int, window=(-40, 40)), self.world, ONE
        )
        assert not audit.holds
        assert set(audit.worst_pair[0]) ^ set(audit.worst_pair[1]) <= {-9, 9}

    def test_bound_taken_from_the_data(self):
        def law(records):
            spread = max(records) - min(records)
            return discrete_laplace_mass(sum(records), scale=max(spread, 1), window=(-40, 40))

        assert not audit_exactly(law, self.world, ONE).holds

    def test_off_by_one_sensitivity(self):
        audit = audit_exactly(lambda d: laplace_sum(d, scale=3.0), self.world, ONE)
        assert not audit.holds
        assert audit.tightness == pytest.approx(4 / 3)

    def test_wrong_relation(self):
        scale_for_add_remove = 2.0
        law = lambda d: laplace_sum(d, scale=scale_for_add_remove)  # noqa: E731
        claim = Guarantee(epsilon=1.0, relation=ADD_REMOVE)
        assert audit_exactly(law, self.world, claim).holds
        assert not audit_exactly(law, self.world, Guarantee(epsilon=1.0, relation=REPLACE)).holds

    def test_a_gaussian_with_half_the_noise(self):
        claim = Guarantee(epsilon=1.0, delta=gaussian_delta(0.25, 1.0))

        def law(d, sigma):
            return discrete_gaussian_mass(d[0], sigma=sigma, window=(-200, 200))

        world = SmallWorld(records=(0, 5), n_users=1)
        assert audit_exactly(lambda d: law(d, 20.5), world, claim).holds
        assert not audit_exactly(lambda d: law(d, 10.0), world, claim).holds


class TestNotThorough:
    world = SmallWorld(records=(-9, -2, 0, 2, 9), n_users=3)

    def audit(self, law, claim=ONE):
        asked = []
        found = audit_exactly(
            lambda d: asked.append(d) or law(d), self.world, claim, thorough=False
        )
        assert len(asked) == len(set(asked)) == found.n_data_sets
        return found

    def test_it_ends_at_the_first_pair_that_exceeds_the_claim(self):
        audit = self.audit(lambda d: laplace_sum(d, scale=3.0))
        assert not audit.holds
        assert audit.n_data_sets < 10
        first, second = (laplace_sum(d, scale=3.0) for d in audit.worst_pair)
        ratios = [abs(math.log(first[z] / second[z])) for z in first]
        assert max(ratios) == pytest.approx(audit.epsilon)

    def test_with_a_delta_too(self):
        def law(d, sigma=20.0):
            return discrete_gaussian_mass(clip(d[0]), sigma=sigma, window=(-200, 200))

        claim = Guarantee(epsilon=1.0, delta=gaussian_delta(4 / 20.5, 1.0))
        assert self.audit(lambda d: law(d, 20.5), claim).n_data_sets == 125
        caught = self.audit(lambda d: law(d, 10.0), claim)
        assert not caught.holds
        assert caught.n_data_sets < 10

    def test_nobody_exceeds_it(self):
        law = lambda d: laplace_sum(d, scale=4.0)  # noqa: E731
        assert self.audit(law) == audit_exactly(law, self.world, ONE)


class TestScale:
    def test_hundreds_of_data_sets_with_a_thousand_outputs(self):
        def law(records):
            x = sum(clip(r) for r in records)
            y = sum(abs(clip(r)) for r in records)
            return independent_laws(
                discrete_laplace_mass(x, scale=6.0, window=(-15, 15)),
                discrete_laplace_mass(y, scale=6.0, window=(-15, 15)),
            )

        audit = audit_exactly(law, SmallWorld(records=(-9, 0, 1, 2), n_users=4), ONE)
        assert audit.n_data_sets == 256
        assert audit.n_pairs == 256 * 4 * 3 // 2
        assert audit.holds
        assert 0.6 < audit.tightness <= 1.0


class TestLostRuns:
    LOST = 1e-9
    LAWS = ((0.9, 0.1 - LOST), (0.1 - LOST, 0.9))

    def law(self, answers):
        heads, tails = self.LAWS[answers[0]]
        return Law({"heads": heads, "tails": tails}, lost=self.LOST)

    def test_they_excuse_no_more_than_their_own_mass(self):
        """A billionth that belongs to no output hides a billionth, and no ratio of nine."""
        world = SmallWorld(records=(0, 1), n_users=1)
        found = audit_exactly(self.law, world, ONE)
        assert not found.holds
        assert found.epsilon == pytest.approx(math.log(9), abs=1e-6)
        assert found.slack == pytest.approx(self.LOST)
        assert not audit_exactly(self.law, world, Guarantee(epsilon=1.0, delta=0.1)).holds
