"""Decision lists that most users find alike."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts import Constant
from quorate.papers.stability import decision_lists
from quorate.papers.stability.decision_lists import DecisionListRule, TermList
from quorate.papers.stability.rules import plurality
from quorate.papers.stability.shared_seed import SharedSeed


def random_list(features, length, rng):
    rules = tuple(
        (((int(f), bool(rng.integers(2))),), int(rng.integers(2)))
        for f in rng.permutation(features)[:length]
    )
    names = tuple(f"x{j}" for j in range(features))
    return TermList(rules=rules, default=1 - rules[-1][1], names=names)


def crowd(target, features, *, users, records, rng, noise=0.0):
    X = rng.integers(0, 2, size=(users * records, features)).astype(float)
    y = target.predict(X)
    y = np.where(rng.random(len(y)) < noise, 1 - y, y)
    return UserData.from_arrays(X, y, users=np.repeat(np.arange(users), records))


class TestAgreement:
    def test_twelve_features_five_rules_and_1024_records(self):
        """The goal: a plurality of .9; measured 1.00 with an excess error of 0."""
        rng, shares, errors = np.random.default_rng(1), [], []
        fresh = rng.integers(0, 2, size=(4000, 12)).astype(float)
        rule = DecisionListRule(12, length=5)
        for seed in range(6):
            target = random_list(12, 5, rng)
            data = crowd(target, 12, users=30, records=1024, rng=rng)
            key, share = plurality(rule.decide(data, SharedSeed(seed)))
            shares.append(share)
            found = rule.concept(key, SharedSeed(seed)).predict(fresh)
            errors.append(np.mean(found != target.predict(fresh)))
        assert np.mean(shares) >= 0.9
        assert np.mean(errors) <= 0.005

    def test_wrong_labels_are_allowed_for(self):
        rng = np.random.default_rng(2)
        target = random_list(6, 3, rng)
        data = crowd(target, 6, users=30, records=1024, rng=rng, noise=0.05)
        fresh = rng.integers(0, 2, size=(2000, 6)).astype(float)
        rule = DecisionListRule(6, length=3, noise=0.05)
        key, share = plurality(rule.decide(data, SharedSeed(0)))
        assert share >= 0.5
        assert (
            np.mean(rule.concept(key, SharedSeed(0)).predict(fresh) != target.predict(fresh)) < 0.03
        )

    def test_longer_terms_are_found(self):
        rng = np.random.default_rng(3)
        names = tuple(f"x{j}" for j in range(6))
        target = TermList(
            rules=((((0, True), (1, True)), 1), (((2, False), (3, True)), 0)),
            default=1,
            names=names,
        )
        data = crowd(target, 6, users=30, records=1024, rng=rng)
        rule = DecisionListRule(6, length=6, width=2)
        key, share = plurality(rule.decide(data, SharedSeed(1)))
        fresh = rng.integers(0, 2, size=(2000, 6)).astype(float)
        assert share >= 0.4
        assert (
            np.mean(rule.concept(key, SharedSeed(1)).predict(fresh) != target.predict(fresh)) < 0.05
        )


class TestForm:
    def test_keys_and_lists_belong_together(self):
        rule = DecisionListRule(2, length=2)
        points = np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0)])
        for key in range(rule.size):
            concept = rule.concept(key, SharedSeed(0))
            assert isinstance(concept, TermList | Constant)
            assert set(concept.predict(points)) <= {0, 1}

    def test_blocks_of_users_do_not_meet(self, monkeypatch):
        rng = np.random.default_rng(4)
        data = crowd(random_list(4, 2, rng), 4, users=20, records=30, rng=rng)
        whole = DecisionListRule(4, length=2).decide(data, SharedSeed(5)).tolist()
        monkeypatch.setattr(decision_lists, "_BLOCK_CELLS", 2**13)
        assert DecisionListRule(4, length=2).decide(data, SharedSeed(5)).tolist() == whole

    def test_too_many_terms_are_refused(self):
        with pytest.raises(ParameterError, match="terms"):
            DecisionListRule(60, width=4)

    def test_sentences(self):
        concept = TermList(rules=((((1, False),), 0),), default=1, names=("a", "b"))
        assert str(concept) == "If not b then predict 0, else predict 1."
