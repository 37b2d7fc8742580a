"""All exceptions and warnings of Quorate.

The tree::

    QuorateError
    ├── ParameterError                 (ValueError)      a parameter is outside its range
    │   ├── UnboundedContributionError                   a public bound is missing
    │   └── UnknownArgumentError       (TypeError)       there is no such argument
    ├── SchemaError                    (ValueError)      a table has a wrong shape, column or type
    │   └── WithheldError                                a fault among rows; its text is withheld
    ├── GridOverflowError              (OverflowError)   public numbers: a sum could overflow
    ├── NotEnoughUsersError            (RuntimeError)    public numbers: the analysis is hopeless
    ├── AccountingError                (RuntimeError)
    │   ├── UnsupportedEventError                        no rule prices this event
    │   ├── RelationMismatchError                        two neighbouring relations in one sum
    │   └── NumericalFailure           (ArithmeticError) no guarantee can be claimed
    ├── LedgerError                    (RuntimeError)
    │   ├── BudgetExceededError                          refused: the budget is not there
    │   ├── UnknownDatasetError        (LookupError)     no budget was ever set for this name
    │   └── LedgerFileError                              damaged, foreign or newer file
    ├── QueriesExhaustedError          (RuntimeError)    more queries than were paid for
    ├── OtherProcessError              (RuntimeError)    a fork would spend its parent's budget
    ├── AlreadyAnsweredError           (RuntimeError)    a device has answered a task before
    ├── SealedError                    (TypeError)       a private number would be read
    ├── AuditError                     (RuntimeError)    a program cannot be audited as it is
    │   └── EnumerationError                             its runs cannot all be walked
    ├── ReplayMismatchError            (RuntimeError)    a replay asked for other noise
    ├── MixedArithmeticError           (RuntimeError)    workers whose last bits differ
    ├── SeriesStoreError               (RuntimeError)    the state of a series is not the latest
    ├── CheckpointError                (RuntimeError)    a training goes on elsewhere, or is another
    ├── SpoolError                     (OSError)         records could not be kept on disk
    └── MissingExtraError              (ImportError)     an optional dependency is not installed

A message says what was expected, what was given and what to do. It may quote parameters, never
records, because an exception is an output that could reveal data.
"""

from __future__ import annotations

__all__ = [
    "AccountingError",
    "AlreadyAnsweredError",
    "AuditError",
    "BudgetExceededError",
    "CheckpointError",
    "EnumerationError",
    "GridOverflowError",
    "LedgerError",
    "LedgerFileError",
    "MissingExtraError",
    "MixedArithmeticError",
    "NotEnoughUsersError",
    "NumericalFailure",
    "OtherProcessError",
    "ParameterError",
    "QueriesExhaustedError",
    "QuorateError",
    "RelationMismatchError",
    "ReplayMismatchError",
    "SchemaError",
    "SealedError",
    "SeriesStoreError",
    "SpoolError",
    "UnboundedContributionError",
    "UnknownArgumentError",
    "UnknownDatasetError",
    "UnsupportedEventError",
    "WithheldError",
]


class QuorateError(Exception):
    """Base class of all exceptions of Quorate."""


class ParameterError(QuorateError, ValueError):
    """A parameter is outside its range."""


class UnboundedContributionError(ParameterError):
    """A bound that must be public knowledge is missing; it is never taken from the data."""


class UnknownArgumentError(ParameterError, TypeError):
    """The estimator has no argument of this name."""


class SchemaError(QuorateError, ValueError):
    """A table has the wrong shape, columns or types (all of them public)."""


class WithheldError(SchemaError):
    """A computation on rows failed; its message is withheld, because it may quote records."""


class GridOverflowError(QuorateError, OverflowError):
    """The number of users times the bound, both public, does not fit into 64 bits."""


class NotEnoughUsersError(QuorateError, RuntimeError):
    """Public numbers show that the analysis cannot work with so few users."""


class AccountingError(QuorateError, RuntimeError):
    """A privacy cost cannot be computed."""


class UnsupportedEventError(AccountingError):
    """No rule prices this event, or not for this relation."""


class RelationMismatchError(AccountingError):
    """Costs under two neighbouring relations cannot be added."""


class NumericalFailure(AccountingError, ArithmeticError):
    """A computation did not converge or lost its precision: no guarantee is claimed."""


class LedgerError(QuorateError, RuntimeError):
    """The ledger refused a charge or an operation."""


class BudgetExceededError(LedgerError):
    """The request costs more than what is left; nothing was charged and no data were touched."""


class UnknownDatasetError(LedgerError, LookupError):
    """No budget was set for a data set of this name."""


class LedgerFileError(LedgerError):
    """The ledger file is damaged, not a ledger, or from a newer version; it was not changed."""


class QueriesExhaustedError(QuorateError, RuntimeError):
    """More queries were asked than were paid for."""


class OtherProcessError(QuorateError, RuntimeError):
    """A budget was opened before a fork; only the process that opened it can spend it."""


class AlreadyAnsweredError(QuorateError, RuntimeError):
    """The device has already answered this task, and its message was acknowledged."""


class SealedError(QuorateError, TypeError):
    """Code outside the core tried to read or make a private number."""


class AuditError(QuorateError, RuntimeError):
    """A program cannot be audited in its present form; audited programs never raise this error."""


class EnumerationError(AuditError):
    """The runs of a program cannot be enumerated.

    There are too many, or they depend on more than the noise.
    """


class ReplayMismatchError(QuorateError, RuntimeError):
    """Two runs on neighbouring data requested different noise.

    So the control flow depends on the data.
    """


class MixedArithmeticError(QuorateError, RuntimeError):
    """Workers compute floating-point functions that differ in their last bits."""


class SeriesStoreError(QuorateError, RuntimeError):
    """The store of a series is missing, older than the ledger, or belongs to another series."""


class CheckpointError(QuorateError, RuntimeError):
    """A checkpoint is not the latest, belongs to another training, or is continued elsewhere."""


class SpoolError(QuorateError, OSError):
    """The disk is too full for a copy of the records; partial files were removed."""


class MissingExtraError(QuorateError, ImportError):
    """An optional dependency is not installed."""
