import { library } from '../../program.ts';
import { settingsFor } from '../harness/agents.ts';
import { input, onCommand, ready, say } from '../harness/commands.ts';

/** Follows conversations from the given numbers, and prints every event. */
interface Input {
  readonly home: string;
  readonly store?: string;
  readonly mark: string;
  readonly engine: object;
  /** By conversation: the last number seen. */
  readonly from: Record<string, number>;
}

const { mark, engine: settings, from, ...place } = input<Input>();

onCommand(() => {});
const { open } = await library();
const { engine } = await open({ ...place, settings: settingsFor(mark), engine: settings });
ready();
await Promise.all(
  Object.entries(from).map(async ([key, after]) => {
    for await (const { seq, kind, turnId, payload } of engine.follow(key, { after })) {
      say({ event: key, seq, kind, turn: turnId, ...(kind === 'turn.ended' ? { end: payload } : {}) });
    }
  }),
);
