"""From strangers' bytes to a result, with what is promised to each and what liars can do."""

import json

import numpy as np
import pytest

from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import SchemaError
from quorate.local.client import Client
from quorate.local.messages import MessageFormat, Reason
from quorate.local.server import Server
from quorate.local.shuffler import Shuffler
from quorate.local.task import Task
from reports_of import seeded_reports

LOCAL = Task.local(name="local", candidates=300, epsilon=3.0, seed="33" * 32)


def packed(task, values, seed=0):
    reports = seeded_reports(task.response, np.asarray(values), SeededNoise(seed))
    return [row.tobytes() for row in MessageFormat(task).write(reports)]


class TestEndToEnd:
    def test_clients_and_a_server_find_the_crowds_choice(self):
        with use_noise(SeededNoise(1)):
            messages = [Client(LOCAL, largest_epsilon=9.0).message([77, 77, i]) for i in range(300)]
        tally = Server(LOCAL).collect(messages)
        assert tally.winner == 77
        assert tally.accepted == 300
        assert abs(tally.popular.votes[0] - 300) < 6 * tally.popular.standard_errors[0]

    def test_through_a_shuffler(self):
        task = Task.shuffle(name="s", candidates=2**14, epsilon=1.0, delta=1e-6, users=100)
        shuffler = Shuffler(task)
        shuffler.admit_all(packed(task, np.full(100, 4321)))
        tally = Server(task).collect(shuffler.release())
        assert tally.winner == 4321
        assert tally.guarantees["public"].delta == 1e-6
        assert tally.guarantees["public"].epsilon == 1.0

    def test_messages_that_did_not_fill_the_shuffle_are_promised_less(self):
        task = Task.shuffle(name="s", candidates=8, epsilon=1.0, delta=1e-6, users=10)
        server = Server(task)
        few = server.collect([*packed(task, np.zeros(9, np.int64)), b"x", None])
        assert few.guarantees["public"].epsilon == task.report_epsilon
        # More messages later do not hide those that left before them.
        later = server.collect(packed(task, np.ones(10, np.int64), seed=5))
        assert later.guarantees["public"].epsilon == task.report_epsilon
        assert later.accepted == 19

    def test_several_full_batches_are_promised_what_each_was(self):
        task = Task.shuffle(name="s", candidates=8, epsilon=1.0, delta=1e-6, users=10)
        server = Server(task)
        server.collect(packed(task, np.zeros(12, np.int64)))
        server.collect([])
        tally = server.collect(packed(task, np.zeros(10, np.int64), seed=5))
        assert tally.guarantees["public"].epsilon == 1.0

    def test_parts_add_up_in_any_order(self):
        messages = packed(LOCAL, np.arange(100) % 5)
        whole = Server(LOCAL).collect(messages)
        server = Server(LOCAL)
        server.collect(messages[60:])
        parts = server.collect(b"".join(messages[:60]))
        assert parts.votes().votes.tolist() == whole.votes().votes.tolist()
        assert parts.accepted == 100

    def test_empty_collections_have_a_result(self):
        tally = Server(LOCAL).tally()
        assert tally.accepted == 0
        assert tally.winner == 0

    def test_candidates_are_estimated_with_errors(self):
        tally = Server(LOCAL).collect(packed(LOCAL, np.repeat([5, 9], 1000)))
        votes = tally.votes([5, 9, 11])
        assert np.all(np.abs(votes.votes - [1000, 1000, 0]) < 6 * votes.standard_errors)
        assert len(tally.votes().candidates) == 300
        large = Task.local(name="l", candidates=2**32, epsilon=3.0)
        with pytest.raises(SchemaError, match="candidates="):
            Server(large).collect(packed(large, [5])).votes()

    def test_the_tally_is_plain_data(self):
        tally = Server(LOCAL).collect([*packed(LOCAL, [1] * 50), b"?"])
        document = json.loads(json.dumps(tally.to_dict(), allow_nan=False))
        assert document["winner"] == tally.winner
        assert document["dropped"] == {"another length": 1}
        assert document["guarantees"]["public"]["epsilon"] == 3.0
        assert document["votes_one_liar_moves"] == pytest.approx(float(LOCAL.response.influence))


class TestTokens:
    def test_a_token_counts_once_over_all_calls(self):
        server, messages = Server(LOCAL), packed(LOCAL, [1, 2, 3, 4])
        server.collect(messages[:3], tokens=[b"a", b"b", b"a"])
        tally = server.collect(messages[3:], tokens=[b"b"])
        assert tally.accepted == 2
        assert tally.dropped == {Reason.REPEATED: 2}

    def test_a_token_that_is_none_admits_nothing(self):
        tally = Server(LOCAL).collect(packed(LOCAL, [1, 2, 3]), tokens=[b"a", [], None])
        assert tally.accepted == 1
        assert tally.dropped == {Reason.NOT_BYTES: 2}

    def test_as_many_tokens_as_messages(self):
        with pytest.raises(SchemaError, match="one token"):
            Server(LOCAL).collect(packed(LOCAL, [1]), tokens=[])


class TestLiars:
    """Liars cannot move the difference of two candidates further than is stated."""

    def test_no_set_of_messages_moves_more_than_stated(self):
        honest = packed(LOCAL, np.full(200, 5))
        before = Server(LOCAL).collect(honest).votes([5, 6]).votes
        response = LOCAL.response
        rng = np.random.default_rng(0)
        table = np.frombuffer(b"".join(packed(LOCAL, rng.integers(0, 300, 5000), 7)), np.uint8)
        for row in table.reshape(5000, -1)[:: 5000 // 40]:
            liars = [row.tobytes()] * 10
            after = Server(LOCAL).collect(honest + liars).votes([5, 6]).votes
            moved = abs((after[0] - after[1]) - (before[0] - before[1]))
            assert moved <= 10 * float(response.influence) + 1e-9

    def test_the_stated_influence_is_reached(self):
        honest = packed(LOCAL, np.full(200, 5))
        before = Server(LOCAL).collect(honest).votes([5, 6]).votes
        moves = []
        for message in packed(LOCAL, np.full(200, 6), 9):
            after = Server(LOCAL).collect([*honest, message]).votes([5, 6]).votes
            moves.append((after[1] - after[0]) - (before[1] - before[0]))
        assert max(moves) == pytest.approx(float(LOCAL.response.influence))
