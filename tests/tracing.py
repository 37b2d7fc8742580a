"""Watch who takes something out of people that is not sealed.

    make trace                     the whole suite, watched
    with watched() as seen: ...    in a test

Rows, numbers of users and exact totals leave a crowd through few doors. Each is wrapped: it looks
up the stack for who asks. Data modules pass on what they are asked for; the core asks for itself,
and on behalf of a statistic that it calls. A module of an estimator's room that asks outside of
such a call, while an estimator or an account is at work, holds a private number and is written
down. A test that shows made-up users to a statistic by hand is not meant.
"""

import contextlib
import functools
import sys
from collections import Counter

from core_border import CLOSED_OPERATIONS, HOLDERS, TRUSTED
from quorate.core.account.account import Account
from quorate.core.users import crowd as crowds
from quorate.core.users.crowd import Crowd
from quorate.core.users.data import UserData
from quorate.estimators import UserEstimator
from quorate.local import oracle as local_oracle

# Where rows are grouped, stored and cut into parts: what a door returns may pass through them.
DATA = ("quorate.core.users", "quorate.data.engines", "quorate.data.files")
# Who calls a function of one user's records: whatever it reads meanwhile stays inside. A local
# oracle is the users' devices.
CALLERS = ("quorate.core.", crowds.__name__, local_oracle.__name__)
# The door of every fit, which makes users of the caller's table, is a reader as well.
CORE = {"quorate.estimators"} | {
    "quorate." + name[:-3].replace("/", ".") for name in TRUSTED | CLOSED_OPERATIONS
}
READ = ("X", "y", "offsets", "marks", "n_records")
ASKED = {
    UserData: (*READ, "record_counts", "user_index", "user_sums", "user_means", "map", "add_up"),
    Crowd: ("along_a_line", "gather", "together"),
}


def who_asks(frame):
    """Return the module and the function that get what a door returns; None if nobody outside."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name in CORE or name.startswith(CALLERS) or not name.startswith("quorate."):
            return None
        if not name.startswith(DATA):
            inside = _inside_a_question(frame) or not _at_work(frame)
            return None if inside else (name, frame.f_code.co_name)
        frame = frame.f_back
    return None


def _at_work(frame):
    while frame is not None:
        if any(isinstance(held, UserEstimator | Account) for held in frame.f_locals.values()):
            return True
        frame = frame.f_back
    return False


def _inside_a_question(frame):
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(CALLERS):
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def watched():
    """Yield who has asked, through which door and how often, while the block runs."""
    seen, found = Counter(), []
    for kind, names in ASKED.items():
        for name in names:
            door = vars(kind)[name]
            found.append((kind, name, door))
            setattr(kind, name, _watching(door, name, seen))
    try:
        yield seen
    finally:
        for kind, name, door in found:
            setattr(kind, name, door)


def _watching(door, name, seen):
    def note():
        asker = who_asks(sys._getframe(2))
        if asker is not None:
            seen[*asker, name] += 1

    if isinstance(door, property):

        def read(self):
            note()
            return door.fget(self)

        return property(read)

    @functools.wraps(door)
    def asked(self, *given, **named):
        note()
        return door(self, *given, **named)

    return asked


def holders(seen):
    """Return the modules that held a private number, as they are listed."""
    return {name.removeprefix("quorate.").replace(".", "/") + ".py" for name, _, _ in seen}


# As a plugin: pytest -p tracing.


def pytest_configure(config):
    """Begin to watch."""
    config.watch = watched()
    config.seen = config.watch.__enter__()
    config.held = set()


def pytest_testnodedown(node, error):
    """Add what a worker has seen."""
    del error
    node.config.held |= set(node.workeroutput.get("held", ()))


def pytest_sessionfinish(session):
    """Name who holds what nobody has listed; a run in which somebody does has failed."""
    config = session.config
    config.held |= holders(config.seen)
    if hasattr(config, "workeroutput"):
        config.workeroutput["held"] = sorted(config.held)
        return
    for name in sorted(config.held):
        print(f"\n{'in debt' if name in HOLDERS else 'NOT LISTED'}: {name}", end="")
    if config.held - HOLDERS:
        session.exitstatus = 1
