"""The systems of the five papers that are not everyday estimators.

``queries`` statistical queries and the local model · ``stability`` learners on which users agree ·
``conversion`` from item level to user level.
"""
