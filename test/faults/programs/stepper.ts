import type { EngineSettings } from '../../../src/engine/parts.ts';
import { systemClock } from '../../../src/host/clock.ts';
import type { SubmitOptions } from '../../../src/ports/engine.ts';
import type { Store } from '../../../src/ports/store.ts';
import { keptWarm } from '../../e2e/support/kept-warm.ts';
import { assemble } from '../harness/assemble.ts';
import { input, onCommand, ready, say } from '../harness/commands.ts';
import { type Hook, hooked, standStill } from '../harness/hook.ts';

/** Submits turns and runs them, until its hook kills or stops it. */
interface Input {
  readonly home: string;
  readonly mark: string;
  readonly engine: Partial<EngineSettings>;
  readonly hook?: Hook;
  readonly key: string;
  readonly cwd?: string;
  readonly requests: readonly Request[];
  /** Each request except the first is made when the session of the one before is kept warm. */
  readonly whenWarm?: boolean;
  /** Its wall clock jumps by this much as soon as a turn was sent. */
  readonly jumpMs?: number;
}

interface Request {
  readonly prompt: string;
  readonly options: SubmitOptions & { requestId: string };
}

const { home, mark, engine: settings, hook, key, cwd, requests, whenWarm = false, jumpMs = 0 } = input<Input>();
let shift = 0;
const clock = { now: () => systemClock.now() + shift, monotonic: () => systemClock.monotonic() };
let store: Store | undefined;
const around = (whole: Store) => {
  store = whole;
  return hooked(whole, hook ?? null);
};
const engine = await assemble({ home, mark, engine: settings, clock, around });

async function submit({ prompt, options }: Request): Promise<void> {
  const { turn } = await engine.submit(key, prompt, options);
  say({ accepted: options.requestId, turn: turn.id });
}

async function watch(): Promise<void> {
  for await (const { kind, payload } of engine.follow(key)) {
    if (kind === 'turn.sent') shift = jumpMs;
    if (kind === 'turn.ended') say({ ended: payload.n, outcome: payload.outcome });
  }
}

onCommand<Request | { stop: true }>((command) => {
  if ('stop' in command) standStill('stop');
  else void submit(command);
});
await engine.ensure({ key, ...(cwd ? { cwd } : {}) });
void watch();
for (const request of requests) {
  const warm = whenWarm && store !== undefined ? keptWarm(store) : null;
  await submit(request);
  await warm;
}
ready();
