// A program that opens Throughline and runs the calls that it reads from standard input: one JSON object per line.
import { flushCompileCache } from 'node:module';
import { createInterface } from 'node:readline';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { PublicEvent } from '../../../src/core/public/event.ts';
import type { SendOptions, Throughline, TurnResult } from '../../../src/index.ts';
import type { ConversationSpec, Submitted } from '../../../src/ports/engine.ts';
import { library } from '../../program.ts';

/** The calls that a test can make besides the verbs of the engine, the tracker and the tasks. */
const calls = (tl: Throughline) => ({
  /** Writes the compile cache, so that the next host starts faster. Node writes it only at a normal exit, and hosts are killed. */
  ready: () => {
    flushCompileCache();
    return true;
  },
  ask: (
    key: string,
    prompt: string,
    spec: Omit<ConversationSpec, 'key'> = {},
    options: SendOptions = {},
  ): Promise<TurnResult> => tl.conversation(key, spec).ask(prompt, options),
  /** Returns when the turn is accepted, and never reads the answer. */
  send: async (key: string, prompt: string, options: SendOptions = {}): Promise<Submitted> =>
    tl.conversation(key).send(prompt, options).accepted,
  /** Follows until an event of this kind arrives, and returns all events up to it. */
  followUntil: async (key: string, after: number, kind: string): Promise<PublicEvent[]> => {
    const seen: PublicEvent[] = [];
    for await (const event of tl.engine.follow(key, { after })) {
      seen.push(event);
      if (event.kind === kind) break;
    }
    return seen;
  },
  /** Starts to follow, reads one event, and then reads no more. */
  stall: async (key: string): Promise<void> => {
    stalled = tl.engine.follow(key)[Symbol.asyncIterator]();
    await stalled.next();
  },
  /** Reads the rest up to a number, and returns the numbers. */
  unstall: async (upTo: number): Promise<number[]> => {
    const numbers: number[] = [];
    while (numbers.at(-1) !== upTo) numbers.push((await stalled?.next())?.value.seq);
    return numbers;
  },
  /** Bytes in use after a garbage collection. */
  memory: (): number => {
    setFlagsFromString('--expose-gc');
    runInNewContext('gc')();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  },
});
let stalled: AsyncIterator<PublicEvent> | undefined;
export type HostCalls = ReturnType<typeof calls>;

const { open, ThroughlineError } = await library();
const tl = await open(JSON.parse(process.argv[2] ?? '{}'));
const targetsByOwner = new Map<string | null, Record<string, object>>();

/** The objects that a test can call for this owner. Null: the owner that Throughline was opened for. */
function targetsOf(owner: string | null): Record<string, object> {
  const existing = targetsByOwner.get(owner);
  if (existing) return existing;
  const own = owner === null ? tl : tl.as(owner);
  const targets = { engine: own.engine, tracker: own.tracker(), tasks: own.tasks, calls: calls(own) };
  targetsByOwner.set(owner, targets);
  return targets;
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, as, target: targetName, name, args } = JSON.parse(line);
  const target = targetsOf(as)[targetName] as Record<string, (...args: unknown[]) => unknown>;
  let answer: object;
  try {
    answer = { id, value: await target[name]?.(...args) };
  } catch (error) {
    const code = error instanceof ThroughlineError ? error.code : 'internal';
    answer = { id, error: { code, message: String(error) } };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
