"""Limits: each theorem by its name, against brute force or an independent computation."""

import inspect
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError
from quorate.mechanisms.choices.choose import ChooseBest
from quorate.papers.conversion import translation
from quorate.planning import limits

EPSILONS = st.floats(0.05, 3.0)


@pytest.mark.claim("U8: Theorem 9")
class TestFixedUsersFloor:
    """Theorem 9 of Levy et al."""

    def test_theorem_9_of_levy_no_randomised_response_beats_the_floor(self):
        # The best pure test of all +B against all -B keeps each user's sign with chance
        # e^(n eps)/(1 + e^(n eps)) for the crowd as a whole; it reaches the bound.
        for n, epsilon in ((1, 1.0), (3, 0.5), (8, 0.2)):
            reached = 1.0 / (1.0 + math.exp(n * epsilon))
            assert limits.fixed_users_failure(users=n, epsilon=epsilon) == pytest.approx(reached)

    def test_theorem_9_of_levy_the_two_failures_obey_group_privacy(self):
        # The proof: 1 - b1 <= e^(n eps) b2 + n e^(n eps) delta, and the same the other way round.
        n, epsilon, delta = 5, 0.3, 1e-4
        floor = limits.fixed_users_failure(users=n, epsilon=epsilon, delta=delta)
        growth = math.exp(n * epsilon)
        assert 1.0 - floor <= growth * floor + n * growth * delta + 1e-12
        smaller = floor * 0.99
        assert 1.0 - smaller > growth * smaller + n * growth * delta

    @given(epsilon=EPSILONS, beta=st.floats(0.01, 0.45))
    def test_the_floor_is_the_first_number_of_users_that_may_succeed(self, epsilon, beta):
        floor = limits.fixed_users_floor(epsilon=epsilon, beta=beta)
        assert limits.fixed_users_failure(users=floor, epsilon=epsilon) <= beta
        if floor > 1:
            assert limits.fixed_users_failure(users=floor - 1, epsilon=epsilon) > beta

    def test_records_do_not_enter_and_adding_users_is_a_weaker_promise(self):
        replace = limits.fixed_users_floor(epsilon=0.1, beta=0.05)
        add = limits.fixed_users_floor(epsilon=0.1, beta=0.05, relation=Relation.ADD_REMOVE)
        assert add == math.ceil(replace / 2)

    def test_delta_close_to_one_claims_nothing(self):
        assert limits.fixed_users_failure(users=50, epsilon=0.5, delta=0.5) == 0.0
        assert limits.fixed_users_floor(epsilon=0.5, delta=0.99, beta=0.4) == 1


@pytest.mark.claim("U8: Appendix A")
class TestFewUsersInTheMean:
    """Appendix A of Levy et al."""

    def test_appendix_a_of_levy_the_best_coin_reaches_it(self):
        # Two candidates, losses 0 and 1 exchanged: choose by randomised response of the crowd.
        for n, epsilon in ((1, 1.0), (4, 0.3)):
            wrong = 1.0 / (1.0 + math.exp(n * epsilon))
            error = limits.fixed_users_error(largest=1.0, users=n, epsilon=epsilon)
            assert error == pytest.approx(wrong)

    def test_appendix_a_of_levy_bounds_the_squared_error_of_a_mean(self):
        # All users at +b or all at -b, answers +-a by the best coin: the best a is
        # b tanh(n eps / 2), its squared error b^2 (1 - tanh^2), above b^2 q.
        n, epsilon, b = 3, 0.5, 7.0
        best = b * math.sqrt(1.0 - math.tanh(n * epsilon / 2) ** 2)
        tiny = {"dimension": 1, "deviation": 1e-12, "half_width": b}
        floor = limits.mean_floor(users=n, epsilon=epsilon, **tiny)
        assert 0.5 * best < floor <= best


@pytest.mark.claim("U3: Corollary 1", "U3: Corollary 5")
class TestMeans:
    """The lower bounds of Corollaries 1 and 5 of Levy et al."""

    KNOWN = {"half_width": 1e6, "delta": 1e-6, "epsilon": 0.2}  # noqa: RUF012 - never written to

    def test_corollary_5_of_levy_sampling_costs_what_it_costs(self):
        floor = limits.mean_floor(dimension=4, deviation=2.0, users=10_000, **self.KNOWN)
        assert floor == pytest.approx(2.0 * math.sqrt(4 / 10_000), rel=1e-6)

    def test_corollary_1_of_levy_privacy_costs_d_over_n_epsilon(self):
        known = {"dimension": 10**6, "deviation": 0.5, **self.KNOWN}
        floor = limits.mean_floor(users=1000, **known)
        assert floor == pytest.approx(0.5 * 10**6 / (24 * 1000 * 0.2))
        assert limits.mean_floor(users=2000, **known) == pytest.approx(floor / 2)

    @pytest.mark.parametrize(("dimension", "users"), [(1, 200), (50, 3000), (10**5, 10**4)])
    def test_corollary_1_of_levy_is_below_the_gaussian_mechanism(self, dimension, users):
        # Users within a ball of radius tau that holds all of them, found at no cost.
        from quorate.core.account.costs import gdp_mu

        tau = math.sqrt(dimension) + math.sqrt(2 * math.log(users / 1e-3))
        noise = 2 * tau * math.sqrt(dimension) / (users * gdp_mu(0.2, 1e-6))
        reached = math.hypot(noise, math.sqrt(dimension / users))
        floor = limits.mean_floor(dimension=dimension, deviation=1.0, users=users, **self.KNOWN)
        assert 0.001 * reached < floor < reached

    def test_a_delta_that_lets_a_user_out_proves_nothing_about_noise(self):
        known = {"dimension": 10**6, "deviation": 0.5, "half_width": 1e6, "epsilon": 0.2}
        floor = limits.mean_floor(users=1000, delta=0.5, **known)
        assert floor == pytest.approx(0.5 * math.sqrt(10**6 / 1000), rel=1e-6)

    def test_the_box_is_never_left(self):
        known = {"dimension": 100, "deviation": 50.0, "half_width": 1.0}
        assert limits.mean_floor(users=1, epsilon=1e-9, **known) <= 10.0


@pytest.mark.claim("U8: Theorem 6")
class TestConvexLosses:
    """Theorem 6 of Levy et al."""

    KNOWN = {"dimension": 9, "gradient_bound": 2.0, "gradient_spread": 1.0, "radius": 3.0}  # noqa: RUF012 - never written to

    def test_theorem_6_of_levy_two_crowds_cannot_be_told_apart(self):
        # Le Cam, exactly: records +-G with chances (1 +- g) / 2, and the majority decides.
        from scipy.stats import binom

        for n, m in ((1, 1), (5, 5), (31, 7)):
            records = n * m
            tilt = 1.0 / (2.0 * math.sqrt(records))
            wrong = binom.cdf((records - 1) // 2, records, (1 + tilt) / 2)
            if records % 2 == 0:
                wrong += binom.pmf(records // 2, records, (1 + tilt) / 2) / 2
            excess = 2.0 * 2.0 * 3.0 * tilt * wrong  # 2 G R g when wrong
            floor = limits.convex_floor(users=n, records=m, epsilon=1e6, delta=1e-9, **self.KNOWN)
            assert 0.2 * excess < floor <= excess

    def test_theorem_6_of_levy_privacy_costs_d_over_n_epsilon(self):
        wide = self.KNOWN | {"dimension": 10**10}
        known = {"records": 10**9, "epsilon": 0.01, "delta": 1e-6, **wide}
        floor = limits.convex_floor(users=1000, **known)
        spread = 2.0 / (20.0 * 1e5)
        expected = 3.0 * 1e10 * spread / (20_480 * 1000 * math.sqrt(1e9) * 0.01)
        assert floor == pytest.approx(expected)

    def test_few_users_lose_everything(self):
        known = {"records": 10**6, "epsilon": 0.1, **self.KNOWN}
        assert limits.convex_floor(users=1, **known) == pytest.approx(6.0 / (1 + math.exp(0.1)))


@pytest.mark.claim("U8: Theorem 10")
class TestHeterogeneity:
    """Theorem 10 of Levy et al."""

    def test_theorem_10_of_levy_adds_a_loss_for_every_record_that_may_differ(self):
        penalty = limits.heterogeneity_penalty(bound=2.0, users=50, records=4, distance=0.001)
        assert penalty == pytest.approx(2.0 * (50 * 4 + 2) * 0.001)

    def test_theorem_10_of_levy_costs_nothing_for_equal_users(self):
        assert limits.heterogeneity_penalty(bound=1.0, users=9, records=9, distance=0.0) == 0.0


class TestGroupPrivacy:
    """Lemma 34 of Ghazi, Kumar, Manurangsi."""

    @given(epsilon=EPSILONS, size=st.integers(1, 200), delta=st.floats(0.0, 1e-3))
    def test_lemma_34_of_ghazi_the_group_pays_what_was_asked(self, epsilon, size, delta):
        each, small = limits.group_privacy(epsilon=epsilon, delta=delta, size=size)
        assert size * each == pytest.approx(epsilon)
        # The sum of the lemma, term by term: delta times 1 + e^eps + ... + e^((k-1) eps).
        assert small * sum(math.exp(k * each) for k in range(size)) == pytest.approx(delta)


@pytest.mark.claim("G12: Lemma 4")
class TestPacking:
    """Lemma 4 of Ghazi, Kumar, Manurangsi and the first term of Lemma 39 of Ghazi et al."""

    def test_lemma_39_of_ghazi_packing_is_not_above_what_permute_and_flip_needs(self):
        # A crowd that agrees on one of W answers: n votes for it. The mechanism must need at least
        # the bound, and not more than a few times of it.
        for options, epsilon, beta in ((100, 1.0, 0.1), (5000, 0.5, 0.05)):
            bound = limits.packing_users(
                log_alternatives=math.log(options), epsilon=epsilon, beta=beta
            )
            votes = ChooseBest(candidates=options, epsilon=epsilon).error_bound(beta) + 1
            assert bound <= votes <= 4 * bound

    def test_lemma_39_of_ghazi_packing_one_answer_needs_nobody(self):
        assert limits.packing_users(log_alternatives=0.0, epsilon=1.0, beta=0.1) == 0.0

    def test_adding_users_is_compared_with_nobody(self):
        known = {"log_alternatives": 20.0, "epsilon": 0.5, "beta": 0.1}
        add = limits.packing_users(relation=Relation.ADD_REMOVE, **known)
        assert add == pytest.approx((20.0 + math.log(0.9)) / 0.5)
        assert add < limits.packing_users(**known)

    def test_lemma_4_of_ghazi_is_capped_by_delta(self):
        pure = limits.representation_users(dimension=100.0, epsilon=0.5, delta=0.0)
        assert pure == pytest.approx((100.0 - math.log(100.0)) / 0.5)
        approximate = limits.representation_users(dimension=100.0, epsilon=0.5, delta=1e-6)
        assert approximate == pytest.approx(0.01 * math.log(1e6) / 0.5)
        small = limits.representation_users(dimension=4.0, epsilon=0.5)
        assert small == 0.0  # fewer than 100 hypotheses prove nothing

    def test_lemma_4_and_the_representation_from_a_learner_are_two_sides_of_one_bound(self):
        """A learner for n users gives 100 ceil(e^(epsilon n)) hypotheses and no fewer users."""
        for users in (3, 5, 8):
            outputs = 100 * math.ceil(math.exp(users))
            needed = limits.representation_users(dimension=math.log(outputs), epsilon=1.0)
            assert users - 0.2 <= needed <= users + 0.2


@pytest.mark.claim("F9: Theorem 38", "F9: Lemma 39")
class TestFano:
    """Theorem 38 and Lemma 39 of Ghazi et al."""

    def test_theorem_38_of_ghazi_one_record_is_the_item_level_bound(self):
        log_w, kl, epsilon, beta = 200.0, 0.02, 0.5, 0.1
        users = limits.fano_users(
            log_alternatives=log_w, divergence=kl, records=1, epsilon=epsilon, beta=beta
        )
        sampling = (0.9 * log_w - math.log(2)) / kl
        privacy = (log_w + math.log(4)) / (10 * epsilon * math.sqrt(kl / 2))
        assert users == pytest.approx(max(sampling, privacy))

    def test_lemma_39_of_ghazi_falls_with_records_down_to_a_floor(self):
        known = {"log_alternatives": 50.0, "divergence": 0.01, "epsilon": 0.2, "beta": 0.1}
        users = [limits.fano_users(records=m, **known) for m in (1, 10, 100, 10**6)]
        assert users == sorted(users, reverse=True)
        floor = limits.packing_users(log_alternatives=50.0, epsilon=0.2, beta=0.1)
        assert users[-1] == pytest.approx(floor)

    def test_two_points_are_told_apart_by_nobody_with_fewer_users_than_the_bound(self):
        # Normal means +-a: the likelihood ratio test is the best there is, even without privacy.
        from scipy.stats import norm

        a, beta = 0.1, 0.01
        bound = limits.two_point_users(divergence=2 * a**2, records=1, epsilon=1e6, beta=beta)
        assert norm.sf(a * math.sqrt(bound)) >= beta

    def test_two_points_claim_less_when_delta_is_large_or_users_may_only_come_and_go(self):
        known = {"divergence": 0.01, "records": 1, "epsilon": 0.01, "beta": 0.05}
        pure = limits.two_point_users(**known)
        assert limits.two_point_users(delta=1e-3, **known) < pure
        assert limits.two_point_users(relation=Relation.ADD_REMOVE, **known) < pure

    def test_a_certain_difference_has_no_sampling_term(self):
        users = limits.two_point_users(
            divergence=math.inf, distance=1.0, records=1, epsilon=0.5, beta=0.1
        )
        assert users == pytest.approx(math.log(4.5) / 5)

    def test_a_divergence_of_zero_is_refused(self):
        with pytest.raises(ParameterError, match="divergence > 0"):
            limits.two_point_users(divergence=0.0, records=1, epsilon=1.0, beta=0.1)


class TestItemToUser:
    """Theorems 7, 10 and 11 of Ghazi et al."""

    def test_theorem_7_of_ghazi_subsampling_is_exact_for_randomised_response(self):
        # A share of 1/4 of runs sees the record: the worst ratio is 1 - q + q e^eps.
        epsilon, rate = 1.2, 0.25
        amplified, delta = translation.subsampled(epsilon=epsilon, delta=1e-5, rate=rate)
        assert math.exp(amplified) == pytest.approx(1 - rate + rate * math.exp(epsilon))
        assert delta == pytest.approx(rate * 1e-5)

    def test_theorem_10_of_ghazi_beats_group_privacy_for_many_records_only(self):
        known = {"epsilon": 1.0, "delta": 1e-6}
        many, few = 10**5, 10
        assert (
            limits.item_to_user(records=many, **known)[0]
            > limits.group_privacy(size=many, **known)[0]
        )
        assert (
            limits.item_to_user(records=few, **known)[0]
            < limits.group_privacy(size=few, **known)[0]
        )

    def test_theorem_10_of_ghazi_saves_the_square_root_of_the_records(self):
        one = limits.item_to_user(epsilon=1.0, delta=1e-6, records=100)[0]
        four = limits.item_to_user(epsilon=1.0, delta=1e-6, records=400)[0]
        assert 1.9 < one / four < 2.2

    def test_theorem_11_of_ghazi_users_are_records_divided_among_users_and_a_floor(self):
        users = limits.item_to_user_users(item_records=1e4, epsilon=0.5, delta=1e-6, records=50)
        assert users == pytest.approx(math.log(1e6) / 0.5 + 200)


@pytest.mark.parametrize(
    ("function", "numbers"),
    [
        (limits.fixed_users_failure, {"users": 0, "epsilon": 1.0}),
        (limits.fixed_users_floor, {"epsilon": math.nan, "beta": 0.1}),
        (limits.group_privacy, {"epsilon": 1.0, "size": 0}),
        (limits.packing_users, {"log_alternatives": 3.0, "epsilon": -1.0, "beta": 0.1}),
        (translation.subsampled, {"epsilon": 1.0, "rate": 1.5}),
        (limits.item_to_user, {"epsilon": 1.0, "delta": 0.0, "records": 5}),
        (
            limits.heterogeneity_penalty,
            {"bound": 1.0, "users": 5, "records": 5, "distance": 2.0},
        ),
    ],
)
def test_numbers_outside_their_range_are_refused(function, numbers):
    with pytest.raises(ParameterError, match="Expected"):
        function(**numbers)


# Questions that between them ask every theorem.
QUESTIONS = [
    {"task": "mean", "records": 4, "delta": 1e-6, "error": 0.5},
    {"task": "mean", "dimension": 16, "error": 0.5},
    {"task": "median", "error": 0.1},
    {"task": "concept", "size": 2**20, "vc": 20, "records": 4, "error": 0.05},
    {"task": "concept", "records": 1, "error": 0.05},
    {"task": "threshold", "records": 4, "delta": 1e-6, "error": 0.05},
    {"task": "select", "size": 1000, "records": 4, "error": 0.1},
    {"task": "linear", "records": 4, "delta": 1e-6, "error": 0.05},
    {"task": "shares", "size": 50, "error": 0.05},
    {"task": "normal", "dimension": 20, "error": 0.5},
    {"task": "agreement", "records": 64, "error": 0.1},
]


def test_every_limit_is_used_by_a_plan():
    from quorate.learners import generalization
    from quorate.planning import first_order, learner_bounds, packings, plan

    called = set()

    def profile(frame, event, _):
        if event == "call":
            called.add(frame.f_code)

    sys.setprofile(profile)
    try:
        for question in QUESTIONS:
            plan(epsilon=1.0, **question)
    finally:
        sys.setprofile(None)
    modules = (limits, packings, first_order, learner_bounds, generalization)
    named = {
        name: getattr(module, name)
        for module in modules
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
    }
    unused = {name for name, function in named.items() if function.__code__ not in called}
    assert unused == set()


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_no_plan_needs_fewer_users_than_are_proved_to_be_needed(question):
    from quorate.planning import plan

    answer = plan(epsilon=1.0, **question)
    assert answer.users_needed is not None
    for bound in (answer.lower, *answer.necessary):
        if bound.holds and bound.users is not None:
            assert bound.users <= answer.users_needed, bound
    assert answer.sufficient or question.get("delta", 0) == 0 or question.get("records", 1) == 1
    assert {"sufficient", "necessary"} <= answer.to_dict().keys()


@pytest.mark.parametrize("users", [1, 2, 10, 1000])
@pytest.mark.parametrize("dimension", [5, 5000, 10**6, 10**10])
def test_no_convex_loss_costs_more_than_answering_zero(users, dimension):
    """It was 2.44 R G: the drift of Proposition 5 may not leave the ball of gradients."""
    floor = limits.convex_floor(
        dimension=dimension,
        gradient_bound=3.0,
        gradient_spread=10.0,
        radius=2.0,
        users=users,
        records=1,
        epsilon=0.01,
    )
    assert floor <= 2.0 * 3.0 / 2.0


def test_convex_floors_that_keep_the_condition_are_as_printed():
    spread, d, n, m, epsilon = 0.01, 20, 1000, 10, 0.5
    known = {"gradient_bound": 1.0, "gradient_spread": spread, "radius": 1.0}
    drift = d * spread / (512 * n * epsilon * m**0.5)
    assert drift + 10 * spread * d**0.5 <= 1.0
    floor = limits.convex_floor(dimension=d, users=n, records=m, epsilon=epsilon, **known)
    assert floor >= drift / 40


def test_a_drift_beyond_the_condition_of_proposition_5_counts_up_to_it():
    """B + 10 sigma sqrt(d) <= G: sigma up to G / (20 sqrt(d)), B up to G / 2; it was .29."""
    d, n, epsilon, G, R = 10**12, 1000, 0.05, 3.0, 2.0
    sigma = G / (20 * d**0.5)
    assert d * sigma / (512 * n * epsilon) > G / 2
    floor = limits.convex_floor(
        dimension=d,
        gradient_bound=G,
        gradient_spread=10.0,
        radius=R,
        users=n,
        records=1,
        epsilon=epsilon,
    )
    assert floor == pytest.approx(R * (G / 2) / 40)
