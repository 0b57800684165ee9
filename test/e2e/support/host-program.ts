// A program of its own that has Throughline open, and is told over its standard input what to do: one JSON object a line.
import { flushCompileCache } from 'node:module';
import { createInterface } from 'node:readline';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { PublicEvent } from '../../../src/core/public/event.ts';
import type { SendOptions, Throughline, TurnResult } from '../../../src/index.ts';
import type { ConversationSpec, Submitted } from '../../../src/ports/engine.ts';
import { library } from '../../program.ts';

/** What a test may ask for beside the engine's and the tracker's own verbs. */
const calls = (tl: Throughline) => ({
  /** Keeps what was compiled, for the next one: Node does so only at an exit in good order, and hosts are killed. */
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
  /** Leaves the answer unread. */
  send: async (key: string, prompt: string, options: SendOptions = {}): Promise<Submitted> =>
    tl.conversation(key).send(prompt, options).accepted,
  /** Follows until an event of this kind has come, and gives all it saw. */
  followUntil: async (key: string, after: number, kind: string): Promise<PublicEvent[]> => {
    const seen: PublicEvent[] = [];
    for await (const event of tl.engine.follow(key, { after })) {
      seen.push(event);
      if (event.kind === kind) break;
    }
    return seen;
  },
  /** Begins to follow, takes one event, and then leaves the rest. */
  stall: async (key: string): Promise<void> => {
    stalled = tl.engine.follow(key)[Symbol.asyncIterator]();
    await stalled.next();
  },
  /** Takes the rest, up to a number, and tells the numbers. */
  unstall: async (upTo: number): Promise<number[]> => {
    const numbers: number[] = [];
    while (numbers.at(-1) !== upTo) numbers.push((await stalled?.next())?.value.seq);
    return numbers;
  },
  /** Bytes in use after everything that can be freed was freed. */
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
const users = new Map<string | null, { tl: Throughline; on: Record<string, object> }>();

function user(owner: string | null) {
  const known = users.get(owner);
  if (known) return known.on;
  const own = owner === null ? tl : tl.as(owner);
  const on = { engine: own.engine, tracker: own.tracker(), tasks: own.tasks, calls: calls(own) };
  users.set(owner, { tl: own, on });
  return on;
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, as, on, name, args } = JSON.parse(line);
  const target = user(as)[on as 'calls'] as unknown as Record<string, (...args: unknown[]) => unknown>;
  let answer: object;
  try {
    answer = { id, value: await target[name]?.(...args) };
  } catch (error) {
    const code = error instanceof ThroughlineError ? error.code : 'internal';
    answer = { id, error: { code, message: String(error) } };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
