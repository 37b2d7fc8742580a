"""The style sheet of report pages: light and dark, for phones and wide screens."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root {
  --paper: #fbfaf7; --card: #ffffff; --ink: #1c2430; --muted: #556070; --rule: #dcdfe4;
  --accent: #0b6b5d; --soft: #e4f1ee; --alert: #8a3b00; --alert-soft: #fdf0e3;
  --series-1: #0b6b5d; --series-2: #b4490f; --series-3: #4a4fb0; --series-4: #9a1f5c;
  --series-5: #6b6b1e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #12161c; --card: #1a2029; --ink: #e8ecf1; --muted: #a3adba; --rule: #343c48;
    --accent: #5fd0ba; --soft: #15302d; --alert: #ffb37a; --alert-soft: #3a2413;
    --series-1: #5fd0ba; --series-2: #ff9d66; --series-3: #a3a8ff; --series-4: #ff8fc2;
    --series-5: #d8d86a;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; max-width: 60rem; padding: 0 1rem 3rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans",
  "DejaVu Sans", sans-serif; overflow-wrap: anywhere;
}
a { color: var(--accent); }
a:focus-visible, [tabindex]:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: .5rem; padding: .5rem 1rem; background: var(--card); z-index: 1; }
header { padding: 1.2rem 0 .8rem; }
.brand {
  margin: 0; color: var(--accent); font-weight: 700; letter-spacing: .08em; font-size: .85rem;
  text-transform: uppercase;
}
h1 { margin: .2rem 0 .5rem; font-size: clamp(1.6rem, 5vw, 2.4rem); line-height: 1.2; }
.lead { margin: 0; font-size: 1.1rem; color: var(--muted); max-width: 46rem; }
.tiles {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .75rem;
  margin: 1rem 0 0;
}
.tiles div {
  display: flex; flex-direction: column-reverse; justify-content: flex-end; padding: .5rem .9rem;
  background: var(--card); border: 1px solid var(--rule); border-radius: .6rem;
}
.tiles dt { color: var(--muted); font-size: .85rem; }
.tiles dd {
  margin: 0; font-size: 1.5rem; font-weight: 650; line-height: 1.25; overflow-wrap: anywhere;
  font-variant-numeric: tabular-nums;
}
nav { border-block: 1px solid var(--rule); }
nav ul {
  display: flex; flex-wrap: wrap; gap: 0 1.25rem; margin: 0; padding: .4rem 0; list-style: none;
}
nav li { min-width: 0; }
nav a { display: inline-block; padding: .3rem 0; text-decoration: none; }
nav a:hover { text-decoration: underline; }
main:focus { outline: none; }
section { padding-top: .4rem; }
h2 { margin: 1.2rem 0 .6rem; font-size: 1.3rem; line-height: 1.3; }
p { max-width: 46rem; }
blockquote {
  margin: .8rem 0; padding: .2rem 1.1rem; max-width: 46rem; background: var(--soft);
  border-left: .3rem solid var(--accent); border-radius: .3rem;
}
.warning {
  padding: .6rem 1rem; background: var(--alert-soft); color: var(--alert);
  border-left: .3rem solid var(--alert); border-radius: .3rem;
}
.facts {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
  gap: 0 2rem; margin: .8rem 0;
}
.facts div {
  display: flex; justify-content: space-between; gap: 1rem; padding: .35rem 0;
  border-bottom: 1px solid var(--rule);
}
.facts dt { color: var(--muted); flex: none; max-width: 50%; }
.facts dd { margin: 0; text-align: right; overflow-wrap: anywhere; min-width: 0; }
.frame {
  overflow-x: auto; width: fit-content; min-width: min(100%, 22rem);
  max-width: 100%; margin: 1rem 0; background: var(--card);
  border: 1px solid var(--rule);
  border-radius: .6rem;
}
/* A table that is wider than the text goes on to the edge of the window before it scrolls. */
@media (min-width: 62rem) { .frame { max-width: calc(50vw + 27.5rem); } }
table { border-collapse: collapse; width: 100%; }
caption {
  padding: .7rem .9rem .3rem; text-align: left; color: var(--muted); font-size: .9rem;
}
th, td {
  padding: .45rem .9rem; text-align: left; border-top: 1px solid var(--rule);
  overflow-wrap: break-word;
}
thead th { color: var(--muted); font-weight: 600; font-size: .85rem; vertical-align: bottom; }
tbody th { font-weight: 500; }
.numbers td, .numbers thead th:not(:first-child) {
  text-align: right; font-variant-numeric: tabular-nums;
}
/* Numbers have no spaces; on phones the sentence of a rule goes on in the next line. */
@media (min-width: 40rem) { .numbers td { white-space: nowrap; } }
/* Lines to copy break where the window ends; on phones narrow margins leave room for a column. */
.words td, .words th { overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  th, td { padding: .4rem .5rem; }
  caption { padding: .6rem .5rem .3rem; }
}
figure { margin: 1.2rem 0; max-width: 36rem; }
figure svg { display: block; width: 100%; height: auto; }
figure svg text { font-family: inherit !important; }
figcaption { color: var(--muted); font-size: .9rem; margin-top: .4rem; }
.meter { max-width: 40rem; }
.meter p { margin: .3rem 0; }
.meter svg { display: block; width: 100%; height: .8rem; border-radius: .4rem; }
.meter .whole { fill: var(--rule); }
.meter .used { fill: var(--accent); }
footer {
  margin-top: 2.5rem; border-top: 1px solid var(--rule); color: var(--muted); font-size: .9rem;
}
@media print { nav, .skip { display: none; } section { break-inside: avoid; } }
"""
