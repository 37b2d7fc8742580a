"""A training that was killed goes on: no noise twice, nothing paid twice, one program alone."""

import io
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest

from quorate import Ledger, NeuralClassifier, NeuralRegressor, UserData
from quorate.core.account.account import Account
from quorate.core.guarantees import Gaussian, Relation
from quorate.core.noise import NoiseSource, SeededNoise, use_noise
from quorate.exceptions import BudgetExceededError, CheckpointError, ParameterError
from quorate.nets.checkpoints import Checkpoint, _read
from quorate.nets.linear_ends import LinearEnds

RNG = np.random.default_rng(0)
PEOPLE = np.arange(160) // 2
X = RNG.uniform(-1.0, 1.0, (160, 2))
Y = (X[:, 0] > 0).astype(int)
STEPS = 5
BUDGET = Account.open(epsilon=4.0, delta=1e-6).square


class Killed(BaseException):
    """Stands for ``kill -9``: nobody handles it."""


def model(path, **settings):
    given = {"epsilon": 4.0, "bounds": 1.0, "hidden": 2, "steps": STEPS, "progress": False}
    return NeuralClassifier(**given | {"random_state": 0, "checkpoint": path} | settings)


def fit(path, **settings):
    return model(path, **settings).fit(X, Y, users=PEOPLE)


# Where a program can be killed in a step: what is called, and whether before or after it.
MOMENTS = {
    "before the claim": ("claim", "before"),
    "after the claim": ("claim", "after"),
    "before the result is written": ("write", "before"),
    "after the result is written": ("write", "after"),
}


def kill_at(patch, moment, step, owner=Checkpoint):
    name, when = MOMENTS[moment]
    whole = getattr(owner, name)

    def killed(self, at, *given, **named):
        if at == step and when == "before":
            raise Killed
        whole(self, at, *given, **named)
        if at == step and when == "after":
            raise Killed

    patch.setattr(owner, name, killed)


@pytest.fixture
def drawn(monkeypatch):
    """Record the noise of every draw, beside what it costs of mu squared."""
    noises, costs = [], []
    draw, pay = NoiseSource.discrete_gaussian, Account._pay

    def recorded(self, values, *, sigma):
        found = draw(self, values, sigma=sigma)
        noises.append(tuple((np.asarray(found) - values).tolist()))
        return found

    def paying(self, event, found):
        source = pay(self, event, found)
        costs.append(event)
        return source

    def gaussian(self, total, *, sigma, whole=Account.gaussian):
        before = len(noises)
        found = whole(self, total, sigma=sigma)
        assert len(noises) == before + 1
        taken.append(Fraction(total.moves.l2_squared) / Fraction(sigma) ** 2)
        return found

    taken = []
    monkeypatch.setattr(NoiseSource, "discrete_gaussian", recorded)
    monkeypatch.setattr(Account, "_pay", paying)
    monkeypatch.setattr(Account, "gaussian", gaussian)
    return noises, taken


def wrong(drawn):
    """Return what is wrong with the draws of all runs of one training, together."""
    noises, taken = drawn
    noises = [noise for noise in noises if len(noise) > 1]  # single numbers agree by chance
    found = set()
    if len(set(noises)) < len(noises):
        found.add("noise twice")
    if sum(taken) > BUDGET:
        found.add("more than was paid")
    return found


class TestKilled:
    @pytest.mark.parametrize("moment", MOMENTS)
    def test_it_goes_on_and_draws_what_was_paid(self, tmp_path, drawn, moment):
        path = tmp_path / "training"
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, moment, 2)
            with pytest.raises(Killed):
                fit(path)
        done = fit(path)
        assert wrong(drawn) == set()
        lost = moment in ("after the claim", "before the result is written")
        assert [step.step for step in done.history_] == [0, 1, *([] if lost else [2]), 3, 4]
        drawn_steps = STEPS - (moment == "after the claim")
        assert len(drawn[0]) == drawn_steps
        # What was claimed is part of the promise, drawn or not.
        price = sum(float(1 / each.noise_multiplier**2) * n for each, n in events(done))
        assert 0.99 * float(BUDGET) < price <= float(BUDGET) * (1 + 1e-9)

    def test_it_ends_where_it_would_have_ended(self, tmp_path):
        with use_noise(SeededNoise(1)):
            whole = fit(tmp_path / "whole")
        with use_noise(SeededNoise(1)):
            with pytest.MonkeyPatch.context() as patch:
                kill_at(patch, "after the result is written", 2)
                with pytest.raises(Killed):
                    fit(tmp_path / "halves")
            halves = fit(tmp_path / "halves")
        assert np.array_equal(whole.weights_, halves.weights_)
        assert whole.history_ == halves.history_

    def test_again_and_again(self, tmp_path, drawn):
        for step in range(STEPS):
            with pytest.MonkeyPatch.context() as patch:
                kill_at(patch, "before the result is written", step)
                with pytest.raises(Killed):
                    fit(tmp_path / "training")
        done = fit(tmp_path / "training")
        assert wrong(drawn) == set()
        assert done.history_ == ()

    def test_a_training_that_is_done_is_read(self, tmp_path, drawn):
        first = fit(tmp_path / "training")
        again = fit(tmp_path / "training")
        assert len(drawn[0]) == STEPS
        assert np.array_equal(first.weights_, again.weights_)
        assert again.guarantee_.epsilon == 4.0

    @pytest.mark.parametrize(
        "settings",
        [
            {"batch_rate": 0.5},
            {"batch_rate": 0.5, "relation": Relation.ADD_REMOVE},
            {"relation": Relation.ADD_REMOVE},
        ],
        ids=["sampled", "sampled, people may come", "people may come"],
    )
    def test_every_chain_goes_on(self, tmp_path, settings):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, "before the result is written", 1)
            with pytest.raises(Killed):
                fit(tmp_path / "training", **settings)
        done = fit(tmp_path / "training", **settings)
        assert [step.step for step in done.history_] == [0, 2, 3, 4]
        plain = fit(None, **settings)
        assert sum(n for _, n in events(done)) == sum(n for _, n in events(plain))

    def test_users_are_counted_once(self, tmp_path):
        settings = {"relation": Relation.ADD_REMOVE}
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, "before the result is written", -2)
            with pytest.raises(Killed):
                fit(tmp_path / "training", **settings)
        with pytest.raises(CheckpointError, match="counted the users"):
            fit(tmp_path / "training", **settings)

    def test_by_the_operating_system(self, tmp_path):
        code = (
            "import os, signal\n"
            "from pathlib import Path\n"
            "from test_checkpoints import fit, Checkpoint\n"
            "write = Checkpoint.write\n"
            "def dying(self, step, arrays):\n"
            "    if step == 3: os.kill(os.getpid(), signal.SIGKILL)\n"
            "    write(self, step, arrays)\n"
            "Checkpoint.write = dying\n"
            f"fit(Path({str(tmp_path)!r}) / 'training')\n"
        )
        here = os.path.dirname(__file__)
        paths = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
        ended = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": paths}, check=False
        )
        assert ended.returncode == -signal.SIGKILL
        assert [step.step for step in fit(tmp_path / "training").history_] == [0, 1, 2, 4]


def events(fitted):
    """Return the single events of a promise, and how often each was drawn."""
    (event,) = fitted.guarantee_.events
    parts = getattr(event, "events", (event,))
    return [(getattr(each, "event", each), getattr(each, "count", 1)) for each in parts]


def test_a_network_with_other_frozen_weights_does_not_go_on(tmp_path):
    """Steps of two networks would be mixed, although each was paid."""

    def network(value):
        def init(key):
            return {"first": np.full((2, 2), value), "last": np.full((2, 2), 0.5)}

        return init, lambda weights, rows: rows @ weights["first"] @ weights["last"]

    given = {"frozen": ("first",)}
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, "after the result is written", 2)
        with pytest.raises(Killed):
            fit(tmp_path / "training", module=network(0.5), **given)
    with pytest.raises(CheckpointError):
        fit(tmp_path / "training", module=network(0.25), **given)
    assert len(fit(tmp_path / "training", module=network(0.5), **given).history_) == STEPS


class TestTwins:
    """Broken checkpoints that the tests above catch."""

    def killed_and_resumed(self, path, moment):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, moment, 2)
            with pytest.raises(Killed):
                fit(path)
        fit(path)

    def test_noise_reused_after_a_resume(self, tmp_path, drawn):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, "before the result is written", 0)  # the radius is then the same again
            with use_noise(SeededNoise(1)), pytest.raises(Killed):
                fit(tmp_path / "training")
        with use_noise(SeededNoise(1)):  # as if the state of the noise had been kept
            fit(tmp_path / "training")
        assert "noise twice" in wrong(drawn)

    def test_a_step_paid_once_and_taken_twice(self, tmp_path, drawn, monkeypatch):
        """A claim that is written with the result, and not before the draw."""
        claim, write = Checkpoint.claim, Checkpoint.write
        waiting = {}

        def late(self, step, arrays):
            claim(self, step, multiplier=waiting.pop(step))
            write(self, step, arrays)

        monkeypatch.setattr(
            Checkpoint, "claim", lambda _, step, multiplier: waiting.update({step: multiplier})
        )
        monkeypatch.setattr(Checkpoint, "write", late)
        self.killed_and_resumed(tmp_path / "training", "before the result is written")
        assert "more than was paid" in wrong(drawn)


class TestOnce:
    def stopped(self, path, **settings):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, "after the result is written", 1)
            with pytest.raises(Killed):
                fit(path, **settings)

    def test_of_two_that_go_on_from_one_file_one_stops(self, tmp_path):
        self.stopped(tmp_path / "training")
        write = Checkpoint.write

        def overtaken(self, step, arrays):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Checkpoint, "write", write)
                fit(tmp_path / "training")
            write(self, step, arrays)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Checkpoint, "write", overtaken)
            with pytest.raises(CheckpointError, match="another one went on"):
                fit(tmp_path / "training")

    def test_a_copy_that_was_put_back_is_refused(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger")
        ledger.set_budget("visits", epsilon=4.0, delta=1e-6)
        paid = {"ledger": ledger, "data_name": "visits"}
        self.stopped(tmp_path / "training", **paid)
        shutil.copy(tmp_path / "training", tmp_path / "copy")
        done = fit(tmp_path / "training", **paid)
        with pytest.raises(CheckpointError, match="older than the ledger"):
            fit(tmp_path / "copy", **paid)
        assert done.guarantee_.epsilon == 4.0
        assert ledger.remaining("visits").epsilon == 0

    def test_a_copy_that_goes_on_meanwhile_stops_the_other(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger")
        ledger.set_budget("visits", epsilon=4.0, delta=1e-6)
        paid = {"ledger": ledger, "data_name": "visits"}
        self.stopped(tmp_path / "training", **paid)
        shutil.copy(tmp_path / "training", tmp_path / "copy")
        claim = Checkpoint.claim

        def overtaken(self, step, *, multiplier):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Checkpoint, "claim", claim)
                fit(tmp_path / "copy", **paid)
            claim(self, step, multiplier=multiplier)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Checkpoint, "claim", overtaken)
            with pytest.raises(CheckpointError, match="from a copy"):
                fit(tmp_path / "training", **paid)

    @pytest.mark.parametrize("composition", ["basic", "gaussian"])
    def test_the_ledger_is_charged_once(self, tmp_path, composition):
        ledger = Ledger(tmp_path / "ledger")
        # Gaussian composition keeps a part of delta for releases that it knows nothing of.
        ledger.set_budget("visits", epsilon=4.2, delta=2e-6, composition=composition)
        paid = {"ledger": ledger, "data_name": "visits", "batch_rate": 1.0}
        self.stopped(tmp_path / "training", **paid)
        first = fit(tmp_path / "training", **paid)
        again = fit(tmp_path / "training", **paid)
        assert np.array_equal(first.weights_, again.weights_)
        assert sum(entry.__class__.__name__ == "Charge" for entry in ledger.history("visits")) == 1
        with pytest.raises(BudgetExceededError):
            fit(tmp_path / "another", **paid)

    def test_a_file_that_was_charged_elsewhere_is_refused(self, tmp_path):
        ledgers = [Ledger(tmp_path / name) for name in ("ledger", "another")]
        for ledger in ledgers:
            ledger.set_budget("visits", epsilon=4.0, delta=1e-6)
        self.stopped(tmp_path / "training", ledger=ledgers[0], data_name="visits")
        with pytest.raises(CheckpointError, match="another ledger"):
            fit(tmp_path / "training", ledger=ledgers[1], data_name="visits")
        assert ledgers[1].spent("visits").epsilon == 0

    def test_another_training_is_refused(self, tmp_path):
        self.stopped(tmp_path / "training")
        for changed in ({"epsilon": 5.0}, {"hidden": 3}, {"steps": 6}):
            with pytest.raises(CheckpointError, match="other parameters"):
                fit(tmp_path / "training", **changed)
        with pytest.raises(CheckpointError, match="other people"):
            model(tmp_path / "training").fit(X[:80], Y[:80], users=PEOPLE[:80])
        days = UserData.from_arrays(X, Y, users=PEOPLE, unit="person x day")
        with pytest.raises(CheckpointError, match="other people"):
            model(tmp_path / "training").fit(days)
        (tmp_path / "nonsense").write_bytes(b"not a database, but long enough" * 40)
        with pytest.raises(CheckpointError, match="could not be read"):
            fit(tmp_path / "nonsense")
        with pytest.raises(ParameterError, match="name of a file"):
            fit(7)
        with pytest.raises(ParameterError, match="place where a file"):
            fit(tmp_path / "no folder" / "training")


class TestChangedByHand:
    """What somebody writes into a checkpoint costs accuracy, or the training, and never privacy."""

    def ledger(self, folder):
        ledger = Ledger(folder / "ledger")
        ledger.set_budget("visits", epsilon=40.0, delta=1e-5, relation=Relation.ADD_REMOVE)
        return {"ledger": ledger, "data_name": "visits"}

    def edit(self, path, *statements):
        connection = sqlite3.connect(path, isolation_level=None)
        for statement in statements:
            connection.execute(*statement if isinstance(statement, tuple) else (statement,))
        connection.close()

    def stopped(self, path, **settings):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, "after the result is written", 3)
            with pytest.raises(Killed):
                fit(path, **settings)

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE claims SET multiplier = 100 * multiplier WHERE step = 1",
            "DELETE FROM claims WHERE step = 1",
            "DELETE FROM claims WHERE step = 3",
            "UPDATE claims SET step = step + 100",
            "DELETE FROM claims",
        ],
    )
    def test_claims(self, tmp_path, statement):
        paid = self.ledger(tmp_path) | {"relation": Relation.ADD_REMOVE}
        self.stopped(tmp_path / "training", **paid)
        self.edit(tmp_path / "training", statement)
        with pytest.raises(CheckpointError, match=r"changed by hand|older than the ledger"):
            fit(tmp_path / "training", **paid)

    def test_claims_that_nobody_checks_are_caught(self, tmp_path, drawn, monkeypatch):
        def trusting(salt, design, before, *, step, multiplier):
            return salt if salt in known else next(known_words)

        known = [f"word {number}" for number in range(99)]
        known_words = iter(known)
        monkeypatch.setattr("quorate.nets.checkpoints._word", trusting)
        paid = self.ledger(tmp_path) | {"relation": Relation.ADD_REMOVE}
        self.stopped(tmp_path / "training", **paid)
        self.edit(tmp_path / "training", "UPDATE claims SET multiplier = 1e6 WHERE step < 3")
        done = fit(tmp_path / "training", **paid)
        price = sum(float(1 / each.noise_multiplier**2) * n for each, n in events(done))
        assert price < 0.9 * float(sum(drawn[1]))

    @pytest.mark.parametrize("changed", [{"epsilon": 5.0}, {"batch_rate": 0.5}])
    def test_a_design_that_was_paid_less(self, tmp_path, changed):
        """Who writes the word of a more expensive training into the file has not paid for it."""
        paid = self.ledger(tmp_path) | {"relation": Relation.ADD_REMOVE}
        self.stopped(tmp_path / "training", **paid)
        dearer = model(tmp_path / "training", **paid | changed)
        self.edit(tmp_path / "training", ("UPDATE training SET design = ?", (dearer._design(),)))
        with pytest.raises(CheckpointError, match="changed by hand"):
            dearer.fit(X, Y, users=PEOPLE)

    def test_a_design_before_the_first_claim(self, tmp_path):
        """Nothing is drawn yet, and what was charged is no longer what will be drawn."""
        paid = self.ledger(tmp_path) | {"relation": Relation.ADD_REMOVE}
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, "before the claim", -2)
            with pytest.raises(Killed):
                fit(tmp_path / "training", **paid)
        dearer = model(tmp_path / "training", **paid | {"epsilon": 5.0})
        self.edit(tmp_path / "training", ("UPDATE training SET design = ?", (dearer._design(),)))
        with pytest.raises(CheckpointError, match="another guarantee"):
            dearer.fit(X, Y, users=PEOPLE)

    @pytest.mark.parametrize("name", ["n_users", "radius", "state.theta", "state.steps", "trace"])
    @pytest.mark.parametrize("value", [np.nan, -1.0, 1e300, 0.0])
    def test_the_rest(self, tmp_path, drawn, name, value):
        settings = {"relation": Relation.ADD_REMOVE}
        self.stopped(tmp_path / "training", **settings)
        page = sqlite3.connect(tmp_path / "training")
        held = _read(page.execute("SELECT arrays FROM state").fetchone()[0])
        page.close()
        stream = io.BytesIO()
        np.savez(stream, **held | {name: np.full_like(held[name], value, dtype=float)})
        self.edit(tmp_path / "training", ("UPDATE state SET arrays = ?", (stream.getvalue(),)))
        with suppress(Exception), np.errstate(all="ignore"):
            fit(tmp_path / "training", **settings)
        assert wrong(drawn) == set()


class TestWhatItHolds:
    def test_folds_that_would_share_a_file_are_refused_for_free(self, tmp_path):
        from sklearn.model_selection import cross_val_score

        from quorate import private_cross_val_score

        path = tmp_path / "training.sqlite"
        shared = model(path)
        with pytest.raises(ParameterError, match="all folds would continue from the same file"):
            private_cross_val_score(shared, X, Y, users=PEOPLE, epsilon=40.0, delta=1e-6)
        with (
            pytest.warns(UserWarning, match="once for each fold"),
            pytest.raises(ParameterError, match="all fits would continue from the same file"),
        ):
            cross_val_score(shared, X, Y, params={"users": PEOPLE}, error_score="raise", cv=2)
        assert not path.exists()

    def test_numbers_that_were_released_and_nothing_of_the_people(self, tmp_path):
        """Neighbours who are released the same leave the same file, words aside."""

        def held(first):
            rows = X.copy()
            rows[PEOPLE == 0] = first
            path = tmp_path / f"training{first}"
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(
                    "quorate.nets.training.GaussianSum.release",
                    lambda self, total, **_: np.linspace(1.0, 2.0, total.shape[0]),
                )
                model(path).fit(rows, Y, users=PEOPLE)
            return Checkpoint(path, model(path)._design())

        one, other = held(0.0), held(1.0)
        assert one.claims == other.claims
        assert one.arrays.keys() == other.arrays.keys()
        assert all(np.array_equal(one.arrays[name], other.arrays[name]) for name in one.arrays)

    def test_it_is_no_pickle(self, tmp_path):
        fit(tmp_path / "training")
        assert b"pickle" not in (tmp_path / "training").read_bytes()
        assert (tmp_path / "training").stat().st_mode & 0o777 == 0o600


class TestWarmStart:
    def test_it_begins_at_public_weights(self):
        first = fit(None, epsilon=1000.0)
        far = fit(None, warm_start=first.weights_ + 5.0, steps=1, learning_rate=1e-9)
        assert np.allclose(far.weights_, first.weights_ + 5.0)
        assert far.guarantee_.epsilon == 4.0

    def test_a_fit_that_goes_on_from_a_release_promises_both(self):
        fitted = fit(None, warm_start=True)
        before = fitted.weights_
        fitted.set_params(steps=1, learning_rate=1e-9).fit(X, Y, users=PEOPLE)
        assert np.allclose(fitted.weights_, before)
        assert (fitted.guarantee_.epsilon, fitted.guarantee_.delta) == (8.0, 2e-6)

    @pytest.mark.parametrize("weights", [np.zeros(3), np.zeros((2, 2)), [np.nan] * 16, "resnet"])
    def test_other_weights_are_refused_for_free(self, weights, tmp_path):
        ledger = Ledger(tmp_path / "ledger")
        ledger.set_budget("visits", epsilon=4.0, delta=1e-6)
        with pytest.raises((ParameterError, ValueError)):
            fit(None, warm_start=weights, ledger=ledger, data_name="visits")
        assert ledger.spent("visits").epsilon == 0


class TestOptimizers:
    def test_of_optax_is_the_same_after_a_resume(self, tmp_path):
        optax = pytest.importorskip("optax")
        settings = {"optimizer": optax.adam(optax.cosine_decay_schedule(0.1, 10))}
        with use_noise(SeededNoise(1)):
            whole = fit(tmp_path / "whole", **settings)
        with use_noise(SeededNoise(1)):
            TestOnce().stopped(tmp_path / "halves", **settings)
            halves = fit(tmp_path / "halves", **settings)
        assert np.array_equal(whole.weights_, halves.weights_)

    def test_it_takes_the_steps_of_optax(self):
        optax = pytest.importorskip("optax")
        settings = {"steps": 1, "warm_start": np.zeros(16)}
        with use_noise(SeededNoise(1)):
            one = fit(None, optimizer=optax.sgd(0.5), **settings)
        with use_noise(SeededNoise(1)):
            other = fit(None, optimizer=optax.sgd(0.25), **settings)
        assert one.weights_ == pytest.approx(2 * other.weights_)
        assert np.linalg.norm(one.weights_) == pytest.approx(
            0.5 * one.history_[0].gradient_norm, rel=1e-6
        )

    def test_other_things_are_refused(self):
        jax, optax = pytest.importorskip("jax"), pytest.importorskip("optax")
        with pytest.raises(ParameterError, match="optimizer of optax"):
            fit(None, optimizer="adam")
        with pytest.raises(ParameterError, match="no keys"):
            fit(None, optimizer=optax.add_noise(1.0, 0.5, key=jax.random.key(0)))
        with pytest.raises(ParameterError, match="has its own"):
            fit(None, optimizer=optax.sgd(0.1), learning_rate=0.1)


class TestLinearEnds:
    """What a network for numbers does before and after its steps is claimed and taken once."""

    def fit(self, path):
        settings = {"epsilon": 4.0, "hidden": 2, "steps": 2, "progress": False}
        return NeuralRegressor(**settings, checkpoint=path).fit(X, X[:, 1], users=PEOPLE)

    def test_a_number_goes_on_too(self, tmp_path, drawn):
        first = self.fit(tmp_path / "training")
        draws = len(drawn[0])
        again = self.fit(tmp_path / "training")
        assert np.array_equal(first.weights_, again.weights_)
        assert len(drawn[0]) == draws > 4

    @pytest.mark.parametrize("step", [-1, 0, 2])
    @pytest.mark.parametrize("moment", MOMENTS)
    def test_each_is_taken_once(self, tmp_path, drawn, moment, step):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, moment, step)
            with pytest.raises(Killed):
                self.fit(tmp_path / "training")
        before = len(drawn[0])
        done = self.fit(tmp_path / "training")
        assert wrong(drawn) == set()
        # Only what was never claimed is still to be done; what was lost leaves the weights.
        if step == 2:
            assert (len(drawn[0]) > before) == (moment == "before the claim")
        price = sum(float(1 / each.noise_multiplier**2) * n for each, n in events(done))
        assert 0.9 * float(BUDGET) < price <= float(BUDGET) * (1 + 1e-9)

    def test_it_ends_with_what_it_began_with(self, tmp_path):
        seen = []
        begun, ended = LinearEnds.begun, LinearEnds.ended

        def beginning(self, *given):
            seen.append(begun(self, *given))
            return seen[-1]

        def ending(self, start, *given):
            seen.append(start)
            return ended(self, start, *given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LinearEnds, "begun", beginning)
            patch.setattr(LinearEnds, "ended", ending)
            for step in (-1, 1):
                with pytest.MonkeyPatch.context() as killing:
                    kill_at(killing, "after the result is written", step)
                    with pytest.raises(Killed):
                        self.fit(tmp_path / f"training{step}")
                self.fit(tmp_path / f"training{step}")
                first, last = seen
                assert np.array_equal(first, last)
                seen.clear()


def test_a_claimed_step_costs_at_least_what_its_draw_costs():
    """What a resumed run pays for a claim covers what the earlier one drew."""
    for multiplier in (0.51, 3.7, 812.25):
        account = Account.for_event(Gaussian(multiplier))
        account.pay(Gaussian(multiplier))
        assert account.square_left == 0
