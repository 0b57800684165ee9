import { readSync, writeSync } from 'node:fs';

/** @import { FromProgram, ToProgram } from '../protocol.ts' */

/** Messages in and out: one JSON object a line. */
export class Connection {
  /** @type {string[]} */
  #partial = [];
  #onMessage;
  #onEnd;

  /**
   * @param {(message: ToProgram) => void} onMessage
   * @param {() => void} onEnd
   */
  constructor(onMessage, onEnd) {
    this.#onMessage = onMessage;
    this.#onEnd = onEnd;
  }

  /**
   * Nothing is done before the first message, so it is waited for. `process.stdin` takes milliseconds to load: whoever started us would
   * have to wait for that, and is busy after the answer.
   */
  listen() {
    this.#readFirst();
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
        if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EAGAIN') return; // nobody listens any more
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      }
    }
  }

  #readFirst() {
    const chunks = [];
    for (let isWhole = false; !isWhole; ) {
      const space = Buffer.allocUnsafe(65_536);
      const chunk = space.subarray(0, readNow(space));
      chunks.push(chunk);
      isWhole = chunk.length === 0 || chunk.at(-1) === NEWLINE;
    }
    this.#read(Buffer.concat(chunks).toString());
  }

  /** @param {string} text */
  #read(text) {
    const lines = text.split('\n');
    const rest = lines.pop() ?? '';
    for (const line of lines) {
      const whole = this.#partial.join('') + line;
      this.#partial = [];
      if (whole !== '') this.#onMessage(JSON.parse(whole));
    }
    if (rest !== '') this.#partial.push(rest);
  }
}

const NEWLINE = 0x0a;

/** How many bytes came; 0: no more come, or not this way. `process.stdin` tells which. @param {Buffer} space */
function readNow(space) {
  try {
    return readSync(0, space);
  } catch {
    return 0;
  }
}
