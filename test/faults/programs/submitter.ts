import { open } from '../../../src/index.ts';
import type { SubmitOptions } from '../../../src/ports/engine.ts';
import { settingsFor } from '../harness/agents.ts';
import { input, onCommand, ready, say } from '../harness/commands.ts';

/** Submits what it is told to, and says so once it was accepted. It runs no turns itself. */
const { home, mark } = input<{ home: string; mark: string }>();

interface Request {
  readonly key: string;
  readonly prompt: string;
  readonly options: SubmitOptions & { requestId: string };
}

const opening = open({ home, settings: settingsFor(mark), engine: { maxRunning: 0 } });

onCommand<Request>(async ({ key, prompt, options }) => {
  const { engine } = await opening;
  const agent = options.agent ? { agent: options.agent } : {};
  const conversation = await engine.ensure({ key, ...agent });
  const { turn, seq, duplicate } = await engine.submit(conversation.id, prompt, options);
  say({ accepted: options.requestId, turn: turn.id, n: turn.n, seq, duplicate });
});
await opening;
ready();
