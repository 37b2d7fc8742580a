// The device side of a Quorate collection, for browsers and Node: no dependencies, one file.
//
// It makes the very bytes that quorate.local.client makes in Python; vectors.json beside this
// file holds known answers. Randomness comes from crypto.getRandomValues and stays bits: masks and
// coins are bits, and the hash is kept if a 32-bit coin is below an integer. No floating point takes
// part in a draw.
//
//   const client = await Quorate.Client.create(taskText, { largestEpsilon: 1 });
//   const { message, token } = await client.answer([3, 7, 7]);   // Uint8Array and text
//   ... post message with the header Quorate-Token: token; when it was taken (200 or 201):
//   await client.acknowledged();
//
// largestEpsilon is yours to choose and never the server's: how much all messages of this browser
// may say together, each by itself and before anything is shuffled. What was answered is kept in
// localStorage before it leaves: after a page load the same bytes come with the same token, and once
// they were acknowledged a second answer is refused (AnsweredError). Outside of browsers give a
// storage with getItem and setItem that outlives the program.
//
// This file checks the message; that the shuffled messages keep the task's epsilon and delta is
// checked by Python whenever it reads the task.

"use strict";

(function (root) {
  const SCHEME = "quorate-hashed-1";
  const COIN_BITS = 32n;
  const PREFIX_BITS = 20;
  const FIELDS = [
    "candidates", "decision", "delta", "epsilon", "honest", "keep", "name", "report_epsilon",
    "scheme", "seed", "trust", "unit", "users", "width",
  ];
  const MEMORY = "quorate answers";
  const TOKEN_BYTES = 16;
  const webCrypto = root.crypto;

  class TaskError extends Error {}
  class AnsweredError extends Error {}

  function refuse(words) {
    throw new TaskError(words);
  }

  function hex(bytes) {
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  function unhex(text) {
    return Uint8Array.from(text.match(/../g) || [], (pair) => parseInt(pair, 16));
  }

  // The only source of randomness: secret, uniform bytes.
  function randomBytes(count) {
    return webCrypto.getRandomValues(new Uint8Array(count));
  }

  async function sha256(bytes) {
    return new Uint8Array(await webCrypto.subtle.digest("SHA-256", bytes));
  }

  function ascii(text) {
    return new TextEncoder().encode(text);
  }

  function canonical(task) {
    return "{" + FIELDS.map((name) => JSON.stringify(name) + ":" + JSON.stringify(task[name])).join(",") + "}";
  }

  function wholeNumber(text, name) {
    if (!/^(0|[1-9][0-9]*)$/.test(text)) refuse("Expected a whole number as " + name + ".");
    return BigInt(text);
  }

  function realNumber(text, name) {
    const value = Number(text);
    if (text.trim() !== text || text === "" || !Number.isFinite(value) || value < 0) {
      refuse("Expected a number as " + name + ".");
    }
    return value;
  }

  function parse(text) {
    let task;
    try {
      task = JSON.parse(text);
    } catch (problem) {
      refuse("Expected a task as JSON.");
    }
    const plain = task !== null && typeof task === "object" && !Array.isArray(task);
    if (!plain || Object.keys(task).sort().join() !== FIELDS.join()) {
      refuse("Expected a task with the fields " + FIELDS.join(", ") + ".");
    }
    for (const name of FIELDS) {
      if (typeof task[name] !== "string" || !/^[ !#-[\]-~]+$/.test(task[name])) {
        refuse("Expected printable ASCII as " + name + ".");
      }
    }
    return task;
  }

  // How reports of a task are made; the same arithmetic as HashedResponse and MessageFormat.
  class Report {
    constructor(task, largestEpsilon) {
      if (task.scheme !== SCHEME) refuse("Expected the scheme " + SCHEME + ".");
      if (!/^[0-9a-f]{64}$/.test(task.seed)) refuse("Expected a seed of 64 hexadecimal digits.");
      this.candidates = wholeNumber(task.candidates, "candidates");
      this.keep = wholeNumber(task.keep, "keep");
      this.width = Number(wholeNumber(task.width, "width"));
      this.reportEpsilon = realNumber(task.report_epsilon, "report_epsilon");
      if (this.candidates < 2n || this.candidates > 1n << 63n) refuse("Expected 2 to 2^63 candidates.");
      if (this.width < 1 || this.width > 8) refuse("Expected a width from 1 to 8.");
      this.refuseTooMuch(task, largestEpsilon);
      this.bits = (this.candidates - 1n).toString(2).length;
      this.levels = this.bits <= PREFIX_BITS ? 1 : this.bits <= 2 * PREFIX_BITS ? 2 : 4;
      this.levelBits = this.levels.toString(2).length - 1;
      this.words = Math.ceil((this.width * (this.bits + 1) + this.levelBits + Number(COIN_BITS)) / 64);
      this.maskBytes = Math.ceil(this.bits / 8);
    }

    // The likeliest answer may be at most e^epsilon times as likely as any other.
    refuseTooMuch(task, largestEpsilon) {
      const epsilon = realNumber(task.epsilon, "epsilon");
      const delta = realNumber(task.delta, "delta");
      if (!(largestEpsilon > 0 && largestEpsilon < Infinity)) {
        refuse("Expected largestEpsilon: how much the messages of this browser may say together.");
      }
      if (task.trust !== "local" && task.trust !== "shuffle") {
        refuse("Expected the trust model local or shuffle.");
      }
      if (task.trust === "local" && (delta !== 0 || this.reportEpsilon > epsilon)) {
        refuse("Expected delta 0 and a report of at most epsilon in the local model.");
      }
      if (!(this.reportEpsilon <= largestEpsilon)) {
        refuse("The task asks a message to say more than " + largestEpsilon + ", the limit of this client.");
      }
      const kept = Number(this.keep);
      const ratio = 1 + (2 ** this.width * kept) / (2 ** 32 - kept);
      const promised = Math.exp(this.reportEpsilon) * (1 + 1e-12);
      if (!(kept > 0 && kept < 2 ** 32 && ratio <= promised)) {
        refuse("The task asks a message to say more than it promises.");
      }
    }

    prefixMask(level) {
      const length = Math.ceil((this.bits * (level + 1)) / this.levels);
      return ((1n << BigInt(length)) - 1n) << BigInt(this.bits - length);
    }

    // candidate: a BigInt, or null for a user without one; random: 8 * words bytes.
    message(candidate, random, digest) {
      let bits = 0n;
      for (let i = random.length - 1; i >= 0; i--) bits = (bits << 8n) | BigInt(random[i]);
      const field = (place, length) => (bits >> BigInt(place)) & ((1n << BigInt(length)) - 1n);
      const level = Number(field(this.width * (this.bits + 1), this.levelBits));
      const allowed = this.prefixMask(level);
      const masks = [];
      for (let i = 0; i < this.width; i++) masks.push(field(i * this.bits, this.bits) & allowed);
      const coins = Number(field(this.width * this.bits, this.width));
      const named = candidate !== null && candidate >= 0n && candidate < this.candidates;
      const value = named ? candidate : 0n;
      let hashed = 0;
      masks.forEach((mask, i) => { hashed |= parity(mask & value) << i; });
      const kept = bits >> (BigInt(64 * this.words) - COIN_BITS) < this.keep;
      return this.write(masks, named && kept ? hashed : coins, level, digest);
    }

    write(masks, answer, level, digest) {
      const payload = this.width * this.maskBytes + 2;
      const message = new Uint8Array(16 + payload);
      message.set([0x51, 0x52, 0x4d, 1, 1, level, payload & 255, payload >> 8]);
      message.set(digest.subarray(0, 8), 8);
      masks.forEach((mask, i) => {
        for (let j = 0; j < this.maskBytes; j++) {
          message[16 + i * this.maskBytes + j] = Number((mask >> BigInt(8 * j)) & 255n);
        }
      });
      message[message.length - 2] = answer;
      return message;
    }
  }

  function parity(number) {
    let odd = 0;
    for (; number > 0n; number &= number - 1n) odd ^= 1;
    return odd;
  }

  // The value that most records hold; ties by the public seed; null without records, or with one
  // that is no whole number.
  async function plurality(records, sharedSeed) {
    const counts = new Map();
    for (const record of records) {
      if (typeof record !== "bigint" && !Number.isSafeInteger(record)) return null;
      const key = String(record);
      counts.set(key, (counts.get(key) || 0) + 1);
    }
    if (counts.size === 0) return null;
    const most = Math.max(...counts.values());
    let best = null;
    let rank = null;
    for (const [key, count] of counts) {
      if (count < most) continue;
      const own = hex(await sha256(ascii(sharedSeed + " " + key)));
      if (rank === null || own < rank) [best, rank] = [key, own];
    }
    return BigInt(best);
  }

  // What this browser has answered, by task: in a storage that outlives the page, one page at a
  // time. What cannot be read is no reason to answer again, so it is refused.
  class Memory {
    constructor(storage) {
      this.storage = storage;
    }

    read() {
      const text = this.storage.getItem(MEMORY);
      if (text === null || text === undefined) return {};
      let held = null;
      try {
        held = JSON.parse(text);
      } catch (problem) {
        held = null;
      }
      const fine = (each) => each !== null && typeof each === "object"
        && /^([0-9a-f]{2})+$/.test(each.message) && /^([0-9a-f]{2})+$/.test(each.token)
        && each.epsilon > 0 && each.epsilon < Infinity && typeof each.acknowledged === "boolean";
      if (held === null || typeof held !== "object" || Array.isArray(held) || !Object.values(held).every(fine)) {
        refuse("Expected what this browser has answered, got something that cannot be read.");
      }
      return held;
    }

    // What does not stay would be forgotten when the page is loaded again.
    write(held) {
      const text = JSON.stringify(held);
      this.storage.setItem(MEMORY, text);
      if (this.storage.getItem(MEMORY) !== text) refuse("Expected a storage that keeps what it is given.");
    }
  }

  let queue = Promise.resolve();

  // Let one page of this browser at a time look and write.
  function alone(work) {
    const locks = root.navigator && root.navigator.locks;
    if (locks) return locks.request(MEMORY, work);
    const done = queue.then(work);
    queue = done.catch(() => null);
    return done;
  }

  function storageOf(options) {
    let storage = options.storage;
    try {
      if (storage === undefined) storage = root.localStorage;
    } catch (problem) {
      storage = null;
    }
    if (!storage || typeof storage.getItem !== "function" || typeof storage.setItem !== "function") {
      refuse("Expected a storage in which this client can remember what it has answered.");
    }
    return storage;
  }

  class Client {
    static async create(text, options = {}) {
      if (!webCrypto || !webCrypto.subtle) refuse("Expected Web Crypto: a page that was sent over https.");
      const task = parse(text);
      const client = new Client();
      client.task = task;
      client.report = new Report(task, options.largestEpsilon);
      client.largestEpsilon = options.largestEpsilon;
      client.memory = new Memory(storageOf(options));
      client.decide = options.decide || null;
      if (client.decide === null && task.decision !== "plurality") {
        refuse("Expected the option decide: the function that this task calls " + task.decision + ".");
      }
      client.digest = await sha256(ascii(canonical(task)));
      const start = ascii("quorate seed");
      const seeded = new Uint8Array(start.length + 32);
      seeded.set(start);
      seeded.set(client.digest, start.length);
      client.sharedSeed = hex((await sha256(seeded)).subarray(0, 16));
      client.id = hex(client.digest.subarray(0, 8));
      return client;
    }

    // Whether this browser has made its one message for the task.
    answered() {
      return alone(() => this.id in this.memory.read());
    }

    // One message for a task, with the token that admits it once: asked again, with whatever
    // records, both are the same, until they were acknowledged. Then there is no second answer.
    answer(records) {
      return alone(async () => {
        const held = this.memory.read();
        if (!(this.id in held)) {
          this.refuseBeyond(held);
          const message = hex(await this.make(records));
          const token = hex(randomBytes(TOKEN_BYTES));
          const epsilon = this.report.reportEpsilon;
          held[this.id] = { message, token, epsilon, acknowledged: false };
          // Kept before anybody sees it.
          this.memory.write(held);
        }
        const known = held[this.id];
        if (known.acknowledged) {
          throw new AnsweredError("This browser has answered the task " + this.task.name + ": it does not answer twice.");
        }
        return { message: unhex(known.message), token: known.token };
      });
    }

    // Remember that the collector has taken the message.
    acknowledged() {
      return alone(() => {
        const held = this.memory.read();
        if (!(this.id in held)) refuse("Expected a message that was sent, got none: call answer.");
        held[this.id].acknowledged = true;
        this.memory.write(held);
      });
    }

    // However many tasks a server thinks of, all messages together stay below the limit.
    refuseBeyond(held) {
      let total = this.report.reportEpsilon;
      for (const each of Object.values(held)) total += each.epsilon;
      if (!(total <= this.largestEpsilon * (1 + 1e-12))) {
        refuse("The messages of this browser would say more than " + this.largestEpsilon + " together, its limit.");
      }
    }

    async make(records) {
      const candidate = await this.candidate(records);
      return this.report.message(candidate, randomBytes(8 * this.report.words), this.digest);
    }

    // A decision that fails is a user without a candidate, so no error tells anything.
    async candidate(records) {
      try {
        const decide = this.decide || plurality;
        const found = await decide(records, this.sharedSeed);
        return found === null || found === undefined ? null : BigInt(found);
      } catch (problem) {
        return null;
      }
    }
  }

  // For known answers only: a message from given random bytes is no private message.
  function messageFromBytes(client, candidate, random) {
    return client.report.message(candidate === null ? null : BigInt(candidate), random, client.digest);
  }

  const Quorate = { Client, TaskError, AnsweredError, plurality, messageFromBytes, hex };
  if (typeof module === "object" && module.exports) module.exports = Quorate;
  else root.Quorate = Quorate;
})(globalThis);
