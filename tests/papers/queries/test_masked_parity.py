"""Masked parity: two rounds learn all rules against every oracle, one round is blinded."""

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.learners.concepts.masked_parities import (
    MaskedParity,
    all_masked_parities,
    masked_inputs,
)
from quorate.papers.queries import OneRound, Population, StatisticalQuery
from quorate.papers.queries.algorithms import (
    ConjunctionQueries,
    DisjunctionQueries,
    HalfspaceQueries,
    UniformConjunctionQueries,
)
from quorate.papers.queries.masked_parity import (
    BlindingOracle,
    GuessingMaskedParityQueries,
    MaskedParityQueries,
    WeakMaskedParityQueries,
    likely_secrets,
    visible_rules,
)
from quorate.papers.queries.oracles import ExactOracle, against_all_signs

D = 4
RULES = list(all_masked_parities(D))
INPUTS = masked_inputs(D)


def population(rule):
    return Population.uniform(INPUTS, rule)


@pytest.mark.claim("K9: Proposition 5.18")
class TestTwoRounds:
    @pytest.mark.parametrize("signed", [False, True])
    def test_all_rules_are_exact_under_worst_case_answers(self, signed):
        """32 rules, and for each all 2**5 ways to move the answers by their whole tolerance."""
        algorithm = MaskedParityQueries(D, signed=signed)
        for rule in RULES:
            assert set(against_all_signs(algorithm, population(rule))) == {rule}

    def test_several_candidates_do_no_harm(self):
        algorithm = MaskedParityQueries(D, candidates=3)
        for rule in RULES[::5]:
            assert set(against_all_signs(algorithm, population(rule))) == {rule}

    def test_the_blinding_oracle_does_not_stop_it(self):
        for rule in RULES:
            assert MaskedParityQueries(D).run(BlindingOracle(rule)) == rule

    def test_it_needs_two_rounds(self):
        with pytest.raises(ParameterError, match="one round"):
            MaskedParityQueries(D).run(OneRound(ExactOracle(population(RULES[3]))))

    def test_a_wrong_bit_is_forgiven_by_a_further_candidate(self):
        rule = MaskedParity(D, 0b0110, 1)

        class OneBitWrong(ExactOracle):
            def _answer(self, queries):
                answers = super()._answer(queries)
                if len(queries) == D:
                    answers[0] = 1 / (4 * D) + 0.001
                return answers

        assert MaskedParityQueries(D).run(OneBitWrong(population(rule))) != rule
        assert MaskedParityQueries(D, candidates=2).run(OneBitWrong(population(rule))) == rule


class TestBlinding:
    @pytest.mark.parametrize("seed", range(3))
    def test_it_keeps_every_tolerance(self, seed):
        """Random queries with values +-1 on inputs and labels, at the tolerance of the theorem."""
        rng = np.random.default_rng(seed)
        table = rng.choice([-1.0, 1.0], size=(len(INPUTS), 2))
        places = {tuple(row): i for i, row in enumerate(INPUTS)}

        def function(X, y):
            return [
                table[places.get(tuple(x), 0), int(label)] for x, label in zip(X, y, strict=True)
            ]

        query = StatisticalQuery(
            function=function, tolerance=2 ** (-D / 3), low=-1.0, high=1.0, boolean=True
        )
        for rule in RULES:
            truth = population(rule).mean(query)
            assert abs(BlindingOracle(rule).ask(query) - truth) <= query.tolerance

    def test_answers_to_one_round_do_not_depend_on_the_flip(self):
        weak = WeakMaskedParityQueries(D)
        for secret in range(2**D):
            told = [
                BlindingOracle(MaskedParity(D, secret, flip)).answer(weak.queries()).tolist()
                for flip in (0, 1)
            ]
            assert told[0] == told[1]

    def test_a_truthful_oracle_would_tell_the_flip(self):
        """The broken twin of the adversary: it does not blind, and guessing all parities works."""
        learner = GuessingMaskedParityQueries(D, guesses=2**D)
        errors = [population(r).error(learner.run(ExactOracle(population(r)))) for r in RULES]
        assert max(errors) == 0.0


class TestVisibility:
    def test_the_best_query_sees_two_of_thirty_two_rules(self):
        seen = [len(visible_rules(q, D)) for q in GuessingMaskedParityQueries(D, 16).queries()]
        assert max(seen) == 2
        assert 2 ** (2 * D / 3 - 1) >= 2

    def test_random_queries_see_nothing(self):
        rng = np.random.default_rng(0)
        places = {tuple(row): i for i, row in enumerate(INPUTS)}
        for _ in range(50):
            table = rng.choice([-1.0, 1.0], size=(len(INPUTS), 2))
            query = StatisticalQuery(
                function=lambda X, y, table=table: [
                    table[places.get(tuple(x), 0), int(label)]
                    for x, label in zip(X, y, strict=True)
                ],
                tolerance=2 ** (-D / 3),
                low=-1.0,
                high=1.0,
                boolean=True,
            )
            assert visible_rules(query, D) == []


def share_of_failures(learner):
    """Return the share of rules on which a learner errs by a quarter or more when blinded."""
    errors = [population(rule).error(learner.run(BlindingOracle(rule))) for rule in RULES]
    return np.mean(np.array(errors) >= 0.25)


ONE_ROUND = [
    WeakMaskedParityQueries(D),
    WeakMaskedParityQueries(D, signed=True),
    *(GuessingMaskedParityQueries(D, guesses=t) for t in (1, 4, 8)),
    ConjunctionQueries(D + 2, negations=True),
    DisjunctionQueries(D + 2, negations=True),
    HalfspaceQueries(D + 2),
    UniformConjunctionQueries(D + 2),
]


@pytest.mark.claim("K9: Theorem 5.16")
class TestOneRound:
    @pytest.mark.parametrize("learner", ONE_ROUND, ids=lambda each: repr(each)[:40])
    def test_every_learner_of_one_round_fails_on_half_of_the_rules(self, learner):
        queries = learner.max_queries
        floor = (1 - queries * 2 ** (-D / 3 - 2)) / 2
        assert share_of_failures(learner) >= floor
        if isinstance(learner, WeakMaskedParityQueries):
            assert share_of_failures(learner) > 0.9

    def test_two_rounds_fail_on_none(self):
        assert share_of_failures(MaskedParityQueries(D)) == 0.0

    def test_the_weak_learner_errs_on_exactly_a_quarter(self):
        for rule in RULES:
            found = WeakMaskedParityQueries(D).run(ExactOracle(population(rule)))
            expected = 0.25 if rule.secret else 0.5 * rule.flip
            assert population(rule).error(found) == expected


class TestSecrets:
    def test_they_come_in_the_order_of_their_cost(self):
        margins = np.array([0.4, -0.1, 0.2])
        costs = [
            sum(abs(m) for j, m in enumerate(margins) if (m > 0) != (secret >> j & 1))
            for secret in likely_secrets(margins, 8)
        ]
        assert costs == sorted(costs)
        assert len(set(likely_secrets(margins, 8))) == 8

    def test_other_arguments_are_refused(self):
        with pytest.raises(ParameterError):
            GuessingMaskedParityQueries(3, guesses=9)
        with pytest.raises(ParameterError):
            MaskedParityQueries(0)
