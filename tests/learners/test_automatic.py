"""The automatic rule: a function of public numbers, and its branches."""

import dataclasses
from fractions import Fraction

import pytest

from quorate.core.guarantees import Relation
from quorate.learners.automatic import (
    RuleAlgorithm,
    Situation,
    decide,
    location_share,
    record_cuts,
    regret_share,
)
from quorate.mechanisms.search.rough_records import RecordRange

SMALL = {"size": 729, "ordered": False, "epsilon": 1.0, "relation": Relation.REPLACE}
LINE = {"size": 2**32, "ordered": True, "epsilon": 1.0, "relation": Relation.REPLACE}
LARGE = {"size": 50_000, "ordered": False, "epsilon": 1.0, "relation": Relation.REPLACE}
PRIVATE = {"relation": Relation.ADD_REMOVE}
ALIKE = {"alike": True}
FEW, MANY = RecordRange(0, 4), RecordRange(4)


@pytest.mark.parametrize(
    ("situation", "records", "way"),
    [
        ({**SMALL, "error_level": 0.0}, None, RuleAlgorithm.ANY_MISTAKE),
        ({**LINE, "error_level": 0.1}, None, RuleAlgorithm.MORE_THAN),
        (SMALL, RecordRange.exactly(1), RuleAlgorithm.MISTAKES),
        ({**SMALL, "n_users": 200}, None, RuleAlgorithm.DUELS),
        ({**SMALL, "n_users": 300}, None, RuleAlgorithm.CAPPED_REGRET),
        ({**SMALL, "n_users": 600}, None, RuleAlgorithm.REGRET),
        ({**SMALL, "n_users": 200, "size": 9}, None, RuleAlgorithm.DUELS),
        ({**SMALL, "n_users": 300, "size": 9}, None, RuleAlgorithm.CAPPED_REGRET),
        ({**LINE, "n_users": 199, "size": 2**14}, None, RuleAlgorithm.MEDIAN),
        ({**LINE, "n_users": 200, "size": 2**14}, None, RuleAlgorithm.TWO_STAGES),
        ({**SMALL, "n_users": 300, **ALIKE}, None, RuleAlgorithm.DUELS),
        ({**SMALL, **PRIVATE}, None, RuleAlgorithm.CAPPED_REGRET),
        ({**SMALL, **PRIVATE, **ALIKE}, None, RuleAlgorithm.DUELS),
        ({**LINE, "n_users": 46}, None, RuleAlgorithm.SLACK_MEDIAN),
        ({**LINE, "n_users": 47}, None, RuleAlgorithm.MEDIAN),
        ({**LINE, "n_users": 199}, None, RuleAlgorithm.MEDIAN),
        ({**LINE, "n_users": 200}, None, RuleAlgorithm.TWO_STAGES),
        ({**LINE, "n_users": 10**5}, None, RuleAlgorithm.TWO_STAGES),
        ({**LINE, "n_users": 300, "epsilon": 0.1}, None, RuleAlgorithm.SLACK_MEDIAN),
        ({**LINE, **PRIVATE}, None, RuleAlgorithm.TWO_STAGES),
        ({**LINE, "n_users": 30, **ALIKE}, None, RuleAlgorithm.SLACK_MEDIAN),
        ({**LINE, "n_users": 100, **ALIKE}, None, RuleAlgorithm.MEDIAN),
        ({**LINE, "n_users": 300, **ALIKE}, None, RuleAlgorithm.OWN_BEST),
        ({**LINE, **PRIVATE, **ALIKE}, FEW, RuleAlgorithm.OWN_BEST),
        ({**LINE, **PRIVATE, **ALIKE}, MANY, RuleAlgorithm.MEDIAN),
        ({**LARGE, "n_users": 900}, None, RuleAlgorithm.CAPPED_REGRET),
        ({**LARGE, "n_users": 1000}, None, RuleAlgorithm.REGRET),
        ({**LARGE, "n_users": 50}, FEW, RuleAlgorithm.ANY_MISTAKE),
        ({**LARGE, "n_users": 1000, **ALIKE}, FEW, RuleAlgorithm.ANY_MISTAKE),
        ({**LARGE, "n_users": 1000, **ALIKE}, MANY, RuleAlgorithm.CROSSING),
        ({**LARGE, "n_users": 50}, MANY, RuleAlgorithm.KOLMOGOROV_SMIRNOV),
        ({**LARGE, **PRIVATE}, MANY, RuleAlgorithm.KOLMOGOROV_SMIRNOV),
        ({**LARGE, **PRIVATE}, None, RuleAlgorithm.KOLMOGOROV_SMIRNOV),
    ],
)
def test_every_branch_takes_its_way_and_says_why(situation, records, way):
    decision = decide(Situation(**situation), records)
    assert decision.algorithm is way
    assert len(decision.reason.split()) > 3


@pytest.mark.parametrize(
    ("situation", "cuts"),
    [
        (SMALL, ()),
        ({**LINE, "n_users": 100}, ()),
        ({**LINE, **PRIVATE}, ()),
        ({**LINE, **PRIVATE, **ALIKE}, (4,)),
        ({**LARGE, "n_users": 50}, (4,)),
        ({**LARGE, "n_users": 1000}, ()),
        ({**LARGE, "n_users": 1000, **ALIKE}, (4,)),
        ({**LARGE, "n_users": 50, "error_level": 0.1}, ()),
    ],
)
def test_records_are_bought_only_where_they_matter(situation, cuts):
    assert record_cuts(Situation(**situation)) == cuts


def test_a_place_among_users_takes_less_the_more_they_are_and_never_much():
    shares = [location_share(Situation(**LINE, n_users=n)) for n in (1, 200, 400, 4000, 10**7)]
    assert shares == sorted(shares, reverse=True)
    assert 0 < shares[-1] < shares[0] == Fraction(1, 4)
    assert location_share(Situation(**{**LINE, **PRIVATE})) == Fraction(1, 4)


def test_regrets_are_capped_until_users_are_known_to_be_very_many():
    assert regret_share(Situation(**LINE, n_users=1900)) == Fraction(1, 2)
    assert regret_share(Situation(**LINE, n_users=2000)) == 1
    assert regret_share(Situation(**{**LINE, **PRIVATE})) == Fraction(1, 2)


def test_a_situation_holds_nothing_but_public_numbers():
    fields = {field.name for field in dataclasses.fields(Situation)}
    assert fields == {"size", "ordered", "epsilon", "relation", "n_users", "error_level", "alike"}
