import { readSync, writeSync } from 'node:fs';

/** @import { FromProgram, ToProgram } from '../protocol.ts' */

/** Messages in and out: one JSON object a line. */
export class Connection {
  /** @type {string[]} */
  #partial = [];
  #onMessage;
  #onEnd;

  /**
   * @param {(message: ToProgram) => Promise<void>} onMessage
   * @param {() => void} onEnd
   */
  constructor(onMessage, onEnd) {
    this.#onMessage = onMessage;
    this.#onEnd = onEnd;
  }

  /**
   * While nothing is running, blocks until the next message comes: `process.stdin` takes milliseconds to load, and the adapter would wait
   * for that. From the first message on that takes longer, `process.stdin` is used, because others may come meanwhile.
   */
  async listen() {
    for (let isIdle = true; isIdle; ) {
      const { text, end } = readLines();
      const work = this.#read(text);
      if (end === 'closed') return this.#onEnd();
      isIdle = end === null && (await isDoneAtOnce(work));
    }
    process.stdin.setEncoding('utf8');
    process.stdin.on('data', (/** @type {string} */ text) => this.#read(text));
    process.stdin.on('end', this.#onEnd);
    process.stdin.on('error', this.#onEnd);
  }

  /** @param {FromProgram} message */
  send(message) {
    this.write(1, `${JSON.stringify(message)}\n`);
  }

  /**
   * Blocks until all is written, so that nothing is lost when the process kills itself next.
   * @param {1 | 2} fd
   * @param {string} text
   */
  write(fd, text) {
    const bytes = Buffer.from(text);
    for (let done = 0; done < bytes.length; ) {
      try {
        done += writeSync(fd, bytes, done);
      } catch (error) {
        if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EAGAIN') return; // the reader is gone
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      }
    }
  }

  /** @param {string} text */
  #read(text) {
    const lines = text.split('\n');
    const rest = lines.pop() ?? '';
    const work = [];
    for (const line of lines) {
      const whole = this.#partial.join('') + line;
      this.#partial = [];
      if (whole !== '') work.push(this.#onMessage(JSON.parse(whole)));
    }
    if (rest !== '') this.#partial.push(rest);
    return work;
  }
}

const NEWLINE = 0x0a;

/** Waits for whole lines. `end`: why there are no more; null: there may be. */
function readLines() {
  const chunks = [];
  /** @type {'closed' | 'unreadable' | null} */
  let end = null;
  while (end === null && chunks.at(-1)?.at(-1) !== NEWLINE) {
    const space = Buffer.allocUnsafe(65_536);
    try {
      const length = readSync(0, space);
      if (length === 0) end = 'closed';
      else chunks.push(space.subarray(0, length));
    } catch {
      end = 'unreadable'; // for `readSync`; `process.stdin` can read it
    }
  }
  return { text: Buffer.concat(chunks).toString(), end };
}

/** Whether the work is done without waiting for anything. @param {Promise<void>[]} work */
function isDoneAtOnce(work) {
  // An error in work that takes longer must still end the program. Without this, the race would count as its handler.
  for (const one of work) void one.then();
  const waits = new Promise((resolve) => setImmediate(resolve, false));
  return Promise.race([Promise.all(work).then(() => true), waits]);
}
