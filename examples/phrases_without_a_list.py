"""
Phrases without a list
======================

Which drugs do patients name in their own words? Nobody can list all spellings beforehand, and a
list of everything that was written would name people. ``PopularPhrases`` releases what many people
write, and nothing that one person alone writes.
"""

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa

import quorate as qr

rng = np.random.default_rng(0)
drugs = ["aspirin", "ibuprofen", "vitamin d", "st john's wort", "fish oil"]
patients = rng.integers(0, 3000, 9000)
texts = [f"i take {drug}" for drug in rng.choice(drugs, 9000, p=[0.4, 0.3, 0.2, 0.08, 0.02])]
texts[0] = "i take ann's home made potion"
notes = pa.table({"patient": patients, "note": texts})

# %%
# Words first, then phrases of two and three words among those whose parts were found.
found = qr.PopularPhrases(epsilon=1.0, delta=1e-6, of="words", lengths=3)
found.fit(notes, users="patient")
for phrase in found.phrases_:
    print(phrase)

# %%
# How many people had to use a phrase is known before the fit.
print(found.error_)
print(found.guarantee_)

# %%
# The more phrases somebody uses, the less weight each of them has, and the more people it takes.
uses, people = zip(*found.error_.people, strict=True)
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.loglog(uses, people, marker="o")
axes.set(xlabel="phrases that each person uses", ylabel="people who are enough")
plt.show()
