"""From a score to a hypothesis: cost, audits, both directions, huge domains."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

from quorate.auditing import enumerate_runs
from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.questions import lines
from quorate.core.users import UserData
from quorate.exceptions import NumericalFailure, RelationMismatchError
from quorate.learners import ConceptLearner, selection
from quorate.learners.concepts import Direction, Thresholds
from quorate.learners.cut_off_medians import choose_by_median
from quorate.learners.scores import (
    AnyMistake,
    Crossing,
    Mistakes,
    OwnBest,
    Surrogate,
    capped_regret,
)
from quorate.learners.selection import choose_by_crossing, choose_by_score, choose_in_two_stages
from quorate.mechanisms.choices.choose import ChooseBest
from rule_worlds import (
    CUT_OFFS,
    HOLDINGS,
    LABELINGS,
    RELATIONS,
    asked,
    audit,
    cut_people,
    people,
    table_losses,
)
from sealing import moved

both_relations = pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
EITHER = Thresholds(0, 1, direction=Direction.EITHER)


class TestCost:
    @both_relations
    @pytest.mark.parametrize("epsilon", [0.7, 1 / 3, Fraction(1, 7)])
    def test_every_way_spends_what_it_was_given_and_no_more(self, relation, epsilon):
        data = asked(people(HOLDINGS), relation)
        ways = [
            lambda account: choose_by_score(CUT_OFFS, data, AnyMistake(), account=account),
            lambda account: choose_by_crossing(CUT_OFFS, data, Crossing(), account=account),
            lambda account: choose_by_median(EITHER, data, account=account),
            lambda account: choose_by_median(EITHER, data, account=account, slack=True),
            lambda account: choose_in_two_stages(
                EITHER, data, account=account, share=Fraction(1, 4)
            ),
        ]
        for way in ways:
            account = Account.open(epsilon=epsilon, relation=relation, noise=SeededNoise(0))
            way(account)
            assert 0 <= account.left < 1e-12
            assert price(account.event, delta=0.0, relation=relation) == pytest.approx(
                float(epsilon)
            )
            with pytest.raises(NumericalFailure, match="does not fit"):
                account.laplace(moved(np.zeros(1, np.int64), relation=relation), scale=1e6)

    def test_an_account_of_other_neighbours_is_refused_by_what_draws(self):
        account = Account.open(epsilon=1.0, relation=Relation.ADD_REMOVE)
        with pytest.raises(RelationMismatchError):
            ChooseBest(candidates=2, epsilon=0.5).release(moved([0, 0]), account=account)


class TestLines:
    def test_small_ordered_classes_are_enumerated_and_large_ones_walked(self):
        assert not selection.is_walked(Thresholds(0, 100))
        assert selection.is_walked(Thresholds(0, 5000))

    def test_a_huge_line_is_walked_to_the_right_place(self):
        concepts = Thresholds(0, 2**62)
        data = cut_people(700, low=0, high=1000)
        with use_noise(SeededNoise(3)):
            index = choose_by_score(
                concepts, asked(data), OwnBest(), account=Account.open(epsilon=2.0)
            )
        assert abs(index - 700) < 20


class TestTwoStages:
    @both_relations
    def test_the_exact_audit_holds_and_a_regret_beyond_its_cap_is_caught(
        self, relation, monkeypatch
    ):
        def choose(data):
            account = Account.open(epsilon=1.0, relation=relation)
            return choose_in_two_stages(
                CUT_OFFS, asked(data, relation), account=account, share=Fraction(1, 4)
            )

        found = audit(choose, relation)
        assert found.holds, str(found)
        assert found.tightness > 0.3
        honest = capped_regret.capped
        monkeypatch.setattr(
            capped_regret, "capped", lambda *given, **known: 8 * honest(*given, **known)
        )
        assert audit(choose, relation, thorough=False).holds  # the core cuts what is said
        monkeypatch.setattr(lines, "bounded", lambda said, low, high: said)
        assert not audit(choose, relation, thorough=False).holds

    def test_the_place_among_users_pays_its_share_first_and_the_choice_has_the_rest(
        self, monkeypatch
    ):
        shares = []
        median, along = selection.median_between, selection.choice_along

        def watched_median(*given, account):
            shares.append(account.left)
            return median(*given, account=account)

        def watched_along(score, *, epsilon, relation):
            shares.append(epsilon)
            return along(score, epsilon=epsilon, relation=relation)

        monkeypatch.setattr(selection, "median_between", watched_median)
        monkeypatch.setattr(selection, "choice_along", watched_along)
        account = Account.open(epsilon=1.0)
        share = Fraction(3, 10)
        walkers = asked(cut_people(700))
        choose_in_two_stages(Thresholds(0, 2**32), walkers, account=account, share=share)
        assert shares == [share, 1 - share]
        assert account.left == 0

    @pytest.mark.parametrize("direction", list(Direction), ids=lambda d: d.name)
    def test_a_huge_line_is_searched_in_every_direction(self, direction):
        concepts = Thresholds(0, 2**62, direction=direction)
        data = cut_people(700, low=0, high=1000)
        if direction is Direction.BELOW:
            data = UserData(data.X, 1.0 - data.y, offsets=data.offsets)
        with use_noise(SeededNoise(3)):
            index = choose_in_two_stages(
                concepts, asked(data), account=Account.open(epsilon=4.0), share=Fraction(1, 4)
            )
        assert abs(concepts.cut_off(index) - 700) < 60

    @pytest.mark.parametrize("place", [0, 1, 499, 500])
    @pytest.mark.parametrize("direction", list(Direction), ids=lambda d: d.name)
    def test_every_place_leaves_every_cut_off_within_reach(self, direction, place, monkeypatch):
        concepts = Thresholds(0, 499, direction=direction)
        monkeypatch.setattr(selection, "median_between", lambda *_, **__: place)
        reached = set()
        monkeypatch.setattr(
            selection.ChooseOrdered,
            "release",
            lambda self, losses, *, account: reached.add(losses.size) or 0,
        )
        data = cut_people(100, n=5, high=400)
        account = Account.open(epsilon=1.0)
        choose_in_two_stages(concepts, asked(data), account=account, share=Fraction(1, 4))
        assert min(reached) >= concepts.size


@pytest.mark.claim("K1: Theorem 3.4", "L1: Theorem 3.4", "L4: Theorem 4.6")
class TestAsPrinted:
    """K1 and L4: the exponential mechanism, with weights exp(-epsilon loss / (2 sensitivity))."""

    HELD = (((0, 1), (1, 0)), ((0, 1),), ((1, 1), (1, 1), (0, 0)), ())

    def law(self, concepts, score, relation, *, published):
        data = asked(people(self.HELD), relation)
        return enumerate_runs(
            lambda noise: choose_by_score(
                concepts,
                data,
                score,
                account=Account.open(epsilon=1.5, relation=relation),
                random_state=0,
                published=published,
            )
        )

    @both_relations
    @pytest.mark.parametrize(
        ("score", "sensitivity"),
        [(Mistakes(records=1), 1), (Surrogate(target=LABELINGS, rate=0.4), 2)],
        ids=["K1", "L4"],
    )
    def test_finite_classes(self, score, sensitivity, relation):
        kept = people(self.HELD)
        if score.record_cap:
            kept = kept.cap(records=1, random_state=0)
        losses = table_losses(score, LABELINGS, kept)
        weights = np.exp(-1.5 * losses / (2 * sensitivity))
        law = self.law(LABELINGS, score, relation, published=True)
        found = [law[index] for index in range(LABELINGS.size)]
        np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-9)
        calibrated = self.law(LABELINGS, score, relation, published=False)
        assert max(calibrated.values()) > max(law.values()) + 0.01

    @both_relations
    def test_lines(self, relation, monkeypatch):
        monkeypatch.setattr(selection, "MAX_DUELLISTS", 1)
        score = Surrogate(target=CUT_OFFS, rate=0.4)
        losses = table_losses(score, CUT_OFFS, people(self.HELD))
        weights = np.exp(-1.5 * losses / 4)
        law = self.law(CUT_OFFS, score, relation, published=True)
        found = [law[index] for index in range(CUT_OFFS.size)]
        np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-9)

    def test_a_learner_with_published_constants_draws_from_that_law(self):
        data = people(self.HELD)
        learner = ConceptLearner(
            LABELINGS, 1.5, algorithm="mistakes", constants="published", random_state=0
        )
        law = enumerate_runs(lambda noise: clone(learner).fit(data).index_)
        expected = self.law(LABELINGS, Mistakes(records=1), Relation.REPLACE, published=True)
        assert all(abs(law[index] - expected[index]) < 1e-9 for index in range(LABELINGS.size))
