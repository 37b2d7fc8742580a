"""Descriptors: shares of categories, histograms, distribution functions, normal laws."""

from __future__ import annotations

from typing import Any

from quorate.app.catalogue.answers import Answer, algorithm_sentence, figure
from quorate.app.catalogue.checks import ROUTE, are_numbers, are_shares
from quorate.app.catalogue.descriptor import Descriptor, Example, Wish
from quorate.app.catalogue.examples import numbers
from quorate.app.catalogue.left_out import shares_moved
from quorate.app.catalogue.options import labels, number, whole
from quorate.app.catalogue.options import numbers as several

__all__ = ["DESCRIPTORS"]

_ERROR = ("quorate.distributions.released:DistributionError",)
_TEN = tuple(range(10))


def _say(
    estimator: Any, sentence: str, header: tuple[str, ...], table: list[tuple[Any, ...]]
) -> Answer:
    error = estimator.error_
    rows = tuple(
        tuple(figure(cell) if isinstance(cell, int | float) else str(cell) for cell in row)
        for row in table
    )
    return Answer(
        sentence=sentence,
        caption=sentence.rstrip("."),
        header=header,
        rows=rows,
        error=f"{str(error).capitalize()}. This covers privacy noise, not the sampling of people.",
        algorithm=algorithm_sentence(estimator),
        values={
            **{name: [row[place] for row in table] for place, name in enumerate(header)},
            "bound": float(error.bound),
            "confidence": float(error.confidence),
        },
    )


def _one_range(wish: Wish) -> dict[str, Any]:
    (lower,), (upper,) = wish.ranges()
    return {"bounds": (lower, upper)}


def _nothing(wish: Wish) -> dict[str, Any]:
    del wish
    return {}


def _cdf_fits(curve: Any) -> bool:
    size = len(curve.edges_)
    return size > 1 and are_numbers(curve.edges_, (size,)) and are_numbers(curve.cdf_, (size,))


def _say_cdf(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    levels = [place / 10 for place in range(1, 10)]
    table = [(q, float(estimator.quantile(q))) for q in levels]
    return _say(
        estimator,
        f"The distribution function of {features[0]} over people's records.",
        ("share below", features[0]),
        table,
    )


def _histogram_fits(histogram: Any) -> bool:
    bins = len(histogram.pmf_)
    return (
        are_shares(histogram.pmf_, bins)
        and are_numbers(histogram.edges_, (bins + 1,))
        and are_numbers(histogram.cdf_, (bins + 1,))
        and are_numbers(histogram.density_, (bins,))
    )


def _say_histogram(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    edges, shares = estimator.edges_.tolist(), estimator.pmf_.tolist()
    table = list(zip(edges[:-1], edges[1:], shares, strict=True))
    return _say(
        estimator,
        f"The distribution of people's records of {features[0]} over its range.",
        ("from", "to", "share"),
        table,
    )


def _discrete_fits(shares: Any) -> bool:
    return isinstance(shares.categories_, tuple) and are_numbers(
        shares.pmf_, (len(shares.categories_),)
    )


def _say_discrete(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    table = list(zip(map(str, estimator.categories_), estimator.pmf_.tolist(), strict=True))
    return _say(
        estimator,
        f"The shares of the categories of {features[0]} among people's records.",
        ("category", "share"),
        table,
    )


def _normal_fits(normal: Any) -> bool:
    d = normal.n_features_in_
    return are_numbers(normal.mean_, (d,)) and are_numbers(normal.covariance_, (d, d))


def _say_normal(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    deviations = [float(estimator.covariance_[j, j]) ** 0.5 for j in range(len(features))]
    table = list(zip(features, estimator.mean_.tolist(), deviations, strict=True))
    return _say(
        estimator,
        "The normal distribution of people's records.",
        ("feature", "mean", "standard deviation"),
        table,
    )


def _selector_example() -> Example:
    import numpy as np

    from quorate.distributions.hypotheses.families import DiscreteFamily

    family = DiscreteFamily(np.eye(10) * 0.9 + 0.01)
    return numbers(1, family=family)


DESCRIPTORS = (
    Descriptor(
        path="quorate.distributions.categories.discrete:DiscreteDistribution",
        task="shares",
        moved_by=shares_moved,
        sentence="The share of each public category, averaged over users.",
        releases={
            "categories_": ("tuple",),
            "pmf_": ("ndarray",),
            "other_": ("float",),
            "error_": _ERROR,
            "algorithm_": ROUTE,
        },
        one_feature=True,
        parameters=_nothing,
        options={"categories": labels},
        labels_option="categories",
        asks={"categories": "1,2,3"},
        fits=_discrete_fits,
        answer=_say_discrete,
        plans=("quorate.planning.tasks.distribution:SharesTask",),
        sizes=lambda shares, _: {"size": len(shares.categories_)},
        example=lambda: numbers(1, categories=_TEN),
    ),
    Descriptor(
        path="quorate.distributions.numeric.histogram:Histogram",
        task="histogram",
        moved_by=shares_moved,
        sentence="A histogram over a public range, averaged over users.",
        releases={
            "edges_": ("ndarray",),
            "pmf_": ("ndarray",),
            "density_": ("ndarray",),
            "cdf_": ("ndarray",),
            "error_": _ERROR,
            "algorithm_": ROUTE,
        },
        one_feature=True,
        parameters=_one_range,
        options={"bins": whole},
        fits=_histogram_fits,
        answer=_say_histogram,
        plans=("quorate.planning.tasks.distribution:HistogramTask",),
        sizes=lambda cells, _: {"size": cells.edges_.size - 1},
        example=lambda: numbers(1, bounds=(0.0, 9.0), bins=5),
    ),
    Descriptor(
        path="quorate.distributions.numeric.cdf:EmpiricalCDF",
        task="cdf",
        moved_by=shares_moved,
        sentence="The share of records below each number, averaged over users.",
        releases={
            "edges_": ("ndarray",),
            "cdf_": ("ndarray",),
            "error_": _ERROR,
            "algorithm_": ROUTE,
        },
        one_feature=True,
        parameters=_one_range,
        options={"cells": whole},
        fits=_cdf_fits,
        answer=_say_cdf,
        plans=("quorate.planning.tasks.distribution:CdfTask",),
        sizes=lambda curve, _: {"size": max(2, curve.edges_.size - 1)},
        example=lambda: numbers(1, bounds=(0.0, 9.0), cells=8),
    ),
    Descriptor(
        path="quorate.distributions.normal.gaussian:GaussianDistribution",
        task="normal",
        sentence="A normal distribution of the records of users.",
        releases={
            "mean_": ("ndarray",),
            "covariance_": ("ndarray",),
            "error_": _ERROR,
            "algorithm_": ROUTE,
        },
        parameters=lambda wish: {"bounds": wish.ranges()},
        options={"deviations": several, "error": number},
        asks={"deviations": "0.1,100"},
        fits=_normal_fits,
        answer=_say_normal,
        plans=("quorate.planning.tasks.distribution:NormalTask",),
        sizes=lambda normal, _: {"dimension": normal.n_features_in_},
        example=lambda: numbers(1, bounds=(0.0, 9.0), covariance=[[8.0]]),
    ),
    Descriptor(
        path="quorate.distributions.categories.product:ProductDistribution",
        without_task="its categories are a list for each column",
        sentence="The shares of the categories of each column, columns taken as independent.",
        releases={
            "categories_": ("tuple",),
            "pmfs_": ("tuple",),
            "error_": _ERROR,
            "algorithm_": ROUTE,
        },
        example=lambda: numbers(2, categories=[_TEN, _TEN]),
    ),
    Descriptor(
        path="quorate.distributions.hypotheses.selection:HypothesisSelector",
        without_task="its family of densities is a Python object",
        sentence="The member of a family of densities that is nearest to the records of users.",
        releases={"index_": ("int",), "algorithm_": ROUTE},
        example=_selector_example,
    ),
)
