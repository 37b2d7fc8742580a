"""The forecast of a fit uses public numbers only."""

from quorate import Relation
from quorate.app.tasks.fitting import fit
from quorate.app.tasks.forecast import forecast
from quorate.data.files.table_files import TableFile
from quorate.ranges import Limit


def test_it_is_the_planners_answer_for_these_users(mean_fit, mean_plan):
    assert mean_plan.task == "mean"
    assert mean_plan.users == mean_fit.n_users
    assert mean_plan.records == 10
    assert dict(mean_plan.size)["bounds"] == 150.0
    assert mean_plan.solved_for == "error"


def test_cut_offs_are_planned_over_their_domain(visits, make_request):
    asked = make_request(
        "threshold", ("dose",), (Limit(0, 999),), target="ill", classes=("no", "yes")
    )
    assert dict(forecast(fit(asked, TableFile(visits))).size)["domain"] == 1000


def test_there_is_none_where_users_are_private(visits, make_request):
    asked = make_request("median", relation=Relation.ADD_REMOVE)
    assert forecast(fit(asked, TableFile(visits))) is None


def test_medians_and_models_have_one(visits, make_request):
    assert forecast(fit(make_request("median"), TableFile(visits))).task == "median"
    asked = make_request("linear", limits=(Limit(0, 300),), target="cost", delta=1e-6)
    assert forecast(fit(asked, TableFile(visits))).task == "linear"


def test_a_plan_that_fails_does_not_take_a_paid_release_away(mean_fit, monkeypatch):
    from quorate.app.tasks import forecast as module
    from quorate.exceptions import NumericalFailure

    def failing(*_, **__):
        raise NumericalFailure("no")

    monkeypatch.setattr(module, "plan", failing)
    assert forecast(mean_fit) is None
