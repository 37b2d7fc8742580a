"""Laws that hold for the price of every event; a new event joins by being listed.

The first law catches a real defect of a library in use (see ``tests/privacy/test_known_bugs.py``).
Each law is also run on broken accountants, which it must catch.
"""

import inspect
import itertools
import math

import mpmath
import pytest

from quorate.core import guarantees
from quorate.core.account import price
from quorate.core.guarantees import (
    Approximate,
    Composed,
    Event,
    Gaussian,
    Nothing,
    Pure,
    Relation,
    Repeated,
    Subsampled,
    compose_events,
)
from quorate.mechanisms.calibrate import calibrate

DELTA = 1e-5

EVENTS = {
    "nothing": Nothing(),
    "pure": Pure(0.3),
    "approximate": Approximate(0.2, 1e-7),
    "gaussian": Gaussian(6.0),
    "sampled gaussian": Subsampled(Gaussian(2.0), 0.1),
    "repeated": Repeated(Gaussian(9.0), 2),
    "composed": Composed((Pure(0.1), Gaussian(8.0))),
}

# From much to little noise, or from a large to a small loss.
LADDERS = {
    "pure": [Pure(x) for x in (0.5, 0.4, 0.3999, 0.01, 0.0)],
    "approximate": [Approximate(x, 1e-7) for x in (0.5, 0.4, 0.3999, 0.01)],
    "smaller delta": [Approximate(0.2, x) for x in (9e-7, 5e-7, 1e-9, 0.0)],
    "gaussian": [Gaussian(x) for x in (1.0, 2.0, 2.0001, 2.1, 50.0)],
    "sampled gaussian": [Subsampled(Gaussian(x), 0.1) for x in (1.0, 2.0, 2.0001, 2.1, 50.0)],
    "rate": [Subsampled(Gaussian(1.0), x) for x in (1.0, 0.9, 0.1, 0.0999, 1e-6, 0.0)],
    "repeated": [Repeated(Pure(0.1), x) for x in (9, 8, 2, 1, 0)],
    "composed": [Composed((Pure(0.2), Gaussian(x))) for x in (1.0, 2.0, 2.0001, 2.1, 50.0)],
}

every_event = pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
every_relation = pytest.mark.parametrize("relation", Relation, ids=lambda r: r.name.lower())


def law_n_times_is_n_events(cost, event, relation):
    for n in (1, 2, 5):
        written_out = Composed((event,) * n)
        assert cost(Repeated(event, n), delta=DELTA, relation=relation) == cost(
            written_out, delta=DELTA, relation=relation
        )


def law_twice_costs_more(cost, event, relation):
    once = cost(event, delta=DELTA, relation=relation)
    twice = cost(Repeated(event, 2), delta=DELTA, relation=relation)
    assert once < twice or once == twice == 0.0


def law_order_is_irrelevant(cost, event, relation):
    parts = (event, Pure(0.05), Gaussian(7.0))
    costs = {
        cost(Composed(order), delta=DELTA, relation=relation)
        for order in itertools.permutations(parts)
    }
    assert len(costs) == 1


def law_nesting_is_flattening(cost, event, relation):
    flat = Composed((event, event, event, Pure(0.05)))
    nested = Composed(
        (
            Composed((event, Nothing())),
            Repeated(compose_events([event]), 2),
            Composed((Pure(0.05),)),
        )
    )
    assert cost(flat, delta=DELTA, relation=relation) == cost(
        nested, delta=DELTA, relation=relation
    )


def law_less_delta_costs_more(cost, event, relation):
    costs = [cost(event, delta=delta, relation=relation) for delta in (1e-3, 1e-4, 1e-5, 0.0)]
    assert costs == sorted(costs)


def law_the_truth_is_kept(cost, event, relation):
    epsilon = cost(event, delta=DELTA, relation=relation)
    if epsilon < math.inf:
        assert true_delta(event, relation, epsilon) <= DELTA


LAWS = [
    law_n_times_is_n_events,
    law_twice_costs_more,
    law_order_is_irrelevant,
    law_nesting_is_flattening,
    law_less_delta_costs_more,
    law_the_truth_is_kept,
]
every_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__.removeprefix("law_"))


def gaussian_delta(t, mu):
    return mpmath.ncdf(mu / 2 - t / mu) - mpmath.exp(t) * mpmath.ncdf(-mu / 2 - t / mu)


def response_delta(t, epsilon, delta=0.0):
    likely = (1 - delta) / (1 + mpmath.exp(-epsilon))
    return (
        delta
        + likely * max(0, 1 - mpmath.exp(t - epsilon))
        + ((1 - delta - likely) * max(0, 1 - mpmath.exp(t + epsilon)))
    )


def mixture_delta(t, tail, shift, rate, relation):
    """A test of the form 'the output exceeds c' is the best one; try every c on a fine grid."""
    alpha = mpmath.exp(t)
    gains = [mpmath.mpf(0)]
    for step in range(-60, 240):
        c = mpmath.mpf(step) / 20
        present, absent, opposite = tail(c - shift), tail(c), tail(c + shift)
        mixed = (1 - rate) * absent + rate * present
        if relation is Relation.REPLACE:
            gains.append(mixed - alpha * ((1 - rate) * absent + rate * opposite))
        else:
            gains.append(mixed - alpha * absent)
            added = (1 - rate) * (1 - absent) + rate * (1 - present)
            gains.append(1 - absent - alpha * added)
    return max(gains)


def true_delta(event, relation, epsilon):
    """The oracle: closed forms in thirty digits, none of them ours."""
    with mpmath.workdps(30):
        t = mpmath.mpf(epsilon)
        match event:
            case Nothing():
                return 0
            case Pure(epsilon=e):
                return response_delta(t, mpmath.mpf(e))
            case Approximate(epsilon=e, delta=delta):
                return response_delta(t, mpmath.mpf(e), delta)
            case Gaussian(noise_multiplier=z):
                return gaussian_delta(t, 1 / mpmath.mpf(z))
            case Repeated(event=Gaussian(noise_multiplier=z), count=n):
                return gaussian_delta(t, mpmath.sqrt(n) / z)
            case Composed(events=(Pure(epsilon=e), Gaussian(noise_multiplier=z))):
                likely = 1 / (1 + mpmath.exp(-mpmath.mpf(e)))
                up, down = (gaussian_delta(t - sign * e, 1 / mpmath.mpf(z)) for sign in (1, -1))
                return likely * up + (1 - likely) * down
            case Subsampled(event=Gaussian(noise_multiplier=z), rate=q):
                return mixture_delta(t, lambda c: mpmath.ncdf(-c), 1 / mpmath.mpf(z), q, relation)
    raise AssertionError(f"no oracle for {event!r}")


@every_relation
@every_event
@every_law
def test_our_price_obeys(law, event, relation):
    law(price, event, relation)


@every_relation
@pytest.mark.parametrize("ladder", LADDERS.values(), ids=LADDERS)
@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_more_noise_never_costs_more(ladder, delta, relation):
    costs = [price(event, delta=delta, relation=relation) for event in ladder]
    assert all(math.isnan(cost) is False for cost in costs)
    for more, less in itertools.pairwise(costs):
        assert less <= more * (1 + 1e-9)


@every_relation
@pytest.mark.parametrize(
    "make_event",
    [
        Gaussian,
        lambda z: Pure(1 / z),
        lambda z: Approximate(1 / z, 1e-7),
        lambda z: Subsampled(Gaussian(z), 0.2),
        lambda z: Repeated(Pure(1 / z), 3),
        lambda z: Composed((Pure(0.1), Gaussian(z))),
    ],
)
def test_calibration_inverts_the_price(make_event, relation):
    epsilon = price(make_event(4.0), delta=DELTA, relation=relation)
    found = calibrate(
        make_event,
        epsilon=epsilon,
        delta=DELTA,
        relation=relation,
        lower=3.5,
        upper=4.5,
        tolerance=1e-3,
    )
    assert found == pytest.approx(4.0, rel=2e-3)
    assert price(make_event(found), delta=DELTA, relation=relation) <= epsilon


@every_event
def test_a_price_is_never_nan_or_negative(event):
    for delta in (0.0, 1e-15, 1e-9, 0.5):
        assert price(event, delta=delta) >= 0


def test_every_event_type_is_listed():
    defined = {
        kind
        for _, kind in inspect.getmembers(guarantees, inspect.isclass)
        if issubclass(kind, Event) and kind is not Event
    }
    assert defined == {type(event) for event in EVENTS.values()}


def ignores_counts(event, *, delta, relation):
    """The broken twin of the defect in dp_accounting: a repetition is priced once."""
    return price(
        event.event if isinstance(event, Repeated) else event, delta=delta, relation=relation
    )


def ignores_inner_counts(event, *, delta, relation):
    """The same inside a chain."""
    if isinstance(event, Composed):
        parts = tuple(p.event if isinstance(p, Repeated) else p for p in event.events)
        event = Composed(parts)
    return price(event, delta=delta, relation=relation)


def halves(event, *, delta, relation):
    return price(event, delta=delta, relation=relation) / 2


def forgets_the_last(event, *, delta, relation):
    if isinstance(event, Composed) and len(event.events) > 1:
        event = Composed(event.events[:-1])
    return price(event, delta=delta, relation=relation)


def prices_adding_as_replacing(event, *, delta, relation):
    return price(event, delta=delta, relation=Relation.ADD_REMOVE)


def spends_delta_backwards(event, *, delta, relation):
    return price(event, delta=1e-3 - delta / 10, relation=relation)


@pytest.mark.parametrize(
    ("twin", "law", "event"),
    [
        (ignores_counts, law_n_times_is_n_events, "pure"),
        (ignores_counts, law_n_times_is_n_events, "sampled gaussian"),
        (ignores_counts, law_twice_costs_more, "approximate"),
        (ignores_counts, law_the_truth_is_kept, "repeated"),
        (ignores_inner_counts, law_nesting_is_flattening, "pure"),
        (halves, law_the_truth_is_kept, "pure"),
        (halves, law_the_truth_is_kept, "gaussian"),
        (halves, law_the_truth_is_kept, "sampled gaussian"),
        (halves, law_the_truth_is_kept, "composed"),
        (forgets_the_last, law_order_is_irrelevant, "approximate"),
        (prices_adding_as_replacing, law_the_truth_is_kept, "sampled gaussian"),
        (spends_delta_backwards, law_less_delta_costs_more, "gaussian"),
    ],
)
def test_a_broken_accountant_is_caught(twin, law, event):
    law(price, EVENTS[event], Relation.REPLACE)
    with pytest.raises(AssertionError):
        law(twin, EVENTS[event], Relation.REPLACE)
