import { open } from '../../../src/index.ts';
import { settingsFor } from '../harness/agents.ts';
import { input, onCommand, ready, say } from '../harness/commands.ts';

/** Follows conversations from the numbers that it is given, and prints every event. */
const { home, mark, from } = input<{ home: string; mark: string; from: Record<string, number> }>();

onCommand(() => {});
const { engine } = await open({ home, settings: settingsFor(mark), engine: { maxRunning: 0 } });
ready();
await Promise.all(
  Object.entries(from).map(async ([key, after]) => {
    for await (const { seq, kind, turn, payload } of engine.follow(key, { after })) {
      say({ event: key, seq, kind, turn, ...(kind === 'turn.ended' ? { end: payload } : {}) });
    }
  }),
);
