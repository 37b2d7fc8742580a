"""Descriptors: cut-offs, rules, parities, choices among candidates, and agreement learners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from quorate.app.catalogue.answers import NOT_ASKED, Answer, algorithm_sentence, figure
from quorate.app.catalogue.checks import CHOICE, ROUTE
from quorate.app.catalogue.descriptor import Descriptor, Example, Target, Wish
from quorate.app.catalogue.examples import bits, labelled, numbers
from quorate.app.catalogue.left_out import Weighing, choices_moved, error_rates_moved
from quorate.app.catalogue.options import number, one_of, whole
from quorate.exceptions import ParameterError

__all__ = ["DESCRIPTORS"]

Number = int | float

_RECORDS = ("quorate.mechanisms.search.rough_records:RecordRange", "NoneType")
_RULE = {"index_": ("int",), "error_": CHOICE, "algorithm_": ROUTE, "records_": _RECORDS}
_STATED: dict[str, Callable[[str], Any]] = {"error_level": number, "excess": number}


def _finish_rule(learner: Any) -> None:
    import numpy as np

    learner.concept_ = learner.concepts.concept(learner.index_)
    learner.classes_ = np.asarray(learner.classes)


def _finish_threshold(learner: Any) -> None:
    import numpy as np

    from quorate.learners.threshold import threshold_class

    concepts = threshold_class(learner.domain, step=learner.step, direction=learner.direction)
    learner.concept_ = concepts.concept(learner.index_)
    learner.threshold_ = concepts.cut_off(learner.index_)
    learner.classes_ = np.asarray(learner.classes)


def _rule_fits(learner: Any) -> bool:
    from quorate.data.tables import check_classes

    check_classes(learner.classes)
    return bool(learner.n_features_in_ == learner.concepts.n_features)


def _threshold_fits(learner: Any) -> bool:
    from quorate.data.tables import check_classes

    check_classes(learner.classes)
    return bool(learner.n_features_in_ == 1)


def _step(lower: Number, upper: Number) -> dict[str, Any]:
    """Return the distance of cut-offs: 1 between integers, otherwise 2^-32 of the range."""
    whole_ends = isinstance(lower, int) and isinstance(upper, int)
    return {} if whole_ends else {"step": (upper - lower) * 2.0**-32}


def _domain(wish: Wish) -> dict[str, Any]:
    (lower,), (upper,) = wish.ranges()
    return {"domain": (lower, upper)} | _step(lower, upper)


def _named(concept: Any, features: tuple[str, ...]) -> str:
    """Return a rule as a sentence about the columns."""
    from quorate.learners.concepts.numeric.thresholds import CutOff

    return str(replace(concept, name=features[0]) if isinstance(concept, CutOff) else concept)


def _said(estimator: Any) -> str:
    """Return the stated error of the choice, and a note that training error is not released."""
    said, error = str(estimator.error_), estimator.error_
    if error.stated:
        said = f"{said}. {error.covers}"
    return f"{said[0].upper()}{said[1:]} {NOT_ASKED}"


def _error_values(estimator: Any) -> dict[str, Any]:
    """Return the stated error as plain data; empty if none is stated."""
    error = estimator.error_
    if not error.stated:
        return {}
    return {"error": error.bound, "error_unit": error.unit, "confidence": error.confidence}


def _say_rule(estimator: Any, features: tuple[str, ...], labels: Any) -> Answer:
    sentence = _named(estimator.concept_, features)
    if labels is not None and [str(label) for label in labels] != ["0", "1"]:
        sentence += f" (0 means {labels[0]!r}, 1 means {labels[1]!r}.)"
    rows = [("rule", sentence)]
    if getattr(estimator, "records_", None) is not None:
        rows.append(("records of a typical user", str(estimator.records_)))
    return Answer(
        sentence=sentence,
        caption=f"Rule on {', '.join(features)}",
        header=("released", "value"),
        rows=tuple(rows),
        error=_said(estimator),
        algorithm=algorithm_sentence(estimator),
        values={
            "rule": sentence,
            "algorithm": estimator.algorithm_.name,
            "reason": estimator.algorithm_.reason,
            **_error_values(estimator),
        },
    )


def _say_threshold(estimator: Any, features: tuple[str, ...], labels: Any) -> Answer:
    said = _say_rule(estimator, features, labels)
    return replace(
        said,
        caption=f"Cut-off on {features[0]}",
        rows=(("cut-off", figure(estimator.threshold_)), *said.rows[1:]),
        values={"threshold": estimator.threshold_, **said.values},
    )


def _threshold_sizes(learner: Any, _: Wish) -> dict[str, Any]:
    from quorate.learners.threshold import threshold_class

    concepts = threshold_class(learner.domain, step=learner.step, direction=learner.direction)
    return {"domain": max(2, concepts.domain.points)}


def _concept_sizes(learner: Any, _: Wish) -> dict[str, Any]:
    return {"size": learner.concepts.size}


def _parity_sizes(learner: Any, wish: Wish) -> dict[str, Any]:
    if learner.inputs != "any":
        raise ParameterError("A plan is about any inputs; of fair coins a parity is found exactly.")
    return {"dimension": len(wish.features)}


def _over_names(kind: str) -> Callable[[Wish], Any]:
    def make(wish: Wish) -> Any:
        import quorate.learners.concepts

        return getattr(quorate.learners.concepts, kind)(len(wish.features), names=wish.features)

    return make


def _along_a_line(kind: str) -> Callable[[Wish], Any]:
    def make(wish: Wish) -> Any:
        import quorate.learners.concepts

        if len(wish.features) != 1:
            raise ParameterError(f"Expected one feature for {kind.lower()}.")
        (lower,), (upper,) = wish.ranges()
        if not (isinstance(lower, int) and isinstance(upper, int)):
            raise ParameterError(f"Expected whole numbers as bounds for {kind.lower()}.")
        points = upper - lower + 1
        return getattr(quorate.learners.concepts, kind)(points, lower=lower, name=wish.features[0])

    return make


def _thresholds(wish: Wish) -> Any:
    from quorate.learners.concepts import Thresholds

    if len(wish.features) != 1:
        raise ParameterError("Expected one feature for cut-offs.")
    (lower,), (upper,) = wish.ranges()
    return Thresholds(lower, upper, name=wish.features[0], **_step(lower, upper))


_RULES: dict[str, Callable[[Wish], Any]] = {
    "conjunctions": _over_names("Conjunctions"),
    "disjunctions": _over_names("Disjunctions"),
    "decision-lists": _over_names("DecisionLists"),
    "parities": _over_names("Parities"),
    "intervals": _along_a_line("Intervals"),
    "points": _along_a_line("PointFunctions"),
    "thresholds": _thresholds,
}
"""Classes of rules that the columns and their ranges describe."""

_RULE_WORDS = one_of(*_RULES)
_RULE_OPTIONS = {"concepts": _RULE_WORDS}
_RULE_ASKED = {"concepts": "thresholds"}


def _concepts(wish: Wish) -> dict[str, Any]:
    return {"concepts": _RULES[_RULE_WORDS(wish.options["concepts"])](wish)}


def _classes(wish: Wish) -> dict[str, Any]:
    del wish
    return {}


def _stable_fits(learner: Any) -> bool:
    from quorate.data.tables import check_classes

    check_classes(learner.classes)
    return bool(learner.n_features_in_ == learner._rule().n_features)


def _finish_stable(learner: Any) -> None:
    import numpy as np

    from quorate.learners.concepts import Constant

    learner.concept_ = Constant(0)
    if learner.index_ is not None:
        learner.concept_ = learner._rule().concept(learner.index_, learner.seed_)
    learner.classes_ = np.asarray(learner.classes)


def _parity_fits(learner: Any) -> bool:
    from quorate.data.tables import check_classes
    from quorate.learners.concepts import Constant

    check_classes(learner.classes)
    rule, columns = learner.concept_, learner.n_features_in_
    if isinstance(rule, Constant):
        return bool(rule.label == 0)
    return len(rule.names) == columns and set(rule.chosen) <= set(range(columns))


def _finish_classes(learner: Any) -> None:
    import numpy as np

    learner.classes_ = np.asarray(learner.classes)


def _say_minimum(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    found = float(estimator.min_error_)
    return Answer(
        sentence=f"The best rule on {', '.join(features)} has an error of about {found:.1%}.",
        caption="Error of the best rule",
        header=("released", "value"),
        rows=(("error of the best rule", figure(found)),),
        error=f"It is searched for to within {estimator.excess:g}. {estimator.error_.covers}",
        algorithm=algorithm_sentence(estimator),
        values={"min_error": found},
    )


def _say_choice(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    chosen = features[estimator.index_]
    return Answer(
        sentence=f"{chosen} has the smallest loss among the columns.",
        caption="The column with the smallest loss",
        header=("released", "value"),
        rows=(("chosen", chosen),),
        error=_said(estimator),
        algorithm=algorithm_sentence(estimator),
        values={"chosen": chosen, "index": estimator.index_, **_error_values(estimator)},
    )


def _loss_bounds(wish: Wish) -> dict[str, Any]:
    lower, upper = wish.ranges()
    return {"bounds": (min(lower), max(upper))}


def _choice_fits(selector: Any) -> bool:
    return selector.candidates is None and 0 <= selector.index_ < selector.n_features_in_


def _finish_choice(selector: Any) -> None:
    selector.candidate_ = selector.index_


def _thresholds_example(**parameters: Any) -> Example:
    from quorate.learners.concepts import Thresholds

    return labelled(1, concepts=Thresholds(0, 9), **parameters)


def _concise_example() -> Example:
    from quorate.learners.concepts import Thresholds

    few = {"epsilon": 40.0, "error": 0.9, "failure": 0.5}
    return labelled(1, classes_of_rules=[Thresholds(0, 9)], **few)


def _query_example() -> Example:
    from quorate.papers.queries.algorithms import ConjunctionQueries

    return bits(3, algorithm=ConjunctionQueries(3), epsilon=4.0)


DESCRIPTORS = (
    Descriptor(
        path="quorate.learners.threshold:ThresholdLearner",
        task="threshold",
        sentence="The cut-off on one feature that separates two classes best.",
        releases=_RULE,
        follows=("concept_", "threshold_", "classes_"),
        target=Target.LABEL,
        one_feature=True,
        most_classes=2,
        parameters=_domain,
        options=_STATED,
        fits=_threshold_fits,
        finish=_finish_threshold,
        answer=_say_threshold,
        weighing=Weighing.PEOPLE,
        moved_by=choices_moved,
        plans=("quorate.planning.tasks.threshold:ThresholdTask",),
        sizes=_threshold_sizes,
        example=lambda: labelled(1, domain=(0, 9)),
    ),
    Descriptor(
        path="quorate.learners.private_threshold:PrivateThreshold",
        without_task="ThresholdLearner(algorithm='median') is the same choice",
        sentence="A cut-off by the median of the cut-offs that users prefer.",
        releases=_RULE,
        follows=("concept_", "threshold_", "classes_"),
        target=Target.LABEL,
        one_feature=True,
        most_classes=2,
        fits=_threshold_fits,
        finish=_finish_threshold,
        example=lambda: labelled(1, domain=(0, 9)),
    ),
    Descriptor(
        path="quorate.learners.concept_learner:ConceptLearner",
        task="concept",
        sentence="The rule of a class with the fewest errors.",
        releases=_RULE,
        follows=("concept_", "classes_"),
        target=Target.LABEL,
        most_classes=2,
        parameters=_concepts,
        options=_STATED | _RULE_OPTIONS,
        asks=_RULE_ASKED,
        fits=_rule_fits,
        finish=_finish_rule,
        answer=_say_rule,
        weighing=Weighing.PEOPLE,
        moved_by=choices_moved,
        plans=("quorate.planning.tasks.concept:ConceptTask",),
        sizes=_concept_sizes,
        example=_thresholds_example,
    ),
    Descriptor(
        path="quorate.learners.concise_learner:ConciseLearner",
        without_task="its classes of increasing size are Python objects",
        sentence="A rule of the smallest class that fits well enough.",
        releases={
            "accepted_": ("bool",),
            "round_": ("int",),
            "error_": CHOICE,
            "algorithm_": ROUTE,
        },
        follows=("concept_", "classes_"),
        target=Target.LABEL,
        most_classes=2,
        example=_concise_example,
    ),
    Descriptor(
        path="quorate.learners.min_error:PrivateMinError",
        task="smallest-error",
        sentence="The error of the best rule of a class.",
        releases={
            "min_error_": ("float",),
            "records_": _RECORDS,
            "error_": CHOICE,
            "algorithm_": ROUTE,
        },
        target=Target.LABEL,
        most_classes=2,
        parameters=_concepts,
        options={"excess": number} | _RULE_OPTIONS,
        asks=_RULE_ASKED,
        fits=lambda search: _rule_fits(search) and 0.0 <= search.min_error_ <= 1.0,
        answer=_say_minimum,
        weighing=Weighing.PEOPLE,
        moved_by=error_rates_moved,
        plans=("quorate.planning.tasks.exact_rules:SmallestErrorTask",),
        sizes=_concept_sizes,
        example=_thresholds_example,
    ),
    Descriptor(
        path="quorate.learners.loss_selector:LossSelector",
        task="select",
        sentence="The candidate with the smallest loss, from one column of losses for each.",
        releases={
            "index_": ("int",),
            "records_": _RECORDS,
            "error_": CHOICE,
            "algorithm_": ROUTE,
        },
        follows=("candidate_",),
        parameters=_loss_bounds,
        fits=_choice_fits,
        finish=_finish_choice,
        answer=_say_choice,
        weighing=Weighing.PEOPLE,
        moved_by=choices_moved,
        plans=("quorate.planning.tasks.select:SelectTask",),
        sizes=lambda _, wish: {"size": len(wish.features)},
        example=lambda: numbers(3, bounds=(0.0, 9.0), records=4),
    ),
    Descriptor(
        path="quorate.learners.parity_learner:ParityLearner",
        task="parity",
        sentence="The parity of features that are 0 or 1.",
        releases={
            "concept_": (
                "quorate.learners.concepts.boolean.parities:Parity",
                "quorate.learners.concepts.base:Constant",
            ),
            "answered_": ("bool",),
            "error_": CHOICE,
            "algorithm_": ROUTE,
        },
        follows=("classes_",),
        target=Target.LABEL,
        most_classes=2,
        parameters=_classes,
        options={"inputs": one_of("uniform", "any"), "error": number, "failure": number},
        fits=_parity_fits,
        finish=_finish_classes,
        answer=_say_rule,
        weighing=Weighing.PEOPLE,
        moved_by=choices_moved,
        plans=("quorate.planning.tasks.exact_rules:ParityTask",),
        sizes=_parity_sizes,
        example=lambda: bits(3, epsilon=4.0),
    ),
    Descriptor(
        path="quorate.papers.stability.stable_learner:StableLearner",
        task="agreement",
        sentence="A rule on which most users agree.",
        releases={
            "index_": ("int", "NoneType"),
            "seed_": ("quorate.papers.stability.shared_seed:SharedSeed",),
            "agreement_": ("float", "NoneType"),
            "error_": CHOICE,
            "algorithm_": ROUTE,
        },
        follows=("concept_", "classes_"),
        target=Target.LABEL,
        most_classes=2,
        parameters=_concepts,
        options={
            "trust": one_of("central", "shuffle", "local"),
            "reports": one_of("hashed", "buckets", "published"),
            "sharpness": number,
            "seeds": whole,
        }
        | _RULE_OPTIONS,
        asks=_RULE_ASKED,
        fits=_stable_fits,
        finish=_finish_stable,
        answer=_say_rule,
        weighing=Weighing.PEOPLE,
        moved_by=choices_moved,
        plans=(
            "quorate.planning.tasks.agreement:AgreementTask",
            "quorate.planning.tasks.agreement:ShuffleAgreementTask",
            "quorate.planning.tasks.agreement:BucketAgreementTask",
            "quorate.planning.tasks.agreement:LocalAgreementTask",
        ),
        sizes=_concept_sizes,
        example=lambda: _thresholds_example(epsilon=4.0, random_state=0),
    ),
    Descriptor(
        path="quorate.papers.queries.query_learner:QueryLearner",
        without_task="its algorithm is a Python object",
        sentence="Anything that can be learned by statistical queries.",
        releases={
            "n_queries_": ("int",),
            "n_rounds_": ("int",),
            "weak_": ("tuple",),
            "error_": CHOICE,
            "algorithm_": ROUTE,
        },
        follows=("concept_", "classes_"),
        target=Target.LABEL,
        most_classes=2,
        example=_query_example,
    ),
)
