"""One way to write a report; whatever else is sent is dropped, counted, and never raises."""

import numpy as np
import pytest

from quorate.core.noise import SeededNoise
from quorate.local.messages import HEADER, MessageFormat, Reason
from quorate.local.task import Task
from reports_of import seeded_reports

SEED = "00" * 32


def make(candidates=2**14, epsilon=1.0):
    return Task.local(name="t", candidates=candidates, epsilon=epsilon, seed=SEED)


def rows(task, values, seed=1):
    reports = seeded_reports(task.response, np.asarray(values), SeededNoise(seed))
    return reports, [row.tobytes() for row in MessageFormat(task).write(reports)]


SIZES = [2, 2**7, 2**8, 2**14, 2**20, 2**24, 2**32, 2**40, 2**48, 2**56, 2**63]


class TestWriting:
    def test_22_bytes_for_two_to_the_14(self):
        message = rows(make(), [3])[1][0]
        assert len(message) == 22 == MessageFormat(make()).length
        assert message[:3] == b"QRM"
        assert message[3:8] == bytes([1, 1, 0, 6, 0])
        assert message[8:16].hex() == make().id
        assert message[-1] == 0

    @pytest.mark.parametrize("candidates", SIZES)
    @pytest.mark.parametrize("epsilon", [0.5, 4.0])
    def test_what_is_written_is_read(self, candidates, epsilon):
        task = make(candidates, epsilon)
        reports, messages = rows(task, np.arange(50) % min(candidates, 2**62))
        assert {len(message) for message in messages} == {MessageFormat(task).length}
        for form in (messages, b"".join(messages), iter(messages)):
            batch = MessageFormat(task).read(form)
            assert batch.dropped == {}
            assert batch.reports.masks.tolist() == reports.masks.tolist()
            assert batch.reports.answers.tolist() == reports.answers.tolist()
            assert batch.reports.levels.tolist() == reports.levels.tolist()

    def test_masks_are_little_endian(self):
        task = make(2**20)
        reports, messages = rows(task, [1])
        size = MessageFormat(task).mask_bytes
        for i, mask in enumerate(reports.masks[:, 0].tolist()):
            start = HEADER + i * size
            assert int.from_bytes(messages[0][start : start + size], "little") == mask


def edited(message, place, value):
    changed = bytearray(message)
    changed[place] = value
    return bytes(changed)


class TestReasons:
    task = make()
    good = rows(task, [5])[1][0]

    @pytest.mark.parametrize(
        ("message", "reason"),
        [
            ("text", Reason.NOT_BYTES),
            (None, Reason.NOT_BYTES),
            (bytearray(good), Reason.NOT_BYTES),
            (b"", Reason.WRONG_LENGTH),
            (good + b"\0", Reason.WRONG_LENGTH),
            (good[:-1], Reason.WRONG_LENGTH),
            (edited(good, 0, 0), Reason.NO_MESSAGE),
            (edited(good, 3, 2), Reason.OTHER_VERSION),
            (edited(good, 4, 0), Reason.OTHER_KIND),
            (edited(good, 5, 1), Reason.NO_LEVEL),
            (edited(good, 6, 7), Reason.WRONG_PAYLOAD),
            (edited(good, 8, good[8] ^ 1), Reason.FOREIGN_TASK),
            (edited(good, 17, 64), Reason.WRONG_MASK),
            (edited(good, 19, 128), Reason.WRONG_MASK),
            (edited(good, 20, 4), Reason.WRONG_ANSWER),
            (edited(good, 21, 1), Reason.NOT_ZERO),
        ],
    )
    def test_each_reason_is_named(self, message, reason):
        batch = MessageFormat(self.task).read([self.good, message, self.good])
        assert batch.dropped == {reason: 1}
        assert len(batch.reports) == 2

    def test_bits_below_a_prefix_are_refused(self):
        task = make(2**32)
        _, messages = rows(task, np.arange(30))
        low = next(m for m in messages if m[5] == 0)
        assert MessageFormat(task).read([edited(low, HEADER, 1)]).dropped == {Reason.WRONG_MASK: 1}
        high = next(m for m in messages if m[5] == 1)
        assert MessageFormat(task).read([edited(high, HEADER, 1)]).dropped == {}

    def test_messages_of_a_task_with_the_same_seed_are_foreign(self):
        other = Task.local(name="u", candidates=2**14, epsilon=1.0, seed=SEED)
        batch = MessageFormat(other).read([self.good])
        assert batch.dropped == {Reason.FOREIGN_TASK: 1}

    def test_a_rest_at_the_end_is_one_wrong_message(self):
        batch = MessageFormat(self.task).read(self.good * 3 + b"abc")
        assert len(batch.reports) == 3
        assert batch.dropped == {Reason.WRONG_LENGTH: 1}


class TestFuzz:
    """Random and mutated bytes: no exception, and every one is counted. --full of the benchmark
    takes a million."""

    def pieces(self, task, count, seed):
        rng = np.random.default_rng(seed)
        _, good = rows(task, np.zeros(count // 2, np.int64), seed)
        length = MessageFormat(task).length
        for i in range(count):
            kind = i % 4
            if kind == 0:
                yield rng.bytes(int(rng.integers(0, 2 * length)))
            elif kind == 1:
                yield rng.bytes(length)
            else:
                message = bytearray(good[i // 2])
                for place in rng.integers(0, length, int(rng.integers(1, 4))):
                    message[place] = rng.integers(256)
                yield bytes(message)

    @pytest.mark.parametrize("candidates", [2**14, 2**32, 300])
    def test_everything_is_counted(self, candidates):
        task = make(candidates)
        messages = list(self.pieces(task, 8000, 1))
        batch = MessageFormat(task).read(messages)
        assert len(batch.reports) + sum(batch.dropped.values()) == 8000
        assert set(batch.dropped) >= {Reason.WRONG_LENGTH, Reason.NO_MESSAGE, Reason.FOREIGN_TASK}
        response = task.response
        assert np.all(batch.reports.answers < 2**response.width)
        assert np.all(batch.reports.levels < response.levels)
        allowed = np.array(response.prefix_masks, dtype=np.uint64)[batch.reports.levels]
        assert not np.any(batch.reports.masks & ~allowed)
        # What was accepted is canonical: writing it again gives the very bytes.
        again = {row.tobytes() for row in MessageFormat(task).write(batch.reports)}
        assert again <= set(messages)
        assert len(batch.reports) > 0
