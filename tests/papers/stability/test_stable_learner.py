"""One learner in three models of trust: what it finds, what it promises, what would break it."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import nbinom

from quorate.auditing import SmallWorld, audit_exactly, enumerate_runs
from quorate.core.guarantees import Guarantee, Relation, Trust
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.data.engines.memory import MemoryCrowd
from quorate.exceptions import ParameterError, QuorateError
from quorate.learners.concepts import Classifiers, Constant, Parities, Thresholds
from quorate.learners.concepts.tables import FiniteTable
from quorate.ledger.ledger import Ledger
from quorate.local.randomizers.bucket_counts import BucketCounts, noise_table
from quorate.papers.stability import (
    AmplifiedRule,
    DecisionListRule,
    ListLearner,
    ListRule,
    SoftmaxRule,
    StableLearner,
    StableRule,
    WholeClass,
)
from quorate.papers.stability.representations import HashedPoints
from quorate.papers.stability.shared_seed import SharedSeed
from quorate.papers.stability.stable_learner import choose_selection, decide_quietly
from sealing import release_by_hand

REPLACE, ADD_REMOVE = Relation.REPLACE, Relation.ADD_REMOVE


def cut_offs(users, records, *, points=500, cut=200, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, points, size=users * records)
    y = (x >= cut) ^ (rng.random(len(x)) < noise)
    return x[:, None].astype(float), y.astype(int), np.repeat(np.arange(users), records)


def fitted(concepts, data, **parameters):
    X, y, users = data
    with use_noise(SeededNoise(parameters.pop("noise_seed", 0))):
        return StableLearner(concepts, random_state=1, **parameters).fit(X, y, users=users)


@pytest.mark.claim("G5: Algorithm 2", "G7: Algorithm 4")
class TestThreeModels:
    @pytest.mark.parametrize(
        ("trust", "users", "delta"),
        [("central", 50, 0.0), ("central", 50, 1e-6), ("shuffle", 150, 1e-6), ("local", 600, 0.0)],
    )
    def test_the_crowds_rule_is_found(self, trust, users, delta):
        data = cut_offs(users, 200)
        learner = fitted(Thresholds(0, 499), data, trust=trust, delta=delta)
        assert abs(learner.index_ - 200) <= 25
        assert np.mean(learner.predict(data[0]) == (data[0][:, 0] >= 200)) > 0.95
        assert learner.guarantee_.trust is Trust[trust.upper()]
        spent = 0.0 if learner.algorithm_.name == "pure_choice" else delta
        assert (learner.guarantee_.epsilon, learner.guarantee_.delta) == (1.0, spent)

    def test_huge_classes(self):
        rng = np.random.default_rng(2)
        x = rng.integers(0, 2**40, size=120 * 300)
        data = (x[:, None].astype(float), x >= 2**39, np.repeat(np.arange(120), 300))
        for delta in (0.0, 1e-6):
            learner = fitted(Thresholds(0, 2**40 - 1), data, delta=delta)
            assert abs(learner.index_ / 2**40 - 0.5) < 0.03

    def test_representations_and_other_rules(self):
        rng = np.random.default_rng(3)
        x = rng.integers(0, 2**32, size=60 * 40)
        x[rng.random(len(x)) < 0.5] = 123_456
        data = (x[:, None].astype(float), x == 123_456, np.repeat(np.arange(60), 40))
        learner = fitted(HashedPoints(2**32), data)
        assert learner.predict([[123_456.0]])[0] == 1
        X = rng.integers(0, 2, size=(60 * 400, 4)).astype(float)
        data = (X, np.where(X[:, 1] > 0, 1, X[:, 3]).astype(int), np.repeat(np.arange(60), 400))
        learner = fitted(DecisionListRule(4, length=3), data)
        assert np.mean(learner.predict(X) == data[1]) > 0.99

    def test_parity_with_few_local_users(self):
        """O(d / epsilon^2) users: sixteen features, four hundred users, epsilon 2."""
        rng = np.random.default_rng(4)
        X = rng.integers(0, 2, size=(400 * 40, 10)).astype(float)
        y = X[:, [1, 4, 7]].sum(axis=1) % 2
        data = (X, y.astype(int), np.repeat(np.arange(400), 40))
        learner = fitted(Parities(10), data, trust="local", epsilon=2.0)
        assert np.mean(learner.predict(X) == y) == 1.0

    def test_a_crowd_in_parts_gives_what_its_users_give_together(self):
        X, y, users = cut_offs(40, 60)
        whole = UserData.from_arrays(X, y, users=users)
        parts = MemoryCrowd(whole, n_parts=50)
        cuts = Thresholds(0, 499)
        for seeds, delta in ((16, 0.0), (1, 1e-3)):
            found = []
            for crowd in (whole, parts):
                with use_noise(SeededNoise(5)):
                    learner = StableLearner(cuts, delta=delta, seeds=seeds, random_state=1)
                    found.append(learner.fit(crowd).index_)
            assert found[0] == found[1]

    def test_tables_of_more_than_64_points_need_delta_or_no_shuffler(self):
        rule = ListRule(ListLearner(FiniteTable(np.eye(65, dtype=int))))
        assert rule.size == 2**65
        with pytest.raises(ParameterError, match=r"2\^63"):
            StableLearner(rule, trust="shuffle", delta=0.1).fit([[1.0]], [1], users=[0])
        assert 0 <= StableLearner(rule, trust="local").fit([[1.0]], [1], users=[0]).index_ < 2**65

    @pytest.mark.claim("G7: Lemma 13")
    def test_the_local_scheme_works_for_keys_of_256_bits(self):
        """A rule whose key is 256 bits: 8,000 users without anybody they trust."""

        class Long(StableRule):
            size, n_features = 2**256, 1
            keeps_users_apart = True

            def decide(self, users, seed):
                first = users.X[users.offsets[:-1], 0]
                popular = 2**255 + 2**130 + 77
                keys = [popular if x < 8 else 3**150 + user for user, x in enumerate(first)]
                return np.array(keys, dtype=object)

            def concept(self, key, seed):
                return Constant(key % 2)

        x = np.arange(8000) % 10
        data = UserData.from_arrays(x[:, None].astype(float), x % 2, users=np.arange(8000))
        with use_noise(SeededNoise(0)):
            learner = StableLearner(Long(), "local", agreement=True, random_state=1).fit(data)
        assert learner.index_ == 2**255 + 2**130 + 77
        assert learner.guarantee_.trust is Trust.LOCAL
        assert (learner.guarantee_.epsilon, learner.guarantee_.delta) == (1.0, 0.0)
        assert learner.agreement_ == pytest.approx(0.8, abs=0.2)

    def test_no_key_is_popular_enough(self):
        data = cut_offs(5, 20)
        learner = fitted(Thresholds(0, 2**50), data, delta=1e-6)
        assert learner.index_ is None
        assert learner.concept_ == Constant(0)
        assert "truncated noise" in learner.algorithm_.reason


@pytest.mark.claim("G11: Theorem 35", "G11: Algorithm 7", "G11: Algorithm 8")
class TestBuckets:
    """The shuffle learner of Theorem 35: messages for every key."""

    def test_the_crowds_rule_is_found_with_a_proved_error(self):
        data = cut_offs(200, 200)
        shuffled = {"trust": "shuffle", "delta": 1e-6, "agreement": True}
        learner = fitted(Thresholds(0, 499), data, reports="buckets", **shuffled)
        assert abs(learner.index_ - 200) <= 25
        assert learner.algorithm_.name == "bucket_counts"
        assert (learner.guarantee_.epsilon, learner.guarantee_.delta) == (1.0, 1e-6)
        assert learner.guarantee_.trust is Trust.SHUFFLE
        keys = learner._rule().decide(UserData.from_arrays(*data[:2], users=data[2]), learner.seed_)
        named = np.bincount(keys[keys >= 0], minlength=501)
        assert named[learner.index_] >= named.max() - learner.error_.bound
        assert learner.error_.bound < 60
        assert learner.agreement_ == pytest.approx(named[learner.index_] / 200, abs=0.2)
        assert not np.isfinite(fitted(Thresholds(0, 499), data, **shuffled).error_.bound)

    def test_published_constants_want_thousands_of_users(self):
        data = cut_offs(3000, 4, points=4, cut=2, noise=0.0)
        learner = fitted(Thresholds(0, 3), data, trust="shuffle", delta=1e-6, reports="published")
        assert learner.algorithm_.name == "published_counts"
        noise = nbinom(math.ceil(1000 * (1 + math.log(1 / (0.05 * 5e-7)))), 1 - math.exp(-0.1))
        assert learner.error_.bound == pytest.approx(noise.isf(0.05), abs=2)

    def test_every_pair_of_small_crowds_keeps_the_promise_through_fit(self):
        """Two users who hold one of two records: the exact law of what fit counts, and no slack."""
        assert 0.095 < worst_of_fit(epsilon=1.0, delta=0.1) <= 0.1

    def test_half_the_noise_is_caught(self, monkeypatch):
        def halved(counts):
            return noise_table(counts.noise.r / (2 * counts.honest_users), counts.noise.p)

        monkeypatch.setattr(BucketCounts, "table", property(halved))
        assert worst_of_fit(epsilon=1.0, delta=0.1) > 0.1

    @pytest.mark.parametrize(
        ("parameters", "match"),
        [
            ({"trust": "central"}, "trust='shuffle'"),
            ({"trust": "local"}, "trust='shuffle'"),
            ({"relation": ADD_REMOVE, "delta": 1e-6}, "REPLACE"),
            ({"delta": 0.0}, "delta > 0"),
            ({"concepts": Thresholds(0, 2**14), "delta": 1e-6}, r"2\^14"),
            ({"delta": 1e-18}, "larger delta"),
            ({"delta": 1e-6, "honest": 0.1}, "honest"),
            ({"reports": "bins"}, "reports"),
        ],
    )
    def test_what_it_cannot_do_is_refused_for_free(self, parameters, match, tmp_path):
        ledger = Ledger(tmp_path / "budget.sqlite")
        ledger.set_budget("visits", epsilon=3.0, delta=0.5)
        asked = {"concepts": Thresholds(0, 9), "trust": "shuffle", "reports": "buckets"}
        learner = StableLearner(**(asked | parameters), ledger=ledger, data_name="visits")
        with pytest.raises(QuorateError, match=match):
            learner.fit([[1.0], [2.0]], [0, 1], users=[0, 1])
        assert ledger.remaining("visits").epsilon == 3.0


def worst_of_fit(*, epsilon, delta):
    """Return the largest hockey stick over neighbours of two users, of the messages of a fit.

    The keys are what the learner reports for; their messages' law is the convolution of the tables
    that the learner's randomizer draws from.
    """
    sent = {}

    def messages_of(held):
        x = np.array(held, dtype=float)
        data = UserData.from_arrays(x[:, None], (x == 1).astype(int), users=np.arange(len(x)))
        learner = StableLearner(
            Thresholds(0, 1),
            "shuffle",
            reports="buckets",
            epsilon=epsilon,
            delta=delta,
            random_state=3,
            sharpness=2.0,
        )
        counts = {}
        real = BucketCounts.messages

        def listen(self, values, *, account=None):
            counts["made"], counts["values"] = self, np.array(values)
            return real(self, values, account=account)

        with pytest.MonkeyPatch.context() as patch, use_noise(SeededNoise(0)):
            patch.setattr(BucketCounts, "messages", listen)
            learner.fit(data)
        return counts["made"], counts["values"]

    laws = {}
    for held in product((0.0, 1.0), repeat=2):
        made, values = messages_of(held)
        edges = [0, *(int(entry) for entry in made.table[:-1]), 2**64]
        one = np.diff(np.array(edges, dtype=object)).astype(float) / 2.0**64
        noise = np.convolve(one, one)
        rows = []
        for bucket in range(made.buckets):
            row = np.zeros(len(noise) + 2)
            away = 2 - int(np.sum(values == bucket))
            row[away : away + len(noise)] = noise
            rows.append(row)
        sent[held] = tuple(values.tolist())
        laws[held] = rows
    assert len(set(sent.values())) > 1
    worst = 0.0
    for a, b in product(laws, repeat=2):
        if sum(x != y for x, y in zip(a, b, strict=True)) == 1:
            moved = [
                i
                for i, pair in enumerate(zip(laws[a], laws[b], strict=True))
                if not np.array_equal(*pair)
            ]
            first = second = np.ones(1)
            for i in moved:
                first = np.multiply.outer(first, laws[a][i]).ravel()
                second = np.multiply.outer(second, laws[b][i]).ravel()
            worst = max(worst, float(np.maximum(first - math.exp(epsilon) * second, 0).sum()))
    return worst


class TestAgreement:
    def test_it_is_released_only_if_asked_for(self):
        data = cut_offs(80, 200)
        assert fitted(Thresholds(0, 499), data).agreement_ is None

    @pytest.mark.parametrize(
        ("trust", "users", "delta"), [("central", 100, 0.0), ("local", 1500, 0.0)]
    )
    def test_it_is_about_the_share_of_users_who_agree(self, trust, users, delta):
        data = cut_offs(users, 200)
        learner = fitted(
            Thresholds(0, 499), data, trust=trust, delta=delta, agreement=True, epsilon=2.0
        )
        keys = learner._rule().decide(UserData.from_arrays(*data[:2], users=data[2]), learner.seed_)
        assert learner.agreement_ == pytest.approx(np.mean(keys == learner.index_), abs=0.2)

    def test_in_the_central_model_it_is_paid_for(self):
        learner = fitted(Thresholds(0, 499), cut_offs(80, 200), agreement=True)
        (event,) = learner.guarantee_.events
        assert sorted(round(e.epsilon, 3) for e in event.events) == [0.1, 0.9]


def tiny(held, relation, **parameters):
    """Fit users who each hold one record of {0, 1, 2}, labelled by whether it is 2."""
    x = np.array([record for record in held if record != "nobody"], dtype=float)
    data = UserData.from_arrays(x[:, None], (x == 2).astype(int), users=np.arange(len(x)))
    learner = StableLearner(
        Thresholds(0, 2), relation=relation, random_state=3, sharpness=2.0, **parameters
    )
    return learner.fit(data)


class TestPrivacy:
    @pytest.mark.claim("G8: Theorem 30")
    @pytest.mark.parametrize("relation", list(Relation))
    @pytest.mark.parametrize("seeds", [1, 3])
    def test_an_exact_audit_of_the_pure_choice(self, relation, seeds):
        world = SmallWorld(records=(0, 1, 2), n_users=3)
        claim = Guarantee(epsilon=2.0, relation=relation)

        def law(held):
            return enumerate_runs(
                lambda _: released(tiny(held, relation, epsilon=2.0, seeds=seeds))
            )

        assert audit_exactly(law, world, claim).holds

    @pytest.mark.claim("G5: Theorem 25")
    def test_an_exact_audit_of_truncated_noise(self):
        world = SmallWorld(records=(0, 2), n_users=3)
        claim = Guarantee(epsilon=1.0, delta=0.2, relation=ADD_REMOVE)

        def law(held):
            fit = lambda: fit_stable(held)  # noqa: E731
            return enumerate_runs(lambda _: released(fit()))

        def fit_stable(held):
            x = np.array(held, dtype=float)
            data = UserData.from_arrays(x[:, None], (x == 2).astype(int), users=np.arange(len(x)))
            huge = Thresholds(0, 2**62)
            learner = StableLearner(
                huge, relation=ADD_REMOVE, delta=0.2, random_state=3, sharpness=math.inf
            )
            learner.fit(data)
            assert "truncated noise" in learner.algorithm_.reason
            return learner

        assert audit_exactly(law, world, claim).holds

    def test_a_seed_chosen_after_the_data_is_caught(self):
        """The broken twin: the seed of the largest agreement, chosen without paying for it."""
        world = SmallWorld(records=(0, 1, 2), n_users=3)
        claim = Guarantee(epsilon=1.0)

        def by_looking(held):
            x = np.array(held, dtype=float)
            data = UserData.from_arrays(x[:, None], (x == 2).astype(int), users=np.arange(3))
            learner = StableLearner(Thresholds(0, 2), epsilon=1.0, seeds=1, sharpness=2.0)
            rule = learner._rule()
            best = max(
                range(20),
                key=lambda s: np.bincount(
                    rule.decide(data, SharedSeed(seed_of(s), task="seed 0"))
                ).max(),
            )
            return released(learner.set_params(random_state=best).fit(data))

        def law(held):
            return enumerate_runs(lambda _: by_looking(held))

        assert not audit_exactly(law, world, claim, thorough=False).holds

    def test_noise_that_shares_the_public_seed_is_caught(self):
        world = SmallWorld(records=(0, 1, 2), n_users=2)

        def law(held):
            with use_noise(SeededNoise(3)):
                return {released(tiny(held, REPLACE, epsilon=1.0)): 1.0}

        assert not audit_exactly(law, world, Guarantee(epsilon=1.0), thorough=False).holds

    def test_a_vote_under_every_seed_is_too_much_for_truncated_noise(self):
        """The broken twin: what the exponential mechanism allows, counts with noise do not."""
        from quorate.mechanisms.choices.stable_choice import StableHistogram

        histogram = StableHistogram(epsilon=1.0, delta=0.25, relation=ADD_REMOVE)
        world = SmallWorld(records=("a", "b"), n_users=4)

        def law(held, votes):
            keys = [f"{key} under {seed}" for key in held for seed in range(votes)]
            return enumerate_runs(lambda _: release_by_hand(histogram, keys))

        claim = replace(histogram.guarantee, delta=histogram.event.delta)
        assert audit_exactly(lambda held: law(held, 1), world, claim).holds
        assert not audit_exactly(lambda held: law(held, 2), world, claim, thorough=False).holds

    def test_the_seed_is_public_and_repeatable(self):
        data = cut_offs(30, 50)
        first, second = (fitted(Thresholds(0, 499), data, seeds=1, noise_seed=i) for i in (0, 1))
        assert first.seed_ == second.seed_

    def test_odd_records_cannot_raise(self):
        X = np.array([[math.nan], [math.inf], [-math.inf], [1e308], [3.0], [3.0]])
        data = UserData.from_arrays(X, [0, 1, 7, 1, 0, 1], users=[0, 1, 2, 3, 4, 4], missing=0.0)
        for trust, delta in (("central", 0.0), ("shuffle", 1e-3), ("local", 0.0)):
            StableLearner(Thresholds(0, 9), trust=trust, delta=delta).fit(data)

    def test_nobody_may_be_there(self):
        nobody = UserData.from_arrays(np.zeros((0, 1)), np.zeros(0, int), users=np.zeros(0, int))
        learner = StableLearner(Thresholds(0, 9), relation=ADD_REMOVE).fit(nobody)
        assert 0 <= learner.index_ <= 10

    def test_a_rule_that_raises_for_somebody_takes_that_vote_only(self):
        class Fragile(StableRule):
            size, n_features = 4, 1

            def decide(self, users, seed):
                if np.any(users.X > 50):
                    raise ValueError(users.X)
                return np.full(users.n_users, 2)

            def concept(self, key, seed):
                return Constant(key % 2)

        data = UserData.from_arrays([[1.0], [99.0], [3.0]], [0, 1, 0], users=[0, 1, 2])
        assert decide_quietly(Fragile(), data, SharedSeed(0)).tolist() == [2, -1, 2]

    def test_a_rule_that_looks_around_is_asked_about_one_user_at_a_time(self):
        class Relative(StableRule):
            size, n_features = 99, 1

            def decide(self, users, seed):
                return np.full(users.n_users, users.n_users)

            def concept(self, key, seed):
                return Constant(key % 2)

        data = UserData.from_arrays([[1.0], [99.0], [3.0]], [0, 1, 0], users=[0, 1, 2])
        for rule in (Relative(), AmplifiedRule(Relative(), seeds=1, chunks=2)):
            together = rule.decide(data, SharedSeed(0))
            alone = np.concatenate([rule.decide(data.take([i]), SharedSeed(0)) for i in range(3)])
            assert decide_quietly(rule, data, SharedSeed(0)).tolist() == alone.tolist()
            assert together.tolist() != alone.tolist()

    @pytest.mark.parametrize("wrap", [lambda c: c, WholeClass, SoftmaxRule])
    def test_models_that_saw_everybody_are_named_through_every_wrapper(self, wrap):
        data = cut_offs(30, 5)
        for vectorized in (False, True):
            models = Classifiers([Constant(0), Constant(1)], features=1, vectorized=vectorized)
            learner = fitted(wrap(models), data)
            assert learner.guarantee_.caveat == models.caveat


def released(learner):
    return learner.index_, learner.seed_.task


def seed_of(random_state):
    from quorate.core.public_randomness import public_generator

    return int(public_generator(random_state).integers(2**62))


class TestRefusals:
    @pytest.mark.parametrize(
        ("parameters", "text"),
        [
            ({"trust": "nobody"}, "trust"),
            ({"trust": "local", "delta": 1e-6}, "delta = 0"),
            ({"trust": "shuffle"}, "delta > 0"),
            ({"trust": "local", "relation": ADD_REMOVE}, "REPLACE"),
            ({"agreement": True, "relation": ADD_REMOVE}, "number"),
            ({"seeds": 0}, "seeds"),
            ({"honest": 1.5}, "honest"),
            ({"epsilon": -1.0}, "epsilon"),
            ({"sharpness": 0.0}, "sharpness"),
            ({"classes": (1,)}, "classes"),
            ({"concepts": "cut-offs"}, "Representation"),
        ],
    )
    def test_wrong_parameters_cost_nothing(self, parameters, text, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=5.0, delta=1e-3)
        given = {"concepts": Thresholds(0, 9), "ledger": ledger, "data_name": "people"}
        learner = StableLearner(**(given | parameters))
        with pytest.raises(QuorateError, match=text):
            learner.fit([[1.0]], [1], users=[0])
        assert ledger.spent("people").epsilon == 0

    @pytest.mark.parametrize(("points", "delta"), [(2**9, 0.0), (2**60, 1e-6)])
    def test_a_ledger_is_charged_the_delta_that_is_used(self, points, delta, tmp_path):
        """A pure choice takes none, however much was offered."""
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=5.0, delta=1e-3)
        learner = StableLearner(
            Thresholds(0, points - 1), delta=1e-6, ledger=ledger, data_name="people"
        )
        learner.fit([[1.0]] * 20, [1] * 20, users=range(20))
        assert (learner.algorithm_.name == "pure_choice") is (delta == 0)
        assert ledger.spent("people").delta == learner.guarantee_.delta == delta

    def test_wrong_columns_cost_nothing(self):
        with pytest.raises(QuorateError, match="1 features"):
            StableLearner(Thresholds(0, 9)).fit(np.zeros((2, 3)), [0, 1], users=[0, 1])


class TestSelection:
    def test_the_smaller_of_the_two_is_chosen(self):
        known = {"seeds": 16, "epsilon": 1.0, "delta": 1e-6}
        for relation in Relation:
            for bits in (4, 14, 32, 48, 64, 200):
                chosen = choose_selection(size=2**bits, relation=relation, **known)
                pure = choose_selection(size=2**bits, relation=relation, **(known | {"delta": 0}))
                assert chosen.users <= pure.users
                assert chosen.pure is (bits < 45)

    def test_too_many_keys_for_a_pure_choice(self):
        chosen = choose_selection(size=2**256, seeds=2, epsilon=1.0, delta=1e-6, relation=REPLACE)
        assert not chosen.pure
        with pytest.raises(ParameterError, match=r"2\^256"):
            StableLearner(ListRule(ListLearner(FiniteTable(np.zeros((2, 255), int))))).fit(
                [[1.0]], [1], users=[0]
            )
