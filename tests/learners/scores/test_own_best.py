"""Own best: users approve of all hypotheses that are best on their own records."""

import numpy as np

from quorate.core.questions.lines import Heights
from quorate.core.users import UserData
from quorate.learners.concepts import Thresholds
from quorate.learners.scores import AnyMistake, MistakeLine, MistakeTable, OwnBest
from rule_worlds import line_losses, table_losses


def crowd(seed, n=20, m=5, points=6):
    rng = np.random.default_rng(seed)
    return UserData(
        rng.integers(0, points, (n * m, 1)).astype(float),
        rng.integers(0, 2, n * m).astype(float),
        offsets=np.arange(n + 1) * m,
    )


def test_the_fewest_mistakes_are_attained_ones_even_when_records_tie():
    for seed in range(30):
        data = crowd(seed)
        table = np.concatenate(
            [
                mistakes
                for mistakes, _ in MistakeTable(concepts=Thresholds(0, 5), users=data).batches()
            ]
        )
        events = MistakeLine(concepts=Thresholds(0, 5), users=data).events
        np.testing.assert_array_equal(Heights.of(events).fewest(), table.min(axis=1))


def test_with_one_record_a_user_it_is_any_mistake():
    data = crowd(1, m=1)
    own, any_mistake = (
        table_losses(score, Thresholds(0, 5), data) for score in (OwnBest(), AnyMistake())
    )
    np.testing.assert_array_equal(own, any_mistake)


def test_a_user_without_records_approves_of_everything():
    data = UserData(np.array([[3.0]]), np.array([1.0]), offsets=[0, 0, 1])
    assert line_losses(OwnBest(), Thresholds(0, 5), data)[1].max() == 1


def test_nobody_at_all_is_fine():
    data = UserData(np.zeros((0, 1)), np.zeros(0), offsets=[0])
    assert line_losses(OwnBest(), Thresholds(0, 5), data)[1].tolist() == [0]
