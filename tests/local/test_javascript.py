"""The browser's client: its limit, its memory, its randomness; in Node, and in a real browser."""

import json
import math
import shutil
import subprocess
from fractions import Fraction

import numpy as np
import pytest

from browser import CHROMIUM, open_browser
from quorate.local.messages import MessageFormat
from quorate.local.task import Task
from quorate.local.vectors import client_script, message_from_bytes

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs node")
TASK = Task.local(name="t", candidates=1000, epsilon=1.0, seed="77" * 32)

# What every program starts with: whoever draws from Math.random fails, and a page load is a new
# copy of the script over the same storage.
START = """
Math.random = () => { throw new Error("Math.random is no source of secrets"); };
class Storage {
  constructor() { this.held = new Map(); }
  getItem(key) { return this.held.has(key) ? this.held.get(key) : null; }
  setItem(key, value) { this.held.set(key, String(value)); }
}
function load() {
  delete require.cache[require.resolve(SCRIPT)];
  return require(SCRIPT);
}
const said = async (work) => {
  try {
    return ["fine", await work()];
  } catch (problem) {
    return [problem.constructor.name, problem.message];
  }
};
const shown = ({ message, token }) => [Buffer.from(message).toString("hex"), token];
"""


def run(tmp_path, program, **given):
    """Run a program in Node and return what its function ``main`` returns."""
    (tmp_path / "client.js").write_text(client_script())
    values = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in given.items())
    script = (
        f"const SCRIPT = {json.dumps(str(tmp_path / 'client.js'))};\n{values}{START}\n{program}\n"
    )
    script += "main().then((found) => console.log(JSON.stringify(found)));\n"
    (tmp_path / "run.js").write_text(script)
    done = subprocess.run(
        [NODE, str(tmp_path / "run.js")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@needs_node
class TestLimit:
    def test_a_task_that_asks_for_more_than_the_limit_is_refused(self, tmp_path):
        shuffled = Task.shuffle(name="s", candidates=8, epsilon=1.0, delta=1e-3, users=50)
        assert shuffled.report_epsilon > 1.5
        program = """
        async function main() {
          const storage = new Storage(), found = [];
          for (const text of TASKS) for (const largestEpsilon of LIMITS) {
            const open = () => load().Client.create(text, { largestEpsilon, storage });
            found.push((await said(open)).map(String));
          }
          return found;
        }"""
        limits = [None, 0, -1, 0.999, 1, 1.5, 9]
        found = run(tmp_path, program, TASKS=[TASK.to_json(), shuffled.to_json()], LIMITS=limits)
        names = [name for name, _ in found]
        assert names == ["TaskError"] * 4 + ["fine"] * 3 + ["TaskError"] * 6 + ["fine"]
        assert "limit of this client" in found[3][1]
        assert "limit of this client" in found[7 + 5][1]
        assert "largestEpsilon" in found[0][1]

    def test_all_tasks_of_a_server_together_stay_below_it(self, tmp_path):
        program = """
        async function main() {
          const storage = new Storage(), found = [], looked = [];
          const decide = (records) => { looked.push(records); return 5; };
          for (const text of TASKS) {
            const client = await load().Client.create(text, { largestEpsilon: 2, storage, decide });
            found.push((await said(() => client.answer([1]))).map(String));
          }
          return [found, looked.length];
        }"""
        tasks = [TASK.renewed(seed).to_json() for seed in range(3)]
        found, looked = run(tmp_path, program, TASKS=tasks)
        assert [name for name, _ in found] == ["fine", "fine", "TaskError"]
        assert "together" in found[2][1]
        assert looked == 2, "records were looked at before the refusal"


@needs_node
class TestMemory:
    def test_a_page_load_forgets_nothing_and_nobody_answers_twice(self, tmp_path):
        program = """
        async function main() {
          const storage = new Storage(), options = { largestEpsilon: 1, storage }, found = [];
          const open = () => load().Client.create(TEXT, options);
          const early = await (await open()).answered();
          const none = await said(async () => (await open()).acknowledged());
          const first = shown(await (await open()).answer([7]));
          const again = shown(await (await open()).answer([8]));
          const known = await (await open()).answered();
          await (await open()).acknowledged();
          const late = await said(async () => (await open()).answer([7]));
          return { early, none, first, again, known, late };
        }"""
        found = run(tmp_path, program, TEXT=TASK.to_json())
        assert found["early"] is False
        assert found["none"][0] == "TaskError"
        assert found["first"] == found["again"]
        assert found["known"] is True
        assert found["late"][0] == "AnsweredError"
        assert "does not answer twice" in found["late"][1]
        message, token = found["first"]
        assert MessageFormat(TASK).read([bytes.fromhex(message)]).dropped == {}
        assert len(bytes.fromhex(token)) == 16

    def test_two_pages_at_once_make_one_message(self, tmp_path):
        program = """
        async function main() {
          const storage = new Storage(), options = { largestEpsilon: 1, storage };
          const client = await load().Client.create(TEXT, options);
          const all = await Promise.all([1, 2, 3].map(() => client.answer([7])));
          return all.map(shown);
        }"""
        one, two, three = run(tmp_path, program, TEXT=TASK.to_json())
        assert one == two == three

    def test_what_cannot_remember_or_be_read_is_refused(self, tmp_path):
        program = """
        async function main() {
          const found = [];
          const texts = ["nonsense", "[]", "null", "5", '{"a": 1}',
            '{"a": {"message": "00", "token": "00", "epsilon": -5, "acknowledged": false}}',
            '{"a": {"message": "00", "token": "00", "epsilon": "0", "acknowledged": false}}'];
          const storages = [undefined, null, {}];
          for (const text of texts) {
            const broken = new Storage();
            broken.setItem("quorate answers", text);
            storages.push(broken);
          }
          const forgetful = new Storage();
          forgetful.setItem = () => null;
          const full = new Storage();
          full.setItem = () => { throw new Error("full"); };
          for (const storage of [...storages, forgetful, full]) {
            found.push((await said(async () => {
              const client = await load().Client.create(TEXT, { largestEpsilon: 1, storage });
              return client.answer([7]);
            })).map(String));
          }
          return found;
        }"""
        found = run(tmp_path, program, TEXT=TASK.to_json())
        assert [name for name, _ in found] == ["TaskError"] * 11 + ["Error"]

    def test_an_answer_is_kept_before_anybody_sees_it(self, tmp_path):
        program = """
        async function main() {
          const storage = new Storage(), order = [];
          const keep = storage.setItem.bind(storage);
          storage.setItem = (key, value) => { order.push("kept"); keep(key, value); };
          const client = await load().Client.create(TEXT, { largestEpsilon: 1, storage });
          const { message } = await client.answer([7]);
          order.push("seen");
          const held = Object.values(JSON.parse(storage.getItem("quorate answers")))[0];
          return [order, held, Buffer.from(message).toString("hex")];
        }"""
        order, held, message = run(tmp_path, program, TEXT=TASK.to_json())
        assert order == ["kept", "seen"]
        assert held["message"] == message
        assert held["epsilon"] == TASK.report_epsilon


# Web Crypto that hands out given bytes, then fails.
SCRIPTED = """
const given = { bytes: [] };
const real = globalThis.crypto;
Object.defineProperty(globalThis, "crypto", { value: {
  subtle: real.subtle,
  getRandomValues: (array) => {
    if (given.bytes.length < array.length) throw new Error("more randomness than was given");
    array.set(given.bytes.splice(0, array.length));
    return array;
  },
} });
"""


@needs_node
class TestRandomness:
    def test_every_bit_of_a_message_and_its_token_comes_from_web_crypto(self, tmp_path):
        program = (
            SCRIPTED
            + """
        async function main() {
          const found = [];
          for (const bytes of CASES) {
            given.bytes = [...bytes];
            const options = { largestEpsilon: 9, storage: new Storage() };
            const client = await load().Client.create(TEXT, options);
            found.push([...shown(await client.answer([7])), given.bytes.length]);
          }
          return found;
        }"""
        )
        rng = np.random.default_rng(3)
        size = 8 * TASK.response.words
        cases = [rng.bytes(size + 16) for _ in range(40)]
        found = run(tmp_path, program, TEXT=TASK.to_json(), CASES=[list(case) for case in cases])
        for case, (message, token, left) in zip(cases, found, strict=True):
            assert message == message_from_bytes(TASK, 7, case[:size]).hex()
            assert token == case[size:].hex()
            assert left == 0

    def test_without_web_crypto_nothing_is_answered(self, tmp_path):
        program = """
        Object.defineProperty(globalThis, "crypto", { value: undefined });
        async function main() {
          const options = { largestEpsilon: 1, storage: new Storage() };
          return said(() => load().Client.create(TEXT, options));
        }"""
        name, words = run(tmp_path, program, TEXT=TASK.to_json())
        assert name == "TaskError"
        assert "Web Crypto" in words

    def test_real_messages_and_tokens_differ(self, tmp_path):
        program = """
        async function main() {
          const found = [];
          for (let i = 0; i < 30; i++) {
            const options = { largestEpsilon: 1, storage: new Storage() };
            const client = await load().Client.create(TEXT, options);
            found.push(shown(await client.answer([7])));
          }
          return found;
        }"""
        found = run(tmp_path, program, TEXT=TASK.to_json())
        assert len({message for message, _ in found}) > 25
        assert len({token for _, token in found}) == 30

    @pytest.mark.parametrize("records", [[[0], [1], []], [[1], [0, 0], None]], ids=["lists", "odd"])
    def test_a_message_tells_what_was_promised_and_no_more(self, tmp_path, records):
        """The exact law through the door, by all low bits and bisection of the coin."""
        task = Task.local(name="t", candidates=2, epsilon=0.5, seed="00" * 32)
        low_bits = task.width * (task.response.bits + 1)
        program = (
            SCRIPTED
            + """
        async function main() {
          const Quorate = load(), laws = [];
          const send = async (records, low, coin) => {
            const bytes = new Uint8Array(24);
            new DataView(bytes.buffer).setUint32(0, low, true);
            new DataView(bytes.buffer).setUint32(4, coin, true);
            given.bytes = [...bytes];
            const options = { largestEpsilon: 9, storage: new Storage() };
            return shown(await (await Quorate.Client.create(TEXT, options)).answer(records))[0];
          };
          for (const records of RECORDS) {
            const law = [];
            for (let low = 0; low < 2 ** LOW_BITS; low++) {
              const first = await send(records, low, 0);
              const last = await send(records, low, 2 ** 32 - 1);
              let same = 0, other = 2 ** 32 - 1;
              while (first !== last && other - same > 1) {
                const middle = Math.floor((same + other) / 2);
                const found = await send(records, low, middle);
                if (found === first) same = middle; else other = middle;
              }
              law.push([first, last, first === last ? 2 ** 32 : other]);
            }
            laws.push(law);
          }
          return laws;
        }"""
        )
        found = run(tmp_path, program, TEXT=task.to_json(), RECORDS=records, LOW_BITS=low_bits)
        laws = []
        for pieces in found:
            law = {}
            for first, last, kept in pieces:
                for each, coins in ((first, kept), (last, 2**32 - kept)):
                    law[each] = law.get(each, 0) + Fraction(coins, 2 ** (32 + low_bits))
            laws.append(law)
        for one in laws:
            assert sum(one.values()) == 1
            for two in laws:
                assert all(one[each] <= two[each] * Fraction(math.exp(0.5)) for each in one)
        ratio = max(one[each] / two[each] for one in laws for two in laws for each in one)
        assert ratio > math.exp(0.5) * (1 - 1e-7)


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_a_browser_remembers_across_page_loads(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        f"<!doctype html><meta charset=utf-8><script>{client_script()}\n"
        "Math.random = () => { throw new Error('no source of secrets'); };\n"
        f"const TEXT = {json.dumps(TASK.to_json())};\n"
        "const open_ = (largestEpsilon) => Quorate.Client.create(TEXT, { largestEpsilon });\n"
        "const told = (work) => work().catch((problem) => problem.constructor.name);\n"
        "const answer = () => told(async () => { const { message, token } = "
        "await (await open_(1)).answer([7]); return Quorate.hex(message) + ' ' + token; });"
        "</script>"
    )
    with open_browser(tmp_path / "profile") as browser:

        def load():
            browser.open(page, width=800)

        load()
        assert browser.evaluate("told(() => open_(0.5))") == "TaskError"
        assert browser.evaluate("told(() => open_(undefined))") == "TaskError"
        assert browser.evaluate("open_(1).then((c) => c.answered())") is False
        first = browser.evaluate("Promise.all([answer(), answer()])")
        load()
        again = browser.evaluate("answer()")
        browser.evaluate("open_(1).then((client) => client.acknowledged()).then(() => 1)")
        load()
        late = browser.evaluate("answer()")
        assert browser.problems == []
    assert first == [again, again]
    assert MessageFormat(TASK).read([bytes.fromhex(again.split()[0])]).dropped == {}
    assert late == "AnsweredError"
