"""The common part of the learners: decide on a score, pay for its estimates, choose a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, assert_never, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.data.tables import check_classes, check_columns, check_labels, declared_users
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import ParameterError
from quorate.learners.automatic import (
    Decision,
    RuleAlgorithm,
    Situation,
    decide,
    location_share,
    record_cuts,
    regret_share,
)
from quorate.learners.concepts.base import Concept, ConceptClass
from quorate.learners.concepts.numeric.thresholds import Direction, Thresholds
from quorate.learners.cut_off_medians import choose_by_median
from quorate.learners.scores import (
    AnyMistake,
    CappedRegret,
    ClippedPairwise,
    Crossing,
    Duels,
    KolmogorovSmirnov,
    Mistakes,
    MoreThan,
    OwnBest,
    Score,
    Surrogate,
)
from quorate.learners.scores.caller_scores import by_user
from quorate.learners.scores.pairwise import MAX_DUELLISTS, check_duellists, published_clip
from quorate.learners.selection import (
    choose_by_crossing,
    choose_by_score,
    choose_in_two_stages,
    is_walked,
    rule_error,
    score_error,
)
from quorate.learners.smallest_error_search import choose_by_estimated_level
from quorate.mechanisms.choices.choose import ChoiceError
from quorate.mechanisms.search.rough_records import (
    RECORD_LADDER,
    RecordRange,
    RoughRecords,
    rough_records_budget,
)

__all__ = ["CONSTANTS", "HeldRecords", "RuleLearner"]

CONSTANTS = ("calibrated", "published")
"""Whether utility constants are exact and optimised, or those of the papers."""


@dataclass
class HeldRecords:
    """What is known about the number of records per user: stated, released, or unknown.

    >>> from quorate.core.users import UserData
    >>> account = Account.open(epsilon=1.0)
    >>> data = UserData(np.zeros((800, 1)), offsets=np.arange(0, 801, 4))
    >>> people, held = People(data, Relation.REPLACE), HeldRecords(account)
    >>> held.typical(people), account.left < 1
    (4, True)
    >>> print(held.known)
    4 to 7 records
    """

    account: Account
    known: RecordRange | None = None

    @classmethod
    def stated(cls, records: int | str, account: Account) -> HeldRecords:
        """Start with the stated number of records; for ``"auto"`` it is unknown."""
        return cls(account, None if isinstance(records, str) else RecordRange.exactly(records))

    def buy(self, people: People, cuts: tuple[int, ...]) -> None:
        """Spend a small part of the budget on the range of the median number of records."""
        relation = self.account.relation
        n_users = people.n_users if relation is Relation.REPLACE else 0
        rough = RoughRecords(
            cuts=cuts,
            epsilon=rough_records_budget(self.account.epsilon, relation=relation, n_users=n_users),
            relation=relation,
        )
        self.known = rough.release(people, account=self.account)

    def typical(self, people: People) -> int:
        """Return the typical number of records, stated or released."""
        if self.known is None:
            self.buy(people, RECORD_LADDER[1:13])
        return max(1, self.known.lower if self.known is not None else 1)


class RuleLearner(ClassifierMixin, UserEstimator):  # type: ignore[misc]
    """Base of the learners that release one rule.

    Subclasses have the parameters ``records``, ``error_level``, ``alike``, ``excess``,
    ``constants`` and ``classes``, and call :meth:`_learn` with a class of concepts. Fitted
    attributes are releases or functions of them: ``index_``, ``concept_``, ``algorithm_``,
    ``error_``, ``records_``, ``classes_`` and ``guarantee_``.
    """

    records: Any
    error_level: float | None
    alike: bool = False
    excess: float
    constants: str
    classes: Sequence[Any]
    _takes_crowds = True
    _uses_delta = False

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict one of the two classes for every row of ``X`` by the released rule."""
        check_is_fitted(self, "concept_")
        concept: Concept = self.concept_
        labels: NDArray[Any] = self.classes_[concept.predict(self._features(X))]
        return labels

    @property
    def _caveat(self) -> str | None:
        given = (getattr(self, "concepts", None), getattr(self, "algorithm", None))
        caveats = [each.caveat for each in given if isinstance(each, ConceptClass | Score)]
        return " ".join(each for each in caveats if each is not None) or None

    def _validate_common(self) -> None:
        if self.records != "auto":
            _validate.positive_integer(records=self.records)
        if self.error_level is not None:
            _validate.fraction(error_level=self.error_level)
        _validate.one_of((False, True), alike=self.alike)
        _validate.probability(excess=self.excess)
        _validate.one_of(CONSTANTS, constants=self.constants)
        check_classes(self.classes)

    def _refuse(self, concepts: ConceptClass, asked: str | Score, X: Any, y: Any) -> None:
        """Refuse a fit that public facts show to be impossible, before anything is charged."""
        check_columns(X, expected=concepts.n_features, single=self._single_feature)
        check_labels(y, self.classes)
        self._check_way(concepts, asked)
        declared = declared_users(X, None)
        if declared is not None and is_walked(concepts) and _is_pairwise(asked):
            self._check_pieces(concepts, declared)

    def _check_way(self, concepts: ConceptClass, asked: str | Score) -> None:
        if asked == RuleAlgorithm.MORE_THAN.value and self.error_level is None:
            raise ParameterError(
                "Expected error_level= for 'more_than': the t that separates best depends on the "
                "error of the best concept. State it, or use 'crossing'."
            )
        cut_offs_only = (
            RuleAlgorithm.MEDIAN.value,
            RuleAlgorithm.SLACK_MEDIAN.value,
            RuleAlgorithm.TWO_STAGES.value,
        )
        if asked in cut_offs_only and not isinstance(concepts, Thresholds):
            raise ParameterError(
                f"Expected Thresholds for the median of cut-offs, got {type(concepts).__name__}. "
                "Use 'capped_regret', 'duels', 'crossing' or 'kolmogorov_smirnov'."
            )
        if isinstance(asked, Score):
            by_user(asked).check_class(concepts, walked=is_walked(concepts))
        by_theorem = (
            asked in ("auto", RuleAlgorithm.ESTIMATED_LEVEL.value) and self.constants == "published"
        )
        if by_theorem and not is_walked(concepts):
            Surrogate(target=concepts).check_class(concepts, walked=False)
        if not _is_pairwise(asked):
            return
        if not is_walked(concepts):
            check_duellists(concepts.size, "duels")
            return
        if self.relation is not Relation.REPLACE:
            raise ParameterError(
                "Expected relation=Relation.REPLACE for duels along a line: the table they fill "
                "grows with the number of users, which is private under addition and removal. Use "
                "'median'."
            )
        if self.records == "auto":
            raise ParameterError(
                "Expected records=, a public number, for duels along a line: the table they fill "
                "grows with it. State it, or use 'own_best' or 'median'."
            )

    def _learn(
        self,
        concepts: ConceptClass,
        people: People,
        asked: str | RuleAlgorithm | Score,
        account: Account,
    ) -> None:
        """Choose a concept and set all fitted attributes."""
        held = HeldRecords.stated(self.records, account)
        situation = self._situation(concepts, people)
        public: dict[str, Any] = {
            "relation": self.relation,
            "n_users": situation.n_users,
            "published": self.constants == "published",
        }
        if isinstance(asked, Score):
            score, reason = asked.name, "it was requested"
            error = score_error(by_user(asked), concepts, epsilon=account.left, **public)
            index = self._by_given_score(concepts, people, situation, by_user(asked), account)
        else:
            decision = self._decide(situation, people, asked, held)
            score, reason = decision.algorithm.value, decision.reason
            error = self._error(decision.algorithm, concepts, people, situation, held, public)
            index = self._choose(decision.algorithm, concepts, people, situation, held)
        self._release(concepts, index, held, score=score, reason=reason, error=error)

    def _release(
        self,
        concepts: ConceptClass,
        index: int,
        held: HeldRecords,
        *,
        score: str,
        reason: str,
        error: ChoiceError,
    ) -> None:
        """State the guarantee, then set the released attributes."""
        self.guarantee_ = self._promise(held.account)
        self.index_ = index
        self.concept_ = concepts.concept(index)
        self.records_ = held.known
        self.algorithm_ = Route(name=score, reason=reason)
        self.error_ = error
        self.classes_ = np.asarray(self.classes)

    def _error(
        self,
        algorithm: RuleAlgorithm,
        concepts: ConceptClass,
        people: People,
        situation: Situation,
        held: HeldRecords,
        public: dict[str, Any],
    ) -> ChoiceError:
        """Return the error bound of the next choice, given the releases before it."""
        if algorithm is RuleAlgorithm.CLIPPED_PAIRWISE:
            score = ClippedPairwise(tau=published_clip(held.typical(people), self.excess))
            return score_error(score, concepts, epsilon=held.account.left, **public)
        if algorithm is RuleAlgorithm.ESTIMATED_LEVEL:
            held.typical(people)
        share = location_share(situation) if algorithm is RuleAlgorithm.TWO_STAGES else Fraction(0)
        return rule_error(algorithm, concepts, epsilon=held.account.left, location=share, **public)

    def _situation(self, concepts: ConceptClass, people: People) -> Situation:
        return Situation(
            size=concepts.size,
            ordered=is_walked(concepts),
            epsilon=float(self.epsilon),
            relation=self.relation,
            n_users=people.n_users if self.relation is Relation.REPLACE else None,
            error_level=self.error_level,
            alike=self.alike,
        )

    def _decide(
        self, situation: Situation, people: People, asked: str | RuleAlgorithm, held: HeldRecords
    ) -> Decision:
        if asked != "auto":
            return Decision(RuleAlgorithm(asked), "it was requested")
        if self.constants == "published":
            return Decision(
                RuleAlgorithm.ESTIMATED_LEVEL, "constants='published': the learner of Theorem 4.6"
            )
        cuts = record_cuts(situation)
        if cuts and held.known is None:
            held.buy(people, cuts)
        return decide(situation, held.known)

    def _by_given_score(
        self,
        concepts: ConceptClass,
        people: People,
        situation: Situation,
        score: Score,
        account: Account,
    ) -> int:
        if isinstance(score, Crossing):
            return choose_by_crossing(concepts, people, score, account=account)
        if isinstance(score, Duels | ClippedPairwise):
            return self._by_duels(concepts, people, situation, score, account)
        return self._by_score(concepts, people, score, account)

    def _by_score(
        self, concepts: ConceptClass, people: People, score: Score, account: Account
    ) -> int:
        return choose_by_score(
            concepts,
            people,
            score,
            account=account,
            random_state=self.random_state,
            published=self.constants == "published",
        )

    def _choose(
        self,
        algorithm: RuleAlgorithm,
        concepts: ConceptClass,
        people: People,
        situation: Situation,
        held: HeldRecords,
    ) -> int:
        account = held.account
        match algorithm:
            case RuleAlgorithm.MISTAKES:
                return self._by_score(concepts, people, Mistakes(records=1), account)
            case RuleAlgorithm.ANY_MISTAKE:
                return self._by_score(concepts, people, AnyMistake(), account)
            case RuleAlgorithm.MORE_THAN:
                level = 0.0 if self.error_level is None else self.error_level
                score = MoreThan.separating(error_level=level, excess=self.excess)
                return self._by_score(concepts, people, score, account)
            case RuleAlgorithm.KOLMOGOROV_SMIRNOV:
                return self._by_score(concepts, people, KolmogorovSmirnov(), account)
            case RuleAlgorithm.OWN_BEST:
                return self._by_score(concepts, people, OwnBest(), account)
            case RuleAlgorithm.CAPPED_REGRET:
                return self._by_score(concepts, people, CappedRegret(), account)
            case RuleAlgorithm.REGRET:
                return self._by_score(concepts, people, CappedRegret(share=Fraction(1)), account)
            case RuleAlgorithm.TWO_STAGES:
                return choose_in_two_stages(
                    cast("Thresholds", concepts),
                    people,
                    account=account,
                    share=location_share(situation),
                    score=CappedRegret(share=regret_share(situation)),
                )
            case RuleAlgorithm.CROSSING:
                return choose_by_crossing(concepts, people, Crossing(), account=account)
            case RuleAlgorithm.DUELS:
                return self._by_duels(concepts, people, situation, Duels(), account)
            case RuleAlgorithm.CLIPPED_PAIRWISE:
                m = held.typical(people)
                pairwise = ClippedPairwise(tau=published_clip(m, self.excess))
                return self._by_duels(concepts, people, situation, pairwise, account)
            case RuleAlgorithm.ESTIMATED_LEVEL:
                return choose_by_estimated_level(
                    concepts,
                    people,
                    records=held.typical(people),
                    excess=self.excess,
                    published=self.constants == "published",
                    account=account,
                    random_state=self.random_state,
                )
            case RuleAlgorithm.MEDIAN | RuleAlgorithm.SLACK_MEDIAN:
                return choose_by_median(
                    cast("Thresholds", concepts),
                    people,
                    account=account,
                    slack=algorithm is RuleAlgorithm.SLACK_MEDIAN,
                )
            case _:
                assert_never(algorithm)

    def _by_duels(
        self,
        concepts: ConceptClass,
        people: People,
        situation: Situation,
        score: Duels | ClippedPairwise,
        account: Account,
    ) -> int:
        if not situation.ordered:
            return self._by_score(concepts, people, score, account)
        self._check_pieces(concepts, people.n_users)
        capped = people.capped(int(self.records), random_state=self.random_state)
        return self._by_score(concepts, capped, score, account)

    def _check_pieces(self, concepts: ConceptClass, n_users: int) -> None:
        """Refuse duels along a line with too many users, if their number is public."""
        both_ways = isinstance(concepts, Thresholds) and concepts.direction is Direction.EITHER
        pieces = n_users * int(self.records) * (2 if both_ways else 1) + 1
        if pieces > MAX_DUELLISTS:
            raise ParameterError(
                f"Expected at most {MAX_DUELLISTS} pieces for duels along a line, got up to "
                f"{pieces} from users x records. Use 'own_best' or 'median'."
            )


def _is_pairwise(asked: str | Score) -> bool:
    names = (RuleAlgorithm.DUELS.value, RuleAlgorithm.CLIPPED_PAIRWISE.value)
    return asked in names or isinstance(asked, Duels | ClippedPairwise)
