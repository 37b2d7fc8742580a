"""Every protocol, audited by what leaves the device: all bytes, and how many there are.

Nothing of the code's own arithmetic is believed. A source of noise hands out chosen words; the law
of what a user sends is found by walking all words that matter and by bisection where a word is
compared with a number. Neighbours are the users of the real door with other records, or with none.
"""

import importlib
import inspect
import math
import pkgutil
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from quorate import local as protocols
from quorate.app.serve.message_store import MessageStore
from quorate.core.account.account import Account
from quorate.core.guarantees import Approximate, Pure, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import NotEnoughUsersError, ParameterError, RelationMismatchError
from quorate.local import Client, Server, Shuffler, Task, local_choice, shuffle_choice
from quorate.local.randomizers.bucket_counts import BucketCounts, noise_table
from quorate.local.randomizers.hashed import HashedResponse
from quorate.local.randomizers.known_laws import Randomizer
from quorate.local.randomizers.transparent import HashedAnswer

COIN = 32
SEED = "00" * 32


class Words(SeededNoise):
    """Noise that hands out given words first."""

    def __init__(self, *words):
        super().__init__(0)
        self._given = [int(word) for word in words]

    def _uniform_words(self, count):
        given, self._given = self._given[:count], self._given[count:]
        rest = super()._uniform_words(count - len(given))
        return np.concatenate([np.array(given, dtype=np.uint64), rest])


def edge(same, low, high):
    """Return the first number of low < ... < high at which ``same`` ends, by bisection."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if same(middle) else (low, middle)
    return high


# --- one message of one device ---------------------------------------------------------------


def sent(task, records, word):
    with use_noise(Words(word)):
        return Client(task, largest_epsilon=9.0).message(records)


def message_law(task, records, send=sent, low_bits=None):
    """Return the law of a device's message: all low bits, and every coin by bisection."""
    low_bits = task.width * (task.response.bits + 1) if low_bits is None else low_bits
    law = {}
    for low in range(2**low_bits):

        def message(coin, low=low):
            # The bits in between are nobody's: any will do.
            return send(task, records, coin << COIN | 0x5A5A << low_bits & 0xFFFFFFFF | low)

        first, last = message(0), message(2**COIN - 1)
        kept = 2**COIN if first == last else edge(lambda c: message(c) == first, 0, 2**COIN - 1)  # noqa: B023
        for each, coins in ((first, kept), (last, 2**COIN - kept)):
            law[each] = law.get(each, 0) + Fraction(coins, 2 ** (COIN + low_bits))
    return {each: mass for each, mass in law.items() if mass}


def worst_ratio(laws):
    assert len({frozenset(law) for law in laws}) == 1, "a message that only some can send"
    return max(one[each] / two[each] for one, two in product(laws, laws) for each in one)


@pytest.mark.parametrize(
    ("candidates", "epsilon"), [(2, 0.5), (4, 1.0), (3, 0.3)], ids=["two", "four", "three"]
)
def test_a_message_tells_what_was_promised_and_no_more(candidates, epsilon):
    task = Task.local(name="t", candidates=candidates, epsilon=epsilon, seed=SEED)
    records = [[c] for c in range(candidates)] + [[], [candidates], None, ["x"]]
    laws = [message_law(task, each) for each in records]
    assert all(sum(law.values()) == 1 for law in laws)
    ratio = worst_ratio(laws)
    assert ratio <= math.exp(epsilon) * (1 + 1e-15)
    assert ratio > math.exp(epsilon) * (1 - 1e-7)


class TestBrokenDevices:
    """The same walk sees a device that keeps its hash a little too often, or tells by a byte."""

    TASK = Task.local(name="t", candidates=4, epsilon=1.0, seed=SEED)

    def ratio(self, send):
        return worst_ratio([message_law(self.TASK, each, send) for each in ([0], [1], [])])

    def test_a_coin_of_one_in_a_million(self):
        def send(task, records, word):
            coin = word >> COIN
            return sent(task, records, (coin * (10**6 - 1) // 10**6) << COIN | word & 0xFFFFFFFF)

        assert self.ratio(send) > math.exp(1.0) * (1 + 1e-7)

    def test_a_byte_that_says_whether_there_are_records(self):
        def send(task, records, word):
            return sent(task, records, word) + bytes([bool(records)])

        with pytest.raises(AssertionError, match="only some"):
            self.ratio(send)


def test_many_candidates_tell_no_more_given_their_masks():
    """Masks and levels are drawn without a look at the records; then one answer is left."""
    task = Task.local(name="t", candidates=2**32, epsilon=2.0, seed=SEED)
    rng, keep = np.random.default_rng(0), set()
    for _ in range(12):
        words = rng.integers(0, 2**64, task.response.words, dtype=np.uint64).tolist()

        def message(candidate, coin, words=tuple(words)):
            last = int(words[-1]) & 0xFFFFFFFF | coin << COIN
            with use_noise(Words(*words[:-1], last)):
                return Client(task, largest_epsilon=9.0).message([candidate])

        found = [[message(c, coin) for coin in (0, 2**COIN - 1)] for c in (0, 2**31 + 5, 2**40)]
        assert len({each[:-2] for pair in found for each in pair}) == 1
        assert len({last for _, last in found}) == 1
        assert found[2][0] == found[2][1], "nobody's candidate is kept"
        for candidate, (first, last) in zip((0, 2**31 + 5), found, strict=False):
            if first != last:
                keep.add(edge(lambda c: message(candidate, c) == first, 0, 2**COIN - 1))  # noqa: B023
    (kept,) = keep
    answers = 2**task.width
    assert 1 + answers * Fraction(kept, 2**COIN - kept) <= math.exp(2.0) * (1 + 1e-15)


def test_a_transparent_answer_is_drawn_by_the_law_it_states():
    answer: Randomizer = HashedAnswer(HashedResponse(candidates=4, epsilon=1.0, width=1))
    laws = []
    for value in (0, 3, -1, math.nan):

        def send(_, value, word):
            return answer.draw([value], Words(word))[0]

        law = message_law(None, value, send, low_bits=3)
        for told, mass in law.items():
            assert answer.probability(told, value) == pytest.approx(float(mass), rel=1e-12)
        laws.append(law)
    assert worst_ratio(laws) <= math.exp(1.0) * (1 + 1e-15)


# --- what a shuffler passes on ---------------------------------------------------------------


@cache
def shuffle_task(honest=1.0, users=4):
    return Task.shuffle(
        name="t", candidates=2, epsilon=1.0, delta=0.1, users=users, honest=honest, seed=SEED
    )


def crowd_law(laws):
    """Return the law of a multiset of messages."""
    law = {(): Fraction(1)}
    for one in laws:
        after = {}
        for held, mass in law.items():
            for message, chance in one.items():
                key = tuple(sorted((*held, message)))
                after[key] = after.get(key, 0) + mass * chance
        law = after
    return {key: float(mass) for key, mass in law.items()}


@cache
def device_laws(honest, users):
    task = shuffle_task(honest, users)
    return [message_law(task, records) for records in ([0], [1], [])]


def crowd_delta(honest, users, hiding):
    """Return the delta of one device among ``hiding`` honest ones; others' messages are known."""
    task, laws, worst = shuffle_task(honest, users), device_laws(honest, users), 0.0
    for others in combinations_with_replacement(range(3), hiding - 1):
        crowds = [crowd_law([laws[v], *(laws[o] for o in others)]) for v in range(3)]
        for one, two in product(crowds, crowds):
            excess = sum(
                max(0.0, mass - math.exp(task.epsilon) * two[k]) for k, mass in one.items()
            )
            worst = max(worst, excess)
    return worst


def first_release(task, admit, release):
    """Return how many messages there must be until any leaves, and what leaves."""
    messages = [Client(task, largest_epsilon=9.0).message([1]) for _ in range(2 * task.users)]
    for count, message in enumerate(messages, 1):
        admit(count, message)
        try:
            released = release()
        except NotEnoughUsersError:
            continue
        assert sorted(released) == sorted(messages[:count])
        return count
    raise AssertionError("nothing ever leaves")


def through_the_shuffler(task, folder):
    shuffler = Shuffler(task)
    return first_release(
        task, lambda i, m: shuffler.admit(m, token=b"%d" % i), lambda: shuffler.release()
    )


def through_the_store(task, folder):
    store = MessageStore(folder / "mailbox.db")
    store.open_task(task)
    length = len(Client(task, largest_epsilon=9.0).message([1]))

    def release():
        store.make_batch(task)
        ((_, joined),) = store.batches(task, outgoing=True)
        return [joined[i : i + length] for i in range(0, len(joined), length)]

    found = first_release(task, lambda i, m: store.keep(task, b"%d" % i, m), release)
    store.close()
    return found


@pytest.mark.parametrize("way", [through_the_shuffler, through_the_store])
@pytest.mark.parametrize(("honest", "users"), [(1.0, 3), (0.5, 6)])
def test_what_leaves_first_hides_everybody_in_it_as_promised(way, honest, users, tmp_path):
    """The honest share of what leaves must hide each other: three of three, three of six."""
    task = shuffle_task(honest, users)
    hiding = math.floor(honest * way(task, tmp_path))
    assert hiding == 3
    exact = crowd_delta(honest, users, hiding)
    assert 0.2 * task.delta < exact <= task.delta


def test_a_crowd_that_waits_for_honest_users_only_is_caught():
    """Three of six leave, one and a half of them honest: one device hides among nobody."""
    assert shuffle_task(0.5, 6).report_epsilon > 1.0
    assert crowd_delta(0.5, 6, hiding=1) > shuffle_task(0.5, 6).delta


def test_a_report_for_a_larger_crowd_is_caught():
    task = shuffle_task(1.0, 12)
    assert crowd_delta(1.0, 12, hiding=2) > task.delta


# --- counts of buckets -----------------------------------------------------------------------


def bucket_law(counts, value, bucket):
    """Return how many messages a user sends for a bucket, by bisection over its word."""

    def count(word):
        words = [2**63] * counts.buckets
        words[bucket] = word
        return int(counts.respond(value, noise=Words(*words))[bucket])

    law, start, last = {}, 0, 2**64 - 1
    while True:
        here = count(start)
        if count(last) == here:
            law[here] = law.get(here, 0) + Fraction(2**64 - start, 2**64)
            break
        end = edge(lambda word: count(word) == here, start, last)  # noqa: B023
        law[here] = law.get(here, 0) + Fraction(end - start, 2**64)
        start = end
    found = np.zeros(max(law) + 1)
    for messages, mass in law.items():
        assert messages >= 0
        found[messages] += float(mass)
    return found


def counted_law(counts, values, laws):
    """Return the law of all totals, an axis a bucket, padded to one shape."""
    joint = np.ones(1)
    for bucket in range(counts.buckets):
        total = np.ones(1)
        for value in values:
            total = np.convolve(total, laws[value][bucket])
        joint = np.multiply.outer(joint, np.pad(total, (0, 400 - len(total))))
    return joint[0]


def stick(one, two, epsilon):
    return float(np.maximum(one - math.exp(epsilon) * two, 0.0).sum())


def worst_count(counts):
    """Return the worst delta of all totals, and of the number of messages alone."""
    values = (0, 1, -1, 5)
    laws = {v: [bucket_law(counts, v, b) for b in range(counts.buckets)] for v in values}
    totals = number = 0.0
    for others in combinations_with_replacement(values[:3], counts.users - 1):
        crowds = [counted_law(counts, (v, *others), laws) for v in values]
        sums = [_anti_diagonals(crowd) for crowd in crowds]
        for one, two in product(range(len(values)), repeat=2):
            totals = max(totals, stick(crowds[one], crowds[two], counts.epsilon))
            number = max(number, stick(sums[one], sums[two], counts.epsilon))
    return totals, number


def _anti_diagonals(law):
    flipped = law[:, ::-1]
    size = law.shape[1]
    return np.array([np.trace(flipped, offset=size - 1 - k) for k in range(2 * size - 1)])


@pytest.mark.parametrize(
    "option",
    [{}, {"complement": True}, {"published": True, "users": 2, "epsilon": 4.0, "delta": 0.3}],
    ids=["plain", "complement", "published"],
)
def test_bucket_counts_tell_what_was_promised_by_totals_and_by_their_number(option):
    counts = BucketCounts(**{"buckets": 2, "users": 3, "epsilon": 1.0, "delta": 0.05, **option})
    totals, number = worst_count(counts)
    assert number <= totals <= counts.delta * (1 + 1e-9)
    if not counts.published:
        assert totals > 0.95 * counts.delta


def test_a_user_who_forgets_the_noise_without_a_bucket_is_caught():
    """The mistake of add/remove in small: whoever names nothing sends nothing at all."""

    class Silent(BucketCounts):
        def respond(self, value, *, noise):
            sent = super().respond(value, noise=noise)
            return sent if 0 <= value < self.buckets else np.zeros_like(sent)

    counts = Silent(buckets=2, users=3, epsilon=1.0, delta=0.05)
    totals, number = worst_count(counts)
    assert totals > 2 * counts.delta
    assert number > counts.delta


def test_half_the_noise_is_caught():
    counts = BucketCounts(buckets=2, users=3, epsilon=1.0, delta=0.05)
    object.__setattr__(counts, "table", noise_table(counts.noise.r / 6, counts.noise.p))
    assert worst_count(counts)[0] > counts.delta


def test_what_all_send_is_the_sum_of_what_each_sends():
    counts = BucketCounts(buckets=3, users=4, epsilon=1.0, delta=0.05)
    values = np.array([0, 2, -1, 2])
    words = np.random.default_rng(1).integers(0, 2**64, 12, dtype=np.uint64)
    together = counts.messages(values, account=Account.for_event(counts.event, noise=Words(*words)))
    each = [
        counts.respond(int(value), noise=Words(*words[3 * i : 3 * i + 3]))
        for i, value in enumerate(values)
    ]
    assert together.tolist() == np.sum(each, axis=0).tolist()


# --- protocols in one process ----------------------------------------------------------------


def test_a_simulated_choice_uses_the_report_of_the_device_and_no_other_noise():
    """The same words make the same votes as the messages of real devices do."""
    words = np.random.default_rng(2).integers(0, 2**64, 40, dtype=np.uint64)
    keys = np.arange(40) % 5 - 1
    task = Task.local(name="t", candidates=4, epsilon=1.0, seed=SEED)
    assert task.response.words == 1
    event = Pure(1.0)
    choice = local_choice(
        keys, candidates=4, epsilon=1.0, account=Account.for_event(event, noise=Words(*words))
    )
    pairs = zip(keys, words, strict=True)
    real = Server(task).collect([sent(task, [key], word) for key, word in pairs])
    assert choice.report == task.response
    assert choice.votes.votes.tolist() == real.popular.votes.tolist()
    assert choice.votes.candidates.tolist() == real.popular.candidates.tolist()


def test_a_simulated_shuffle_takes_the_report_that_its_crowd_can_hide():
    for honest, users in ((1.0, 3), (0.5, 6)):
        choice = shuffle_choice(
            np.zeros(users, np.int64), candidates=2, epsilon=1.0, delta=0.1, honest=honest
        )
        assert choice.report == shuffle_task(honest, users).response


AUDITED = {
    "HashedResponse": "by the messages of clients",
    "HashedAnswer": "by its own draws",
    "BucketCounts": "by totals, and by the number of messages",
    "Client": "by its bytes",
}
# Local laws of the papers, whose draws tests/local/randomizers/test_known_laws.py compares with
# their written laws, and these with their promises.
LAWS = {
    "BinaryResponse",
    "BitVectorResponse",
    "FiniteRandomizer",
    "GaussianResponse",
    "KaryResponse",
    "LaplaceResponse",
}


def test_everything_that_answers_for_a_user_is_audited_here():
    """Whoever writes another randomizer finds this list."""
    found = set()
    for module in pkgutil.walk_packages(protocols.__path__, "quorate.local."):
        for name, kind in vars(importlib.import_module(module.name)).items():
            own = inspect.isclass(kind) and kind.__module__ == module.name
            named = own and not inspect.isabstract(kind) and not name.startswith("_")
            if named and any(hasattr(kind, door) for door in ("respond", "draw", "message")):
                found.add(name)
    assert found == set(AUDITED) | LAWS


# --- no protocol hides who takes part ---------------------------------------------------------


def test_no_protocol_takes_neighbours_who_come_and_go():
    """Who takes part sends bytes, and everybody sees them: add/remove is refused, by all."""
    keys = np.zeros(5, np.int64)
    small = {"candidates": 4, "epsilon": 1.0}
    with pytest.raises(ParameterError, match="REPLACE"):
        BucketCounts(buckets=2, users=5, epsilon=1.0, delta=0.1, relation=Relation.ADD_REMOVE)
    asked = {
        Pure(1.0): (
            lambda account: local_choice(keys, account=account, **small),
            lambda account: HashedResponse(**small).respond(keys, account=account),
        ),
        Approximate(1.0, 0.1): (
            lambda account: shuffle_choice(keys, delta=0.1, account=account, **small),
            lambda account: BucketCounts(buckets=2, users=5, epsilon=1.0, delta=0.1).messages(
                keys, account=account
            ),
        ),
    }
    for event, doors in asked.items():
        for door in doors:
            door(Account.for_event(event))
            with pytest.raises(RelationMismatchError):
                door(Account.for_event(event, relation=Relation.ADD_REMOVE))
    for task in (Task.local(name="t", **small), shuffle_task()):
        promises = task.guarantees().values()
        assert {promise.relation for promise in promises} == {Relation.REPLACE}
