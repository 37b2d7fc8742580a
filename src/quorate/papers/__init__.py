"""What the five papers print beyond estimators for every day.

``queries`` statistical queries and the local model · ``stability`` learners that agree ·
``conversion`` from records to people.
"""
