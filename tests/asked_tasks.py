"""A request for every task, about the table of visits in ``conftest.py``."""

from quorate.app.catalogue import TASKS, Target
from quorate.ranges import Limit

ASKED = {
    "mean": {"features": ("age", "cost"), "delta": 1e-6},
    "median": {},
    "threshold": {"features": ("dose",), "limits": (Limit(0, 999),), "classes": ("no", "yes")},
    "logistic": {
        "features": ("dose",),
        "limits": (Limit(0, 999),),
        "classes": ("no", "yes"),
        "delta": 1e-6,
    },
    "svc": {
        "features": ("dose",),
        "limits": (Limit(0, 999),),
        "classes": ("no", "yes"),
        "delta": 1e-6,
    },
    "linear": {"target": "cost", "delta": 1e-6},
    "ridge": {"target": "cost", "delta": 1e-6},
    "huber": {"target": "cost", "delta": 1e-6},
    "net": {
        "features": ("dose",),
        "limits": (Limit(0, 999),),
        "target": "ill",
        "classes": ("no", "yes"),
        "delta": 1e-6,
        "options": {"hidden": "2", "steps": "2"},
    },
    "net-number": {
        "target": "cost",
        "delta": 1e-6,
        "options": {"hidden": "2", "steps": "2"},
    },
}
ASKED["table"] = {
    "features": (),
    "limits": (Limit(0, 999, "dose"),),
    "options": {"by": "ill", "keys": "no,yes", "statistics": "visits=count,dose=sum"},
}
ASKED["phrases"] = {"features": (), "delta": 1e-6, "options": {"column": "ill", "of": "words"}}
ASKED["synth"] = {
    "features": ("dose", "ill"),
    "limits": (Limit(0, 999, "dose"),),
    "categories": {"ill": ("no", "yes")},
    "delta": 1e-6,
    "options": {"bins": "4"},
}
for _task in ("threshold", "logistic", "svc"):
    ASKED[_task]["target"] = "ill"
for _task in ("linear", "ridge", "huber", "mean", "net-number"):
    ASKED[_task]["limits"] = (Limit(0, 300),)


def _asked(task):
    """Return a request for whatever task, from what the catalogue says about it."""
    descriptor = TASKS[task]
    asked = {"features": ("dose",), "limits": (Limit(0, 999),), "options": dict(descriptor.asks)}
    if descriptor.target is Target.LABEL:
        asked |= {"target": "ill", "classes": ("no", "yes")}
    if descriptor.target is Target.NUMBER:
        asked |= {"target": "cost", "limits": (Limit(0, 300),)}
    return asked


ASKED |= {task: _asked(task) for task in TASKS if task not in ASKED}
for _task in ("covariance", "normal"):
    ASKED[_task]["delta"] = 1e-6
