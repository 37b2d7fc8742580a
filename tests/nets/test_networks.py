"""One user's records never move a bit of another user's gradient, in either back end."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from network_worlds import FEATURES, FIRST, NETWORKS, jax_network, people, small
from quorate.app.model_files import ModelFileError, StoredModel
from quorate.core.bounds.grid import Ball, Grid
from quorate.core.bounds.lifted_ball import LiftedBall
from quorate.core.compiled import CompiledProgram, CompiledSums
from quorate.core.placed import Batch, PlacedSum, Places
from quorate.core.users import UserData
from quorate.exceptions import ParameterError, SchemaError
from quorate.nets import NeuralClassifier
from quorate.nets.jax_networks import JaxNetwork
from quorate.nets.networks import check_on_made_up_users, made_up_batch, open_network

LENGTHS = (2, 8, 32)


def integers(network, users, *, width, ranks=None, program=None, lengths=LENGTHS):
    """Return the integers that each user adds, by key."""
    grid = Grid(Ball(1.0, dimension=network.initial.size), 2.0**-30)
    program = network.gradients(network.initial) if program is None else program
    found = {}
    for numbers, batch in Places(width=width, lengths=lengths).batches(users, ranks, 0):
        steps = grid.encode(np.asarray(program(batch)))
        found |= {
            int(users.keys()[number]): steps[place].tolist()
            for place, number in enumerate(numbers.tolist())
            if number >= 0
        }
    return found


def moved(network, *, width, program=None, lengths=lambda _: LENGTHS):
    """Return what the first user may hold that moves a bit of anybody else."""
    found = []
    for ranked in (False, True):
        users = people()
        ranks = np.sort(users.keys()) if ranked else None
        key = int(users.keys()[0])

        def others(users, ranks=ranks, key=key):
            held = integers(
                network, users, width=width, ranks=ranks, program=program, lengths=lengths(users)
            )
            return {user: row for user, row in held.items() if user != key}

        before = others(users)
        found += [first for first in FIRST if others(people(first)) != before]
        if not ranked and others(users.take(np.arange(1, users.n_users))) != before:
            found.append("gone")
    return found


class TestBits:
    # Below, in other processes, four users stand side by side.
    @pytest.mark.parametrize("width", [1, 32])
    @pytest.mark.parametrize("name", NETWORKS)
    def test_nobody_moves_a_bit_of_anybody_else(self, name, width):
        assert moved(NETWORKS[name](), width=width) == []

    @pytest.mark.parametrize("threads", ["1", "4"])
    def test_nor_with_more_threads(self, threads):
        code = (
            "from test_networks import moved, moved_in_compiled, NETWORKS\n"
            "from network_worlds import has_torch\n"
            "for name in NETWORKS if has_torch() else ['jax']:\n"
            "    assert moved(NETWORKS[name](), width=4) == [], name\n"
            "assert moved_in_compiled(NETWORKS['jax'](), width=4) == []"
        )
        here = Path(__file__).parent
        paths = [str(here), str(here.parent), os.environ.get("PYTHONPATH", "")]
        more = dict.fromkeys(("NPROC", "PJRT_NPROC", "OMP_NUM_THREADS"), threads)
        # What was compiled for another number of threads is not taken.
        more["JAX_ENABLE_COMPILATION_CACHE"] = "false"
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | more | {"PYTHONPATH": os.pathsep.join(paths)},
            check=True,
        )

    def test_a_program_that_mixes_users_is_caught(self):
        network = jax_network()
        honest = network.gradients(network.initial)

        def mixing(batch):
            middle = np.clip(np.nan_to_num(batch.rows), -9.0, 9.0).mean(axis=(0, 1))
            return honest(Batch(batch.rows - middle, batch.targets, batch.present))

        assert "a thousand" in moved(network, width=4, program=mixing)

    def test_a_shape_that_follows_the_data_is_caught(self):
        found = moved(
            jax_network(), width=4, lengths=lambda users: (int(users.record_counts().max()),)
        )
        assert "a thousand" in found

    @pytest.mark.parametrize("name", NETWORKS)
    def test_a_user_with_odd_numbers_adds_nothing_or_a_clipped_vector(self, name):
        network = NETWORKS[name]()
        for first in FIRST:
            users = people(first)
            row = np.array(integers(network, users, width=4)[int(users.keys()[0])], dtype=object)
            assert (row**2).sum() <= 2**60
        users = people("missing")
        assert not any(integers(network, users, width=4)[int(users.keys()[0])])


def compiled(network, users, *, width, ranks=None, program=None):
    """Return the integers that all users add together, inside of the compiled program."""
    bound = LiftedBall(1.0, centre=np.zeros(network.initial.size))
    grid = Grid(bound, 2.0**-20)
    held = network.program(network.initial) if program is None else program
    assert held.sums.fits(grid, width=width)
    return grid.join(PlacedSum(held, grid, Places(width=width, lengths=LENGTHS), ranks)(users))


def moved_in_compiled(network, *, width, program=None):
    """Return what the first user may hold that moves a bit of what all others add."""
    found = []
    for ranked in (False, True):
        users = people()
        ranks = np.sort(users.keys()) if ranked else None

        def others(users, ranks=ranks):
            first = users.take(np.flatnonzero(users.keys() == people().keys()[0]))
            given = {"width": width, "ranks": ranks, "program": program}
            return compiled(network, users, **given) - compiled(network, first, **given)

        before = others(users)
        found += [first for first in FIRST if np.any(others(people(first)) != before)]
        if not ranked and np.any(others(users.take(np.arange(1, users.n_users))) != before):
            found.append("gone")
    return found


class TestCompiledBits:
    @pytest.mark.parametrize("width", [1, 4, 32])
    def test_nobody_moves_a_bit_of_anybody_else(self, width):
        assert moved_in_compiled(jax_network(), width=width) == []

    def test_it_adds_what_the_rows_add_up_to_rounding(self):
        network, users = jax_network(), people()
        bound = LiftedBall(1.0, centre=np.zeros(network.initial.size))
        rows = PlacedSum(
            network.gradients(network.initial),
            Grid(bound, 2.0**-20),
            Places(width=4, lengths=LENGTHS),
            None,
        )
        exact = Grid(bound, 2.0**-20).join(rows(users))
        assert np.abs(exact - compiled(network, users, width=4))[:-1].max() < 8 * users.n_users

    def test_a_program_that_mixes_users_is_caught(self):
        """Batch statistics over a micro-batch, whatever the caller's function looks like."""
        network = jax_network()
        honest = network.program(network.initial)

        class Mixing(CompiledSums):
            def _summed(self, weights, rows, *given, **named):
                import jax.numpy as jnp

                middle = jnp.clip(jnp.nan_to_num(rows), -9.0, 9.0).mean(axis=(0, 1))
                return super()._summed(weights, rows - middle, *given, **named)

        sums = Mixing(honest.sums.gradient, honest.sums.sizes)
        mixing = CompiledProgram(sums, honest.weights, honest.rows)
        assert "a thousand" in moved_in_compiled(network, width=4, program=mixing)


def test_fast_arithmetic_is_not_exact(monkeypatch):
    assert jax_network().caveat is None
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    assert "fast arithmetic" in jax_network().caveat


class TestGradients:
    @pytest.mark.parametrize("name", NETWORKS)
    @pytest.mark.parametrize("head", ["classes", "number"])
    def test_they_are_those_of_differences(self, name, head):
        network = NETWORKS[name](head)
        batch = made_up_batch(users=2, records=3, features=FEATURES, classes=2)
        theta, found = network.initial, np.asarray(network.gradients(network.initial)(batch))

        def loss(theta, user):
            outputs = network.outputs_of(theta, batch.rows[user]).astype(float)
            targets = batch.targets[user]
            if head == "number":
                return np.mean(0.5 * (outputs[:, 0] - targets) ** 2)
            shares = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
            return -np.mean(np.log(shares[np.arange(3), targets.astype(int)]))

        for user in range(2):
            for place in range(0, theta.size, 3):
                step = np.zeros(theta.size)
                step[place] = 1e-2
                slope = (loss(theta + step, user) - loss(theta - step, user)) / 2e-2
                assert found[user, place] == pytest.approx(slope, abs=2e-3)

    @pytest.mark.parametrize("name", NETWORKS)
    def test_padding_changes_nothing_but_rounding(self, name):
        network = NETWORKS[name]()
        short = made_up_batch(users=4, records=2, features=FEATURES, classes=2)
        shape = (4, 6)
        rows = np.zeros((*shape, FEATURES), np.float32)
        targets, present = np.zeros(shape, np.float32), np.zeros(shape, bool)
        rows[:, :2], targets[:, :2], present[:, :2] = short.rows, short.targets, True
        one = np.asarray(network.gradients(network.initial)(short))
        other = np.asarray(network.gradients(network.initial)(Batch(rows, targets, present)))
        assert np.abs(one - other).max() < 1e-5


def opened(module, **settings):
    given = {
        "features": FEATURES,
        "shape": None,
        "head": "classes",
        "outputs": 2,
        "hidden": 4,
        "frozen": (),
        "seed": 0,
    }
    return open_network(module, **given | settings)


class TestRefusals:
    def refused(self, network, match, classes=2):
        with pytest.raises(ParameterError, match=match):
            check_on_made_up_users(network, features=FEATURES, classes=classes)

    def test_batch_statistics(self):
        init, apply = small()

        def normalised(weights, rows):
            return apply(weights, rows - rows.mean(axis=0))

        network = opened((init, normalised))
        network.initial = network.initial + 0.1
        self.refused(network, "mixes records")

    def test_batch_normalisation_of_torch(self):
        torch = pytest.importorskip("torch", reason="PyTorch is not installed: quorate[torch]")
        module = torch.nn.Sequential(torch.nn.BatchNorm1d(FEATURES), torch.nn.Linear(FEATURES, 2))
        self.refused(opened(module), "batch normalisation")

    def test_batch_normalisation_with_frozen_statistics_is_taken(self):
        torch = pytest.importorskip("torch", reason="PyTorch is not installed: quorate[torch]")
        module = torch.nn.Sequential(torch.nn.BatchNorm1d(FEATURES), torch.nn.Linear(FEATURES, 2))
        assert check_on_made_up_users(opened(module.eval()), features=FEATURES, classes=2) > 0

    def test_other_outputs(self):
        self.refused(opened(small(3)), "2 outputs")
        self.refused(opened(small(2), head="number"), "one output", classes=0)

    def test_weights_that_are_not_finite(self):
        network = opened(small())
        network.initial = network.initial * np.nan
        self.refused(network, "finite|mixes")

    def test_what_is_no_network(self):
        with pytest.raises(ParameterError, match="Equinox or PyTorch"):
            opened("resnet")
        with pytest.raises(ParameterError, match="3 numbers"):
            opened(small(), shape=(2, 2))
        with pytest.raises(ParameterError, match="frozen"):
            opened(small(), frozen=("attention",))


class TestModules:
    def test_equinox_with_a_frozen_layer(self):
        import equinox
        import jax

        module = equinox.nn.MLP(FEATURES, 2, width_size=4, depth=1, key=jax.random.key(0))
        whole = opened(module)
        last = opened(module, frozen=("layers[0]",))
        assert (whole.initial.size, last.initial.size) == (3 * 4 + 4 + 4 * 2 + 2, 4 * 2 + 2)
        assert check_on_made_up_users(last, features=FEATURES, classes=2) > 0
        rows = np.ones((2, FEATURES), np.float32)
        assert np.allclose(whole.outputs_of(whole.initial, rows), jax.vmap(module)(rows), atol=1e-6)

    def test_records_of_any_shape(self):
        def init(key):
            import jax.numpy as jnp

            return {"w": jnp.ones((3, 1, 2))}

        def apply(weights, rows):
            assert rows.shape[1:] == (3, 1)
            return (rows[..., None] * weights["w"]).sum(axis=(1, 2))

        network = opened((init, apply), shape=(3, 1))
        assert network.outputs(network.initial, np.ones((5, 3))).tolist() == [[3.0, 3.0]] * 5

    def test_importing_the_package_imports_neither_back_end(self):
        code = (
            "import sys, quorate, quorate.nets\n"
            "assert not {'jax', 'torch', 'equinox'} & set(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_a_network_of_functions_is_that_of_its_seed(self):
        one, other = (
            JaxNetwork.of(small(), shape=(3,), head="classes", frozen=(), seed=seed).initial
            for seed in (0, 1)
        )
        assert not np.array_equal(one, other)


def pictures():
    """Return a network that looks at records of shape (3, 1), and 60 of them of 30 people."""

    def init(key):
        import jax.numpy as jnp

        return {"w": jnp.ones((3, 1, 2))}

    def apply(weights, rows):
        return (rows[..., None] * weights["w"]).sum(axis=(1, 2))

    return (init, apply), np.random.default_rng(0).uniform(-1.0, 1.0, (60, 3, 1))


def with_a_frozen_layer(back_end):
    """Return a maker of networks whose first layer has one value, and the name of that layer."""
    if back_end == "torch":
        torch = pytest.importorskip("torch", reason="PyTorch is not installed: quorate[torch]")

        def module(value):
            first, last = torch.nn.Linear(FEATURES, 2, bias=False), torch.nn.Linear(2, 2)
            for each in (*first.parameters(), *last.parameters()):
                torch.nn.init.constant_(each, value if each is first.weight else 0.5)
            return torch.nn.Sequential(first, last)

        return module, ("0",)

    def pair(value):
        def init(key):
            # Of 64 bits, as NumPy has them: JAX would warn.
            return {"first": np.full((FEATURES, 2), value), "last": np.full((2, 2), 0.5)}

        return init, lambda weights, rows: rows @ weights["first"] @ weights["last"]

    return pair, ("first",)


class TestModelFiles:
    """Files hold the weights of a network of one's own, and whoever reads them has the network."""

    def written(self, folder, module, X):
        y, users = np.arange(60) % 2, np.arange(60) // 2
        settings = {"epsilon": 8.0, "bounds": 1.0, "steps": 2, "progress": False}
        model = NeuralClassifier(module, **settings).fit(X, y, users=users)
        return model, StoredModel(model).write(folder / "model.json")

    def test_pictures(self, tmp_path):
        module, X = pictures()
        model, path = self.written(tmp_path, module, X)
        again = StoredModel.read(path, module=module).estimator
        assert again.shape_ == (3, 1)
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
        assert again.guarantee_.to_dict() == model.guarantee_.to_dict()
        with pytest.raises(ParameterError, match="shape"):
            again.predict(X.reshape(60, 1, 3))

    def test_a_module_of_torch(self, tmp_path):
        torch = pytest.importorskip("torch", reason="PyTorch is not installed: quorate[torch]")
        module, (_, X) = torch.nn.Linear(3, 2), pictures()
        model, path = self.written(tmp_path, module, X[:, :, 0])
        again = StoredModel.read(path, module=module).estimator
        assert np.array_equal(again.predict_proba(X[:, :, 0]), model.predict_proba(X[:, :, 0]))

    def test_it_is_not_read_with_another_network_or_none(self, tmp_path):
        module, X = pictures()
        _, path = self.written(tmp_path, module, X)
        with pytest.raises(ModelFileError, match="module="):
            StoredModel.read(path)
        with pytest.raises(ModelFileError, match="module="):
            StoredModel.read(path, module=module, optimizer=module)
        with pytest.raises(ModelFileError, match="fails on made-up records"):
            StoredModel.read(path, module=small())
        init, apply = module
        more = {"w": init(None)["w"], "unused": np.ones(2, np.float32)}
        with pytest.raises(ModelFileError, match="as many as"):
            StoredModel.read(path, module=(lambda key: more, apply))
        _, path = self.written(tmp_path, None, X[:, :, 0])
        with pytest.raises(ModelFileError, match="no code"):
            StoredModel.read(path, module=module)
        assert StoredModel.read(path).estimator.shape_ == (3,)

    @pytest.mark.parametrize("back_end", ["jax", "torch"])
    def test_frozen_weights_are_those_of_the_fit(self, tmp_path, back_end):
        """Weights of a fit beside other frozen ones would be another network, without a word."""
        make, names = with_a_frozen_layer(back_end)
        y, users = np.arange(60) % 2, np.arange(60) // 2
        X = np.random.default_rng(0).uniform(-1.0, 1.0, (60, FEATURES))
        settings = {"epsilon": 8.0, "bounds": 1.0, "steps": 2, "progress": False, "frozen": names}
        model = NeuralClassifier(make(0.5), **settings).fit(X, y, users=users)
        path = StoredModel(model).write(tmp_path / "model.json")
        said = model.predict_proba(X)
        again = StoredModel.read(path, module=make(0.5)).estimator
        assert np.array_equal(again.predict_proba(X), said)
        with pytest.raises(ModelFileError, match="not trained"):
            StoredModel.read(path, module=make(0.25))
        with pytest.raises(ParameterError, match="not trained"):
            model.set_params(module=make(0.25)).predict(X)
        assert np.array_equal(model.set_params(module=make(0.5)).predict_proba(X), said)

    def test_a_refused_fit_leaves_the_last_one(self, tmp_path):
        module, X = pictures()
        model, _ = self.written(tmp_path, module, X)
        with pytest.raises(ParameterError):
            model.set_params(epsilon=-1.0).fit(X[:, :2], np.zeros(60), users=np.arange(60))
        assert model.predict(X).shape == (60,)


@pytest.mark.parametrize("back_end", ["jax", "torch"])
def test_a_label_that_nobody_listed_and_a_missing_cell_are_left_out(back_end):
    """In PyTorch a label without a class would raise, which would be an answer about a record."""
    module = None
    if back_end == "torch":
        torch = pytest.importorskip("torch")
        module = torch.nn.Linear(3, 2)
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (200, 3))
    labels = np.where(rows[:, 0] > 0, "yes", "no").astype(object)
    labels[7], rows[9, 1], rows[11, 2] = "perhaps", np.nan, 1e300
    model = NeuralClassifier(module, 8.0, classes=["no", "yes"], steps=2, progress=False)
    model.fit(rows, labels, users=np.arange(200) // 2)
    assert np.all(np.isfinite(model.weights_))


class TestSearchForNaN:
    """JAX can be asked to raise where a number is none: that would tell of a record."""

    @pytest.fixture(autouse=True)
    def searching(self):
        import jax

        # For all threads, which a context manager of JAX is not.
        names = ("jax_debug_nans", "jax_debug_infs", "jax_disable_jit")
        for name in names:
            jax.config.update(name, True)
        yield
        for name in names:
            jax.config.update(name, False)

    def raised(self):
        """Return which ways to add up raise because of a user's numbers."""
        network, found = jax_network(), []
        # In 32 bits they are numbers, but their squares are not.
        users = UserData(np.full((2, FEATURES), 3e38), [0.0, 1.0], offsets=[0, 2])
        for way in (compiled, integers):
            try:
                way(network, users, width=1)
            except (SchemaError, FloatingPointError):
                found.append(way.__name__)
        return found

    def test_nobody_can_make_a_step_raise(self):
        assert self.raised() == []

    def test_a_step_that_is_searched_is_caught(self, monkeypatch):
        from contextlib import nullcontext

        monkeypatch.setattr("quorate.core.compiled.unwatched", nullcontext)
        monkeypatch.setattr("quorate.nets.jax_networks.unwatched", nullcontext)
        assert "compiled" in self.raised()
