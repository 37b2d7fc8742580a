"""Descriptors: means, medians, quantiles, spreads and scales of numbers, and adaptive queries."""

from __future__ import annotations

import math
from typing import Any

from quorate.app.catalogue.answers import Answer, algorithm_sentence, figure
from quorate.app.catalogue.checks import ROUTE, are_numbers
from quorate.app.catalogue.descriptor import Descriptor, Wish
from quorate.app.catalogue.examples import numbers
from quorate.app.catalogue.left_out import Weighing, means_moved, ranks_moved, second_moments_moved
from quorate.app.catalogue.options import number, one_of
from quorate.app.catalogue.options import numbers as several

__all__ = ["DESCRIPTORS"]

_MEAN_ERROR = ("quorate.means.mean_error:MeanError",)
_QUANTILE_ERROR = ("quorate.means.median:QuantileError",)
_REDUCTIONS = one_of("median", "mean", "middle half")


def _bounds(wish: Wish) -> dict[str, Any]:
    return {"bounds": wish.bounds()}


def _mean_fits(mean: Any) -> bool:
    return are_numbers(mean.mean_, (len(mean.columns_),))


def _say_mean(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    error = estimator.error_
    pairs = list(zip(features, map(float, estimator.mean_), strict=True))
    return Answer(
        sentence="The mean over users of each user's mean record.",
        caption="Mean over users of each user's mean",
        header=("feature", "mean"),
        rows=tuple((name, figure(value)) for name, value in pairs),
        error=(
            f"At most {figure(error.bound)} with {error.confidence:.0%} confidence, typically "
            f"{figure(error.standard_error)} (Euclidean distance over all features). This covers "
            "privacy noise and clipping, not the sampling of people."
        ),
        algorithm=algorithm_sentence(estimator),
        values={
            "mean": dict(pairs),
            "standard_error": float(error.standard_error),
            "bound": float(error.bound),
            "confidence": float(error.confidence),
        },
    )


def _mean_sizes(estimator: Any, wish: Wish) -> dict[str, Any]:
    dimension, bound = len(wish.coding.names), wish.half_width
    spread = estimator.algorithm_.spread
    # Users who fill the range evenly, unless the fit found out how far they are apart.
    deviation = bound / math.sqrt(3) if not spread else spread / math.sqrt(dimension)
    # That is how far people's means are apart; half of how much records vary lies between people.
    scale = deviation / math.sqrt(0.5 + 0.5 / (wish.records or 1))
    return {"dimension": dimension, "bounds": bound, "scale": scale, "between": 0.5}


def _in_deviations(wish: Wish, smallest: float) -> dict[str, Any]:
    """Return the number of features, and half the widest range by the smallest deviation."""
    bounds = max(1.0, wish.half_width / smallest) if smallest > 0 else 1e6
    return {"dimension": len(wish.coding.names), "bounds": min(bounds, 1e6)}


def _scaler_sizes(scaler: Any, wish: Wish) -> dict[str, Any]:
    return _in_deviations(wish, float(scaler.scale_.min()))


def _covariance_sizes(spread: Any, wish: Wish) -> dict[str, Any]:
    return _in_deviations(wish, math.sqrt(max(0.0, float(spread.variance_.min()))))


def _quantile_sizes(found: Any, wish: Wish) -> dict[str, Any]:
    return _median_sizes(found, wish) | {"size": len(found.quantiles_)}


def _quantiles_fit(quantiles: Any) -> bool:
    values = quantiles.quantiles_
    return len(values) > 0 and are_numbers(values, (len(values), len(quantiles.columns_)))


def _finish_median(median: Any) -> None:
    median.median_ = median.quantiles_[0]


def _rank_error(error: Any) -> str:
    return (
        f"For each feature the number of users on either side of the answer exceeds that of the "
        f"quantile by at most {figure(error.rank)}, with {error.confidence:.0%} confidence."
    )


def _say_median(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    error = estimator.error_
    pairs = list(zip(features, map(float, estimator.median_), strict=True))
    return Answer(
        sentence="The median over users: half of them are on either side.",
        caption=f"Median over users of each user's {estimator.each_user}",
        header=("feature", "median"),
        rows=tuple((name, figure(value)) for name, value in pairs),
        error=_rank_error(error),
        algorithm=algorithm_sentence(estimator),
        values={
            "median": dict(pairs),
            "rank_error": float(error.rank),
            "confidence": float(error.confidence),
        },
    )


def _median_sizes(_: Any, wish: Wish) -> dict[str, Any]:
    bound = wish.half_width
    return {"dimension": len(wish.coding.names), "bounds": bound, "scale": bound / math.sqrt(3)}


def _say_quantiles(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    levels = estimator._checked_quantiles()
    table = dict(zip(levels, estimator.quantiles_.tolist(), strict=True))
    return Answer(
        sentence="Quantiles over users: this share of them is below.",
        caption=f"Quantiles over users of each user's {estimator.each_user}",
        header=("quantile", *features),
        rows=tuple((f"{q:g}", *map(figure, values)) for q, values in table.items()),
        error=_rank_error(estimator.error_),
        algorithm=algorithm_sentence(estimator),
        values={
            "quantiles": {
                name: {f"{q:g}": values[place] for q, values in table.items()}
                for place, name in enumerate(features)
            },
            "rank_error": float(estimator.error_.rank),
            "confidence": float(estimator.error_.confidence),
        },
    )


def _scaler_fits(scaler: Any) -> bool:
    shape = (len(scaler.columns_),)
    fits = are_numbers(scaler.centre_, shape) and are_numbers(scaler.scale_, shape)
    return fits and bool((scaler.scale_ > 0).all())


def _say_scaler(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    pairs = list(zip(estimator.centre_.tolist(), estimator.scale_.tolist(), strict=True))
    error = estimator.error_
    if hasattr(error, "standard_error"):
        said = f"At most {figure(error.bound)} with {error.confidence:.0%} confidence"
        stated = f"{said} for the centre; none is stated for the scale."
    else:
        stated = f"{_rank_error(error)} None is stated for the scale."
    return Answer(
        sentence="A centre and a scale of each feature, for standardising rows.",
        caption="Centre and scale of each feature",
        header=("feature", "centre", "scale"),
        rows=tuple((n, figure(c), figure(s)) for n, (c, s) in zip(features, pairs, strict=True)),
        error=stated,
        algorithm=algorithm_sentence(estimator),
        values={
            "centre": dict(zip(features, estimator.centre_.tolist(), strict=True)),
            "scale": dict(zip(features, estimator.scale_.tolist(), strict=True)),
        },
    )


def _covariance_fits(spread: Any) -> bool:
    d = len(spread.columns_)
    return (
        are_numbers(spread.covariance_, (d, d))
        and are_numbers(spread.variance_, (d,))
        and are_numbers(spread.mean_, (d,))
    )


def _variation_fits(variation: Any) -> bool:
    shares = 0 <= variation.share_ <= 1 and 0 <= variation.between_ <= 1
    return shares and math.isfinite(variation.records_)


def _say_variation(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    error = estimator.error_
    found = (
        ("share of the variance of user means between users", estimator.share_, error.share),
        ("share of the variance of records between users", estimator.between_, error.between),
        ("records per user (harmonic mean)", estimator.records_, error.records),
    )
    return Answer(
        sentence="How much users differ from each other, and how many records they have.",
        caption="Variation between users",
        header=("figure", "value", "from", "to"),
        rows=tuple(
            (name, figure(value), figure(low), figure(high)) for name, value, (low, high) in found
        ),
        error=f"Each range holds with a probability of {error.confidence:.0%}.",
        algorithm=algorithm_sentence(estimator),
        values={
            "share": estimator.share_,
            "between": estimator.between_,
            "records": estimator.records_,
        },
    )


def _say_covariance(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    error, matrix = estimator.error_, estimator.covariance_.tolist()
    return Answer(
        sentence="The covariance of the features over users.",
        caption="Covariance over users",
        header=("feature", *features),
        rows=tuple((n, *map(figure, row)) for n, row in zip(features, matrix, strict=True)),
        error=(
            f"The second moments are off by at most {figure(error.bound)} with "
            f"{error.confidence:.0%} confidence. This covers privacy noise and clipping, not the "
            "sampling of people."
        ),
        algorithm=algorithm_sentence(estimator),
        values={
            "mean": dict(zip(features, estimator.mean_.tolist(), strict=True)),
            "covariance": {
                name: dict(zip(features, row, strict=True))
                for name, row in zip(features, matrix, strict=True)
            },
            "bound": float(error.bound),
            "confidence": float(error.confidence),
        },
    )


DESCRIPTORS = (
    Descriptor(
        path="quorate.means.user_mean:UserMean",
        task="mean",
        sentence="The mean over users of each user's mean record.",
        releases={"mean_": ("ndarray",), "error_": _MEAN_ERROR, "algorithm_": ROUTE},
        parameters=_bounds,
        options={"radius": number, "robust": number},
        fits=_mean_fits,
        answer=_say_mean,
        moved_by=means_moved,
        plans=("quorate.planning.tasks.mean:MeanTask",),
        sizes=_mean_sizes,
        example=lambda: numbers(2, bounds=(0.0, 9.0), delta=1e-6),
    ),
    Descriptor(
        path="quorate.means.median:PrivateMedian",
        task="median",
        sentence="The median over users of one value per user.",
        releases={"quantiles_": ("ndarray",), "error_": _QUANTILE_ERROR, "algorithm_": ROUTE},
        follows=("median_",),
        parameters=_bounds,
        options={"resolution": number, "each_user": _REDUCTIONS},
        fits=_quantiles_fit,
        finish=_finish_median,
        answer=_say_median,
        weighing=Weighing.PEOPLE,
        moved_by=ranks_moved,
        plans=("quorate.planning.tasks.median:MedianTask",),
        sizes=_median_sizes,
        example=lambda: numbers(1, bounds=(0.0, 9.0)),
    ),
    Descriptor(
        path="quorate.means.median:UserQuantiles",
        task="quantiles",
        sentence="Quantiles over users of one value per user.",
        releases={"quantiles_": ("ndarray",), "error_": _QUANTILE_ERROR, "algorithm_": ROUTE},
        parameters=_bounds,
        options={"quantiles": several, "resolution": number, "each_user": _REDUCTIONS},
        fits=_quantiles_fit,
        answer=_say_quantiles,
        weighing=Weighing.PEOPLE,
        moved_by=ranks_moved,
        plans=("quorate.planning.tasks.quantiles:QuantilesTask",),
        sizes=_quantile_sizes,
        example=lambda: numbers(1, bounds=(0.0, 9.0)),
    ),
    Descriptor(
        path="quorate.means.scaler:UserScaler",
        task="scale",
        sentence="A centre and a scale of each feature, for standardising rows.",
        releases={
            "centre_": ("ndarray",),
            "scale_": ("ndarray",),
            "error_": (*_MEAN_ERROR, *_QUANTILE_ERROR),
            "algorithm_": ROUTE,
        },
        parameters=_bounds,
        fits=_scaler_fits,
        answer=_say_scaler,
        plans=("quorate.planning.tasks.spread:ScaleTask",),
        sizes=_scaler_sizes,
        example=lambda: numbers(2, bounds=(0.0, 9.0), delta=1e-6),
    ),
    Descriptor(
        path="quorate.means.covariance:UserCovariance",
        task="covariance",
        sentence="The covariance of the features over users.",
        releases={
            "covariance_": ("ndarray",),
            "variance_": ("ndarray",),
            "mean_": ("ndarray",),
            "error_": _MEAN_ERROR,
            "algorithm_": ROUTE,
        },
        parameters=_bounds,
        options={"shape": one_of("full", "diagonal")},
        fits=_covariance_fits,
        answer=_say_covariance,
        moved_by=second_moments_moved,
        plans=("quorate.planning.tasks.spread:CovarianceTask",),
        sizes=_covariance_sizes,
        example=lambda: numbers(2, bounds=(0.0, 9.0)),
    ),
    Descriptor(
        path="quorate.means.variation:UserVariation",
        task="variation",
        sentence="How much users differ from each other, and how many records they have.",
        releases={
            "share_": ("float",),
            "between_": ("float",),
            "records_": ("float",),
            "error_": ("quorate.means.variation:VariationError",),
            "algorithm_": ROUTE,
        },
        parameters=_bounds,
        fits=_variation_fits,
        answer=_say_variation,
        plans=("quorate.planning.tasks.spread:VariationTask",),
        sizes=lambda found, _: {"dimension": found.n_features_in_},
        example=lambda: numbers(2, bounds=(0.0, 9.0)),
    ),
    Descriptor(
        path="quorate.means.queries:UserQueries",
        without_task="its questions are Python functions",
        sentence="Private means of bounded functions of each user's records.",
        releases={"algorithm_": ROUTE},
        example=lambda: numbers(2, bounds=(0.0, 9.0)),
    ),
)
