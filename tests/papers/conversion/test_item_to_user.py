"""The certified conversion: exhaustive audits of small worlds, and twins that they catch."""

import math
from itertools import product

import numpy as np
import pytest

from conversion_graphs import NEW_EDGES_OF_USER_0, graph, greedy_cover, jump_graphs
from quorate.auditing import (
    SmallWorld,
    audit_exactly,
    discrete_gaussian_mass,
    discrete_laplace_mass,
    enumerate_runs,
)
from quorate.core.account.account import Account
from quorate.exceptions import NotEnoughUsersError, ParameterError, SchemaError
from quorate.papers.conversion import Base, BaseKind, CertifiedItemToUser
from quorate.papers.conversion import item_to_user as module
from quorate.papers.conversion.alike import Alike, certify_by_sorting, differences

ALPHABETS = [
    ((0, 0, 0), (1, 0, 0), (9, 0, 0)),
    ((0, 0, 0), (2, 0, -2), (0, 3, 3)),
    ((5, 0, 0), (0, 5, 0), (0, 0, 5)),
]


def converter(n, reach, *, scale, epsilon=1.0, width=3):
    base = Base(BaseKind.EXPONENTIAL, scale=scale)
    return CertifiedItemToUser(
        base=base, n_users=n, width=width, bound=100, epsilon=epsilon, delta=0.5, reach=reach
    )


def audit(convert, alphabet):
    world = SmallWorld(records=alphabet, n_users=convert.n_users, ordered=False)
    return audit_exactly(lambda users: convert.law(np.array(users)), world, convert.guarantee)


@pytest.mark.claim("F1: Lemma 18")
class TestExhaustiveAudits:
    @pytest.mark.parametrize("alphabet", ALPHABETS)
    @pytest.mark.parametrize("scale", [8.0, 70.0, 200.0, 2000.0])
    @pytest.mark.parametrize("n", [9, 10])
    def test_no_world_exceeds_one_tail_of_the_limit(self, n, scale, alphabet):
        convert = converter(n, 1, scale=scale)
        found = audit(convert, alphabet)
        assert found.holds, str(found)
        assert found.delta <= float(convert.stable.limit.tail) * (1 + 1e-9)

    @pytest.mark.parametrize("scale", [200.0, 600.0])
    def test_a_longer_reach(self, scale):
        convert = converter(17, 2, scale=scale)
        found = audit(convert, ALPHABETS[0])
        assert found.holds, str(found)

    def test_the_claim_is_tight(self):
        convert = converter(9, 1, scale=70.0)
        assert audit(convert, ALPHABETS[0]).delta == pytest.approx(float(convert.stable.limit.tail))

    @pytest.mark.parametrize(("n", "reach"), [(5, 1), (6, 1), (8, 1), (9, 2), (10, 2)])
    @pytest.mark.parametrize("scale", [4.0, 20.0, 60.0])
    def test_one_score_difference(self, n, reach, scale):
        convert = converter(n, reach, scale=scale, width=2)
        assert convert.is_one_difference
        found = audit(convert, ((0, 0), (1, 0), (0, 3), (0, 9)))
        assert found.holds, str(found)
        assert found.delta <= float(convert.stable.limit.tail) * (1 + 1e-9)

    def test_the_audit_catches_half_of_the_limit(self, monkeypatch):
        """A twin whose distance counts twice is moved by 2 by one user."""
        true = module.certify_by_cover

        def doubled(scores, **parameters):
            alike = true(scores, **parameters)
            return Alike(2 * alike.distance, alike.chosen)

        monkeypatch.setattr(module, "certify_by_cover", doubled)
        assert not audit(converter(17, 2, scale=400.0), ALPHABETS[0]).holds

    def test_the_audit_catches_a_release_from_everybody(self, monkeypatch):
        """A twin that tests the distance and then sums whoever comes last, outliers too."""
        true = module.certify_by_cover

        def careless(scores, **parameters):
            alike = true(scores, **parameters)
            return Alike(alike.distance, alike.chosen[::-1])

        monkeypatch.setattr(module, "certify_by_cover", careless)
        assert not audit(converter(9, 1, scale=8.0), ((0, 0, 0), (0, 0, 1), (0, 0, 90))).holds

    def test_the_code_follows_the_law_that_is_audited(self):
        convert = converter(9, 1, scale=70.0)
        users = np.array([ALPHABETS[0][i] for i in (0, 0, 0, 0, 1, 1, 0, 2, 0)])
        runs = enumerate_runs(lambda _: convert.release(users))
        for output, mass in convert.law(users).items():
            assert float(runs.get(output, 0)) == pytest.approx(mass, abs=1e-12)


def noisy_law(convert, users, window):
    """Return the law of noisy sums: their noise times the chance of passing the limit."""
    scores = np.array(users).reshape(convert.n_users, convert.width)
    alike = convert.certify(scores)
    totals = scores[alike.chosen].sum(axis=0)
    chance = convert.pass_probability(alike.distance)
    mass = {
        BaseKind.LAPLACE: lambda t: discrete_laplace_mass(
            int(t), scale=convert.base.scale, window=window
        ),
        BaseKind.GAUSSIAN: lambda t: discrete_gaussian_mass(
            int(t), sigma=convert.base.scale, window=window
        ),
    }[convert.base.kind]
    law = {None: 1 - chance}
    for point in product(*[mass(total).items() for total in totals]):
        value, chances = zip(*point, strict=True)
        law[value] = chance * math.prod(chances)
    return law


class TestNoisySums:
    @pytest.mark.parametrize(
        ("kind", "n", "width", "records", "scale"),
        [
            (BaseKind.LAPLACE, 5, 1, (0, 1, 5), 3.0),
            (BaseKind.LAPLACE, 7, 1, (0, 1, 5), 24.0),
            (BaseKind.LAPLACE, 9, 2, ((0, 0), (1, 0), (0, 4)), 33.0),
            (BaseKind.GAUSSIAN, 5, 1, (0, 1, 5), 6.0),
            (BaseKind.GAUSSIAN, 7, 1, (0, 1, 5), 20.0),
        ],
    )
    def test_no_world_exceeds_the_claim(self, kind, n, width, records, scale):
        convert = CertifiedItemToUser(
            base=Base(kind, scale), n_users=n, width=width, bound=9, epsilon=1.0, delta=0.5, reach=1
        )
        world = SmallWorld(records=records, n_users=n, ordered=False)
        window = (-1, 6 * n) if width == 1 else (-1, 12)
        found = audit_exactly(
            lambda users: noisy_law(convert, users, window), world, convert.guarantee
        )
        assert found.holds, str(found)
        distances = {
            convert.certify(np.array(users).reshape(n, width)).distance
            for users in world.data_sets(convert.relation)
        }
        assert len(distances) > 1

    def test_the_audit_catches_a_certificate_of_another_norm(self, monkeypatch):
        """A twin that takes four times the closeness for granted."""
        monkeypatch.setattr(
            module,
            "certify_by_sorting",
            lambda values, *, closeness_squared, reach: certify_by_sorting(
                values, closeness_squared=64 * closeness_squared, reach=reach
            ),
        )
        convert = CertifiedItemToUser(
            base=Base(BaseKind.LAPLACE, 3.0),
            n_users=9,
            width=1,
            bound=9,
            epsilon=1.0,
            delta=0.5,
            reach=1,
        )
        world = SmallWorld(records=(0, 1, 5), n_users=9, ordered=False)
        found = audit_exactly(
            lambda users: noisy_law(convert, users, (-1, 60)), world, convert.guarantee
        )
        assert not found.holds


def embedded(edges):
    """Return scores whose differences have a range of 40 on edges and at most 20 elsewhere."""
    scores = []
    for i, j in np.argwhere(np.triu(edges)):
        column = np.zeros(len(edges), dtype=np.int64)
        column[i], column[j] = 10, -10
        scores += [column, -column]
    return np.array(scores).T


def jump_worlds():
    """Return two neighbouring tables of scores on whose graphs a greedy cover jumps from 6 to 9."""
    before, after = jump_graphs()
    both = before | after
    tables = []
    for edges in (before, after):
        scores = embedded(both)
        # User 0 alone is changed: their columns are kept where they are joined.
        pairs = np.argwhere(np.triu(both))
        gone = np.repeat([not edges[i, j] for i, j in pairs], 2)
        scores[0, gone] = 0
        tables.append(np.vstack([scores, np.zeros((60 - len(scores), scores.shape[1]), int)]))
    return tables


class TestTheGreedyTwin:
    def law_pair(self):
        before, after = jump_worlds()
        base = Base(BaseKind.EXPONENTIAL, scale=30 * 4 * 56.0)
        convert = CertifiedItemToUser(
            base=base, n_users=60, width=before.shape[1], bound=10, epsilon=1.0, delta=0.9, reach=7
        )
        assert 20 < convert.tolerance < 40
        return convert, convert.law(before), convert.law(after)

    @staticmethod
    def worst(first, second, epsilon):
        factor = math.exp(epsilon)
        return max(
            sum(max(a[o] - factor * b[o], 0) for o in a)
            for a, b in [(first, second), (second, first)]
        )

    def test_the_tables_have_the_graphs(self):
        for table, edges in zip(jump_worlds(), jump_graphs(), strict=True):
            assert ((differences(table, BaseKind.EXPONENTIAL)[:12, :12] > 30) == edges).all()
        first, second = jump_worlds()
        assert (first[1:] == second[1:]).all()
        assert len(NEW_EDGES_OF_USER_0) == 10
        assert graph([(0, 1)]).sum() == 2

    def test_the_relaxed_cover_keeps_the_promise_there(self):
        convert, first, second = self.law_pair()
        assert self.worst(first, second, 1.0) <= convert.event.delta

    def test_the_greedy_cover_breaks_it_there(self, monkeypatch):
        def greedy(convert, scores):
            members = greedy_cover(differences(scores, convert.base.kind) > convert.tolerance)
            chosen = np.zeros(len(scores), dtype=bool)
            chosen[np.flatnonzero(~members)[: convert.survivors]] = True
            return Alike(int(members.sum()), chosen)

        monkeypatch.setattr(CertifiedItemToUser, "certify", greedy)
        convert, first, second = self.law_pair()
        assert self.worst(first, second, 1.0) > convert.event.delta


class TestUse:
    @pytest.mark.parametrize("kind", list(BaseKind), ids=lambda k: k.name)
    def test_users_who_are_alike_are_released(self, kind):
        base = Base(kind, scale=50_000.0)
        convert = CertifiedItemToUser(base=base, n_users=250, width=4, bound=10)
        rng = np.random.default_rng(0)
        scores = rng.integers(0, 3, (250, 4))
        assert convert.certify(scores).distance == 0
        assert convert.release(scores) is not None

    def test_the_order_of_users_does_not_matter(self):
        rng = np.random.default_rng(5)
        convert = converter(12, 1, scale=300.0)
        scores = rng.integers(0, 6, (12, 3))
        law = convert.law(scores)
        for _ in range(5):
            assert convert.law(rng.permutation(scores)) == pytest.approx(law)

    def test_a_giant_user_is_left_out(self):
        convert = CertifiedItemToUser(
            base=Base(BaseKind.LAPLACE, scale=10_000.0), n_users=300, width=2, bound=1000
        )
        scores = np.ones((300, 2), dtype=np.int64)
        scores[17] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
        alike = convert.certify(scores)
        assert (alike.distance, bool(alike.chosen[17])) == (1, False)

    def test_people_who_differ_are_not_released(self):
        convert = CertifiedItemToUser(
            base=Base(BaseKind.LAPLACE, scale=100.0), n_users=300, width=2, bound=1000
        )
        scores = np.random.default_rng(0).integers(-1000, 1000, (300, 2))
        assert convert.release(scores) is None

    def test_the_account_pays(self):
        convert = converter(9, 1, scale=70.0)
        account = Account.open(epsilon=1.0, delta=0.9, reserve=0.9)
        convert.release(np.zeros((9, 3), dtype=np.int64), account=account)
        assert account.event == convert.event

    def test_refusals(self):
        base = Base(BaseKind.EXPONENTIAL, scale=10.0)
        with pytest.raises(NotEnoughUsersError, match="at least 201 users"):
            CertifiedItemToUser(base=base, n_users=200, width=3, bound=1)
        with pytest.raises(NotEnoughUsersError, match="at least 101 users"):
            CertifiedItemToUser(base=base, n_users=100, width=2, bound=1)
        with pytest.raises(ParameterError, match="at least 2 candidates"):
            CertifiedItemToUser(base=base, n_users=300, width=1, bound=1)
        with pytest.raises(ParameterError, match="64 bits"):
            CertifiedItemToUser(base=base, n_users=300, width=3, bound=2**40)
        with pytest.raises(ParameterError, match="at most 5000 users"):
            CertifiedItemToUser(base=base, n_users=30_000, width=3, bound=1)
        with pytest.raises(SchemaError, match=r"shape \(9, 3\)"):
            converter(9, 1, scale=70.0).release(np.zeros((8, 3), dtype=np.int64))
