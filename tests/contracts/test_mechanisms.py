"""Promises that every mechanism keeps; a new one joins by being listed, and must be listed."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import math
import pkgutil
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import quorate
from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.bounds.blocks import Blocks
from quorate.core.bounds.grid import Ball, Box, Grid, Interval
from quorate.core.bounds.simplex import Simplex
from quorate.core.guarantees import Approximate, Event, Guarantee, Numerics, Relation, Trust
from quorate.core.moves import Moves
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.noise.truncated_laplace import TruncatedLaplace
from quorate.exceptions import ParameterError
from quorate.mechanisms.balanced import BalancedSum
from quorate.mechanisms.blocks import BlockSum
from quorate.mechanisms.choices.choose import ChooseBest
from quorate.mechanisms.choices.noisy_rank import NoisyRank
from quorate.mechanisms.choices.ordered import ChooseOrdered
from quorate.mechanisms.choices.quantiles import FloatQuantile, PrivateQuantile
from quorate.mechanisms.choices.round_quantile import RoundQuantile
from quorate.mechanisms.choices.set_union import SetUnion
from quorate.mechanisms.choices.stable_choice import StableChoice, StableHistogram
from quorate.mechanisms.choices.universe import ChooseKey
from quorate.mechanisms.laplace import CubeSum, LaplaceSum
from quorate.mechanisms.linear_equations import pack_bits
from quorate.mechanisms.means.pair_quantile import PairQuantile
from quorate.mechanisms.means.private_range import PrivateRange
from quorate.mechanisms.means.rotation import Rotation
from quorate.mechanisms.means.winsorized import RotatedWinsorizedMean, WinsorizedMean
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.mechanisms.noisy_numbers import NoisyNumbers
from quorate.mechanisms.noisy_tally import NoisyTally
from quorate.mechanisms.parity import AmplifiedParity, SolveParity
from quorate.mechanisms.search.private_compare import PrivateCompare
from quorate.mechanisms.search.random_restarts import RandomRestarts
from quorate.mechanisms.search.rough_records import RoughRecords
from quorate.mechanisms.sums import GaussianSum, NoisySearch
from quorate.mechanisms.wrappers.mixture_release import Mixture, MixtureRelease
from quorate.mechanisms.wrappers.stable_release import Base, BaseKind, StableRelease
from quorate.mechanisms.wrappers.subsampled import SubsampledMechanism
from sealing import compared, holding, release_by_hand

SOURCE = Path(quorate.__file__).parent
SECTIONS = ["Privacy", "Utility", "Complexity", "Parameters", "References", "Examples"]
PRIVACY_FIELDS = ["guarantee", "neighbours", "trust", "public", "numerics", "proof"]

LENGTHS, LOSSES = np.array([5, 1, 94], dtype=np.uint64), np.array([3, 0, 4])
EQUATIONS, LABELS = pack_bits(np.eye(3, dtype=bool)), np.array([True, False, True])
LINE = Grid(Interval(-1.0, 1.0), step=2.0**-10)
PLANE = Grid(Ball(1.0, dimension=2), step=2.0**-10)


@dataclasses.dataclass(frozen=True)
class Listed:
    """A mechanism, how to build it with changed parameters, and one release of it."""

    kind: type
    parameters: dict
    release: object
    bound: object = staticmethod(lambda mechanism, beta: mechanism.error_bound(beta))
    # Whether what is promised is what the event costs, or an upper bound of it.
    tight: bool = True

    def make(self, **changes):
        return self.kind(**(self.parameters | changes))

    @property
    def under_each_relation(self):
        """The mechanism under each relation that it has a guarantee for."""
        if "relation" not in {each.name for each in dataclasses.fields(self.kind)}:
            return [self.make()]
        return [self.make(relation=relation) for relation in Relation]

    @property
    def budget(self):
        """Name of the parameter that sets the noise."""
        return "epsilon" if "epsilon" in self.parameters else "noise_multiplier"


LISTED = [
    Listed(
        LaplaceSum,
        {"grid": LINE, "epsilon": 1.0},
        lambda m: m.release_values(np.array([0.2, np.nan, 5.0])),
    ),
    Listed(
        BalancedSum,
        {"grid": Grid(Simplex(2), step=2.0**-10), "epsilon": 1.0},
        lambda m: m.release_values(np.array([[0.2, 0.1], [np.inf, 7.0]])),
    ),
    Listed(
        CubeSum,
        {"grid": Grid(Box([-1.0, 0.0], [1.0, 4.0]), step=2.0**-10), "epsilon": 1.0},
        lambda m: m.release_values(np.array([[0.2, 0.1], [np.inf, 7.0]]), count=2),
    ),
    Listed(
        GaussianSum,
        {"grid": PLANE, "noise_multiplier": 3.0, "delta": 1e-6},
        lambda m: m.release_values(np.array([[0.2, 0.1], [np.inf, 7.0]])),
    ),
    Listed(
        BlockSum,
        {
            "grid": Grid(Blocks((Ball(2.0, dimension=2, norm=1),) * 2), step=2.0**-10),
            "epsilon": 1.0,
        },
        lambda m: m.release_values(np.array([[0.2, 0.1, 5.0, 1.0], [np.inf, 7.0, 0.0, 1e308]])),
    ),
    Listed(
        NoisyTally,
        {"size": 3, "epsilon": 1.0},
        lambda m: m.release_values(np.array([1, 0, 1, 7])),
    ),
    Listed(
        NoisyNumbers,
        {"size": 2, "moves": Moves.of_counts(2), "noise_multiplier": 3.0, "delta": 1e-6},
        lambda m: release_by_hand(m, np.array([3, 90])),
    ),
    Listed(NoisyCount, {"epsilon": 1.0}, lambda m: m.release_values(np.array([1, 0, 1]))),
    Listed(
        ChooseBest,
        {"candidates": 3, "epsilon": 1.0},
        lambda m: release_by_hand(m, np.array([3, 1, 2])),
    ),
    Listed(
        ChooseOrdered,
        {"epsilon": 1.0},
        lambda m: release_by_hand(m, LENGTHS, LOSSES),
        lambda m, beta: m.error_bound(100, beta),
    ),
    Listed(
        PrivateQuantile,
        {"domain": (0, 99), "epsilon": 1.0},
        lambda m: release_by_hand(m, np.array([3, 50, 1000])),
    ),
    Listed(
        PairQuantile,
        {"domain": (0, 99), "epsilon": 1.0},
        lambda m: release_by_hand(m, np.array([3, 50, 1000])),
    ),
    Listed(
        FloatQuantile,
        {"lower": 0.0, "upper": 1.0, "resolution": 0.01, "epsilon": 1.0},
        lambda m: release_by_hand(m, np.array([0.1, np.nan, 4.0])),
    ),
    Listed(
        RoundQuantile,
        {"lower": 0.0, "upper": 1.0, "epsilon": 1.0},
        lambda m: release_by_hand(m, m.encode(np.array([0.1, np.nan, 4.0]))),
    ),
    Listed(
        NoisyRank,
        {"quantile": Fraction(1, 2), "epsilon": 1.0},
        lambda m: release_by_hand(m, np.array([3, 50]), np.array([4, 50]), point=7),
        lambda m, beta: m.upper_bound(0, beta),
    ),
    Listed(ChooseKey, {"size": 9, "epsilon": 1.0}, lambda m: release_by_hand(m, {3: 2, 4: 1})),
    Listed(
        StableHistogram,
        {"epsilon": 1.0, "delta": 1e-3},
        lambda m: list(release_by_hand(m, {3: 20, 4: 1}).items()),
    ),
    Listed(
        StableChoice,
        {"epsilon": 1.0, "delta": 1e-3},
        lambda m: str(release_by_hand(m, {3: 20, 4: 21})),
    ),
    Listed(
        SetUnion,
        {"noise_multiplier": 3.0, "failure": 1e-3, "delta": 2e-3},
        lambda m: str(m.release_keys([["tea"]] * 20 + [["mate", None]])),
    ),
    Listed(
        SolveParity,
        {"features": 3, "epsilon": 1.0},
        lambda m: str(m.release(EQUATIONS, LABELS)),
        lambda m, beta: m.error_bound(beta, rows=1000),
    ),
    Listed(
        AmplifiedParity,
        {"features": 3, "epsilon": 1.0, "runs": 2},
        lambda m: str(m.release(EQUATIONS, LABELS, parts=np.array([0, 1, 2]))),
    ),
    Listed(
        NoisySearch,
        {
            "thresholds": 2.0 ** np.arange(8.0),
            "target": 10.0,
            "noise_multiplier": 3.0,
            "delta": 1e-6,
        },
        lambda m: release_by_hand(m, np.arange(20.0)),
    ),
    Listed(
        PrivateCompare,
        {"share": 0.5, "epsilon": 1.0},
        lambda m: compared(m, 5, 10),
    ),
    Listed(
        RoughRecords,
        {"cuts": (2, 4, 8), "epsilon": 1.0},
        lambda m: str(m.release(holding([1, 3, 5, 9], m.relation))),
    ),
    Listed(
        PrivateRange,
        {"lower": -9.0, "upper": 9.0, "radius": 1.0, "epsilon": 1.0},
        lambda m: release_by_hand(m, np.array([2.0, np.nan, 700.0])),
    ),
    Listed(
        WinsorizedMean,
        {"lower": -9.0, "upper": 9.0, "radius": 1.0, "epsilon": 1.0, "n_users": 3},
        lambda m: release_by_hand(m, np.array([2.0, np.nan, 700.0])),
    ),
    Listed(
        RotatedWinsorizedMean,
        {
            "bound": 9.0,
            "radius": 1.0,
            "epsilon": 1.0,
            "delta": 1e-6,
            "n_users": 3,
            "dimension": 2,
            "constants": "published",
        },
        lambda m: release_by_hand(m, np.ones((3, 2)), rotation=Rotation.random(2, random_state=0)),
        tight=False,
    ),
    Listed(
        RandomRestarts,
        {
            "lower": 0.0,
            "upper": 1.0,
            "epsilon": 1.0,
            "n_users": 3,
            "records": 9,
            "failure": 0.9,
        },
        lambda m: release_by_hand(m, np.array([[0.1, 0.9], [0.2, np.nan], [0.0, 1e9]])),
        lambda m, beta: m.error_bound(2, beta),
    ),
]
# Behind a certificate or on a sample: one relation, and the error of whatever they run.
CERTAIN = Mixture((1, 1), ((1, 2), (2, 1)))
CONVERSIONS = [
    Listed(
        StableRelease,
        {"base": Base(BaseKind.EXPONENTIAL, scale=3.0), "epsilon": 1.0, "delta": 1e-3},
        lambda m: m.release(8, np.array([3, 1, 2])),
    ),
    Listed(
        MixtureRelease,
        {
            "limit": TruncatedLaplace(1.0, reach=1),
            "event": Approximate(3.0, 0.6),
            "outputs": 2,
        },
        lambda m: m.release([None, CERTAIN, CERTAIN]),
    ),
    Listed(
        SubsampledMechanism,
        {
            "run": lambda rows, account: int(account.laplace(rows.tally(101)[50], scale=1.0)[0]),
            "inner": Approximate(1.0, 1e-3),
            "sample": 1,
            "population": 3,
        },
        lambda m: release_by_hand(m, np.array([0, 50, 100])),
    ),
]
every_conversion = pytest.mark.parametrize(
    "listed", CONVERSIONS, ids=lambda each: each.kind.__name__
)
# What releases something and is held to other tests, with the reason.
ELSEWHERE = {
    "ItemToUser": "wraps a mechanism of the caller; see tests/papers/conversion",
    "CertifiedItemToUser": "wraps a mechanism of the caller; see tests/papers/conversion",
}
every_mechanism = pytest.mark.parametrize("listed", LISTED, ids=lambda each: each.kind.__name__)


def words(text):
    return re.sub(r"\s+", " ", text)


def section(doc, name):
    """Return the text of one section of a NumPy docstring."""
    match = re.search(rf"^{name}\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", doc, re.M | re.S)
    return match.group(1) if match else ""


def docstring_problems(kind, promises):
    """Say where a docstring and the guarantees the code returns do not agree."""
    doc = inspect.getdoc(kind) or ""
    problems = []
    found = re.findall(r"^(\w[\w ]*)\n-+$", doc, re.M)
    if [name for name in found if name in SECTIONS] != SECTIONS:
        problems.append(f"sections are {found}")
    privacy = section(doc, "Privacy")
    if re.findall(r"^(\w+) : ", privacy, re.M) != PRIVACY_FIELDS:
        problems.append("fields of Privacy")
    for promise in promises:
        if promise.relation.value not in words(privacy):
            problems.append(f"neighbours: {promise.relation.value}")
        if f"trust : {promise.trust.name.lower()}" not in privacy:
            problems.append("trust")
        if f"numerics : {promise.numerics.value}" not in privacy:
            problems.append("numerics")
        stated = re.search(r"guarantee : (.*?)\nneighbours", privacy, re.S)
        pure = stated is not None and r"\delta" not in stated.group(1)
        if pure != (promise.delta == 0):
            problems.append("pure or approximate")
    described = section(doc, "Parameters")
    for each in dataclasses.fields(kind):
        if not re.search(rf"^(\w+, )*{each.name}(, \w+)* : ", described, re.M):
            problems.append(f"parameter {each.name}")
    if ">>>" not in section(doc, "Examples"):
        problems.append("example")
    return problems


def every_class():
    """Yield every public class of every room."""
    for module in pkgutil.walk_packages(quorate.__path__, "quorate."):
        loaded = importlib.import_module(module.name)
        for name, value in vars(loaded).items():
            own = inspect.isclass(value) and value.__module__ == loaded.__name__
            if own and not name.startswith("_"):
                yield value


def test_every_mechanism_of_every_room_is_listed():
    found = {kind.__name__ for kind in every_class() if is_mechanism(kind)}
    listed = {each.kind.__name__ for each in LISTED + CONVERSIONS}
    assert found == listed | set(ELSEWHERE)
    assert not listed & set(ELSEWHERE)


def is_mechanism(kind):
    """Tell whether a class releases something under a price or a promise of its own."""
    promises = any(hasattr(kind, name) for name in ("event", "guarantee"))
    return dataclasses.is_dataclass(kind) and hasattr(kind, "release") and promises


DRAWS = ("laplace", "gaussian", "geometric", "permute_and_flip", "gumbel_max", "sample", "pay")
DRAWING_ROOMS = ("core", "mechanisms", "local", "auditing")


def draws(source):
    """Return where a piece of code asks an account, or a part of one, for noise."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)]
    texts = [ast.unparse(node) for node in found if node.attr in DRAWS]
    return [text for text in texts if "account" in text or "noise" in text]


def test_only_mechanisms_and_randomizers_draw():
    """Whatever else takes an account hands it down; it asks it for no noise."""
    assert draws("noisy = account.part(0.5).laplace(moved(x, 1), scale=2.0)")
    elsewhere = [
        p for p in SOURCE.rglob("*.py") if p.relative_to(SOURCE).parts[0] not in DRAWING_ROOMS
    ]
    found = {str(p.relative_to(SOURCE)): draws(p.read_text()) for p in elsewhere}
    assert {path: calls for path, calls in found.items() if calls} == {}


class TestConversions:
    @every_conversion
    def test_the_docstring_states_the_guarantee_the_code_returns(self, listed):
        assert docstring_problems(listed.kind, [listed.make().guarantee]) == []

    @every_conversion
    def test_the_promise_is_the_event_and_void_with_a_double(self, listed):
        mechanism = listed.make()
        promise = mechanism.guarantee
        assert promise.events == (mechanism.event,)
        assert (promise.epsilon, promise.delta) == (mechanism.event.epsilon, mechanism.event.delta)
        assert promise.holds
        with use_noise(SeededNoise(0)):
            assert not listed.make().guarantee.holds

    @every_conversion
    def test_it_is_frozen_and_draws_from_its_account_only(self, listed):
        with pytest.raises(dataclasses.FrozenInstanceError):
            listed.make().event = None

        def outputs(seed):
            with use_noise(SeededNoise(seed)):
                return [str(listed.release(listed.make())) for _ in range(20)]

        assert outputs(1) == outputs(1)
        assert outputs(1) != outputs(2)

    @every_conversion
    def test_a_release_pays_its_event(self, listed):
        mechanism = listed.make()
        noise = SeededNoise(0)
        account = Account.for_event(mechanism.event, noise=noise)
        kwargs = {"account": account}
        released = type(mechanism).release

        def paid(*arguments):
            return released(mechanism, *arguments, **kwargs)

        listed.release(type("Paid", (), {"_mechanism": mechanism, "release": staticmethod(paid)}))
        assert account.event == mechanism.event


class TestPromise:
    @every_mechanism
    def test_the_docstring_states_the_guarantee_the_code_returns(self, listed):
        promises = [mechanism.guarantee for mechanism in listed.under_each_relation]
        assert docstring_problems(listed.kind, promises) == []

    def test_the_docstring_check_sees_a_wrong_statement(self):
        @dataclasses.dataclass(frozen=True)
        class Wrong(NoisyCount):
            __doc__ = NoisyCount.__doc__.replace("trust : central", "trust : local").replace(
                "numerics : exact", "numerics : idealized"
            )

        @dataclasses.dataclass(frozen=True)
        class Missing(NoisyCount):
            __doc__ = NoisyCount.__doc__.replace("Utility\n    -------", "Use\n    ---")
            extra: int = 3

        promise = NoisyCount(epsilon=1.0).guarantee
        assert docstring_problems(NoisyCount, [promise]) == []
        assert docstring_problems(Wrong, [promise]) == ["trust", "numerics"]
        problems = docstring_problems(Missing, [dataclasses.replace(promise, delta=0.1)])
        assert [p.split(" ")[0] for p in problems] == ["sections", "pure", "parameter"]

    @every_mechanism
    def test_the_guarantee_is_what_the_event_costs(self, listed):
        for mechanism in listed.under_each_relation:
            relation, promise = mechanism.relation, mechanism.guarantee
            assert isinstance(promise, Guarantee)
            assert isinstance(mechanism.event, Event)
            assert promise.events == (mechanism.event,)
            assert promise.relation is relation
            assert promise.trust is Trust.CENTRAL
            assert promise.delta == listed.parameters.get("delta", 0.0)
            cost = price(mechanism.event, delta=promise.delta, relation=relation)
            if listed.tight:
                assert promise.epsilon == pytest.approx(cost, rel=1e-12)
            assert cost <= promise.epsilon * (1 + 1e-12)

    @every_mechanism
    def test_the_promise_holds_with_secure_noise_and_is_void_with_a_double(self, listed):
        assert listed.make().guarantee.numerics is Numerics.EXACT
        assert listed.make().guarantee.holds
        with use_noise(SeededNoise(0)):
            double = listed.make().guarantee
        assert double.numerics is Numerics.VOID
        assert not double.holds

    @every_mechanism
    def test_a_smaller_budget_costs_less_and_errs_more(self, listed):
        value = listed.parameters[listed.budget]
        strict = listed.make(
            **{listed.budget: value / 4 if listed.budget == "epsilon" else value * 4}
        )
        assert strict.guarantee.epsilon < listed.make().guarantee.epsilon
        assert listed.bound(strict, 0.05) > listed.bound(listed.make(), 0.05)


class TestForm:
    @every_mechanism
    def test_it_is_frozen_and_takes_keywords_only(self, listed):
        mechanism = listed.make()
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(mechanism, listed.budget, 100.0)
        with pytest.raises(TypeError):
            listed.kind(*listed.parameters.values())

    @every_mechanism
    def test_two_of_the_same_parameters_are_the_same(self, listed):
        assert listed.make() == listed.make()
        assert hash(listed.make()) == hash(listed.make())

    @every_mechanism
    def test_all_randomness_comes_from_the_noise_of_its_account(self, listed):
        def outputs(seed):
            with use_noise(SeededNoise(seed)):
                return [np.asarray(listed.release(listed.make())).tolist() for _ in range(20)]

        assert outputs(1) == outputs(1)
        assert outputs(1) != outputs(2)

    @every_mechanism
    def test_real_releases_differ_from_each_other(self, listed):
        """No output is likelier than 0.6, so sixty equal ones have probability below 1e-12."""
        assert len({str(listed.release(listed.make())) for _ in range(60)}) > 1


class TestErrorBound:
    @every_mechanism
    def test_more_certainty_needs_a_wider_bound(self, listed):
        bounds = [listed.bound(listed.make(), beta) for beta in (1e-9, 1e-3, 0.1, 0.5)]
        assert bounds == sorted(bounds, reverse=True)
        assert all(0 <= bound < math.inf for bound in bounds)
        assert bounds[0] > bounds[-1]

    @every_mechanism
    @pytest.mark.parametrize("beta", [0.0, 1.0, -0.5, math.nan])
    def test_a_chance_outside_its_range_is_refused(self, listed, beta):
        with pytest.raises(ParameterError, match="beta"):
            listed.bound(listed.make(), beta)


class TestRefusals:
    @every_mechanism
    @pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, -math.inf, "1", None, True])
    def test_a_budget_that_is_no_positive_number_is_refused(self, listed, value):
        with pytest.raises(ParameterError, match=listed.budget):
            listed.make(**{listed.budget: value})

    @every_mechanism
    @pytest.mark.parametrize("value", ["replace", None, 1])
    def test_a_relation_that_is_none_is_refused(self, listed, value):
        if "relation" not in {each.name for each in dataclasses.fields(listed.kind)}:
            with pytest.raises(TypeError):
                listed.make(relation=value)
            return
        with pytest.raises(ParameterError, match="relation"):
            listed.make(relation=value)

    @every_mechanism
    def test_a_fraction_is_a_budget(self, listed):
        assert listed.make(**{listed.budget: Fraction(3, 2)}).guarantee.epsilon > 0
