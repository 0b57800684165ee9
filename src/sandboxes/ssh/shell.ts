import { randomUUID } from 'node:crypto';
import { PassThrough } from 'node:stream';
import type { ClientChannel } from 'ssh2';
import { ThroughlineError } from '../../core/errors.ts';
import type { ByteSink } from '../../ports/sandbox.ts';
import { INHERITED, type RemoteProgram, type ScriptResult } from '../shared/remote/machine.ts';

/*
 * A shell of the other machine that waits for scripts. Starting one may take long, because the user's own shell reads the user's files
 * first; so shells are kept, and used again. Scripts come by standard input and not as arguments, which everybody there could read.
 *
 *   run N END      the lines up to END are a script; it gets the N bytes after them as its input, and END with its code follow its output
 *   start 0 END    the lines up to END are a script; everything after them is its input, and the shell ends with it
 */

const CLEAN = `exec env -i ${INHERITED.map((name) => `\${${name}+"${name}=$${name}"}`).join(' ')} /bin/sh -c "$1"`;
const LOOP = `while read -r how count end; do s=
while IFS= read -r l && [ "$l" != "$end" ]; do s="$s$l
"; done
if [ "$how" = start ]; then eval "$s"; exit; fi
if [ "$count" -gt 0 ]; then head -c "$count" | { (eval "$s"); c=$?; cat >/dev/null; exit $c; }; else (eval "$s") </dev/null; fi
c=$?; echo; echo "$end $c"; echo "$end" >&2
done`;

/** The parts are in single quotes and contain none, so that every shell that the user may have reads them in the same way. */
export const SHELL_COMMAND = `exec /bin/sh -c '${CLEAN}' sh '${LOOP}'`;

/** A script without output for so long counts as hung. */
const SILENT_MS = 30_000;
/** How long processes that an ended program left behind may hold its output open. */
const HELD_MS = 2_000;
/** How long we wait until the output of an ended program was read. The reader may be waiting for a full disk. */
const UNREAD_MS = 10_000;
/** The same after a kill or a lost connection. */
const UNREAD_KILLED_MS = 1_000;

export class Shell {
  readonly #channel: ClientChannel;
  readonly #machine: string;
  isOpen = true;

  constructor(channel: ClientChannel, machine: string) {
    this.#channel = channel;
    this.#machine = machine;
    channel.on('close', () => {
      this.isOpen = false;
    });
    // Writing to a shell that has ended is no error: `close` reports its end.
    for (const stream of [channel, channel.stderr]) stream.on('error', () => {});
  }

  close(): void {
    this.#channel.close();
  }

  /** Throws `agent_unavailable` when the connection is lost or the script is silent for too long; the shell is closed then. */
  run(script: string, input: Uint8Array): Promise<ScriptResult> {
    const end = `end-${randomUUID()}`;
    const { promise, resolve, reject } = Promise.withResolvers<ScriptResult>();
    const channel = this.#channel;
    const [out, err] = [new OutputUntil(end, true), new OutputUntil(end, false)];
    const fail = (why: string) => {
      stop();
      this.close();
      reject(new ThroughlineError('agent_unavailable', `${this.#machine} ${why}.`, { hint: 'Try again.' }));
    };
    const silent = () => fail(`did not answer for ${SILENT_MS / 1_000} seconds`);
    const lost = () => fail('is no longer connected');
    let timer = setTimeout(silent, SILENT_MS);
    const take = (output: OutputUntil) => (chunk: Buffer) => {
      clearTimeout(timer);
      timer = setTimeout(silent, SILENT_MS);
      output.add(chunk);
      if (out.code === null || err.code === null) return;
      stop();
      resolve({ code: out.code, stdout: out.bytes(), stderr: err.bytes().toString() });
    };
    const [onOut, onErr] = [take(out), take(err)];
    const stop = () => {
      clearTimeout(timer);
      channel.off('data', onOut).off('close', lost).pause();
      channel.stderr.off('data', onErr).pause();
    };
    channel.on('data', onOut).on('close', lost).resume();
    channel.stderr.on('data', onErr).resume();
    if (!this.isOpen) lost();
    channel.write(`run ${input.length} ${end}\n${script}\n${end}\n`);
    if (input.length > 0) channel.write(input);
    return promise;
  }

  /** The shell ends with the script, and cannot be used again. */
  start(script: string): RemoteProgram {
    const end = `end-${randomUUID()}`;
    const channel = this.#channel;
    // Streams of our own take the output from the channel, which does not close before.
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    channel.pipe(stdout);
    channel.stderr.pipe(stderr);
    const ended = endOf(channel, [stdout, stderr]);
    channel.write(`start 0 ${end}\n${script}\n${end}\n`);
    return { stdin: sink(channel), stdout, stderr, ended };
  }
}

/** Its exit code, when it has ended and its output was read. Output that is not read, or is held open, is waited for only for a while. */
async function endOf(channel: ClientChannel, outputs: readonly PassThrough[]): Promise<number | null> {
  let code = null as number | null;
  const closed = new Promise<void>((resolve) => void channel.once('close', resolve));
  const exited = new Promise<void>((resolve) => {
    channel.once('exit', (exit: number | null) => {
      code = exit;
      resolve();
    });
  });
  await Promise.race([exited, closed]);
  await within(HELD_MS, closed);
  channel.close();
  for (const output of outputs) output.end();
  const isKilled = code === null || code > 128;
  await within(isKilled ? UNREAD_KILLED_MS : UNREAD_MS, Promise.all(outputs.map(read)));
  return code;
}

function read(output: PassThrough): Promise<void> {
  if (output.readableLength === 0 || output.readableEnded || output.destroyed) return Promise.resolve();
  return new Promise((resolve) => void output.once('end', resolve).once('close', resolve));
}

async function within(ms: number, promise: Promise<unknown>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  // Not in the timer itself: if our process was suspended, the output of that time is read only after the timer.
  const timer = setTimeout(() => setImmediate(resolve), ms);
  await Promise.race([promise, late]);
  clearTimeout(timer);
}

/** The output up to the line that marks its end. */
class OutputUntil {
  readonly #end: Buffer;
  readonly #hasCode: boolean;
  readonly #chunks: Buffer[] = [];
  #last = Buffer.alloc(0);
  #length = 0;
  code: number | null = null;
  #trailer = 0;

  constructor(end: string, hasCode: boolean) {
    this.#end = Buffer.from(hasCode ? `\n${end} ` : `${end}\n`);
    this.#hasCode = hasCode;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    // The end may come in pieces.
    const most = this.#end.length + 10;
    const seen = Buffer.concat([this.#last, chunk]);
    this.#last = seen.subarray(Math.max(0, seen.length - most));
    const at = this.#last.lastIndexOf(this.#end);
    if (at === -1 || this.#last.at(-1) !== 10) return;
    this.#trailer = this.#last.length - at;
    this.code = this.#hasCode ? Number(this.#last.subarray(at + this.#end.length).toString()) : 0;
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks).subarray(0, this.#length - this.#trailer);
  }
}

function sink(channel: ClientChannel): ByteSink {
  const waiting = new Set<() => void>();
  channel.once('close', () => {
    for (const taken of waiting) taken();
    waiting.clear();
  });
  return {
    write(bytes, taken) {
      if (channel.destroyed || !channel.writable) {
        taken?.();
        return true;
      }
      if (taken === undefined) return channel.write(bytes);
      waiting.add(taken);
      return channel.write(bytes, () => {
        if (waiting.delete(taken)) taken();
      });
    },
    end: () => channel.end(),
  };
}
