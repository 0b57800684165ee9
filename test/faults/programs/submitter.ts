import { open } from '../../../src/index.ts';
import type { SubmitOptions } from '../../../src/ports/engine.ts';
import { settingsFor } from '../harness/agents.ts';
import { input, onCommand, ready, say } from '../harness/commands.ts';

/** Submits what it is told to, and says so once it was accepted. Whether it runs turns itself is its setting. */
const { home, mark, engine: settings } = input<{ home: string; mark: string; engine: object }>();

interface Request {
  readonly key: string;
  readonly prompt: string;
  readonly options: SubmitOptions & { requestId: string };
}

const opening = open({ home, settings: settingsFor(mark), engine: settings });

onCommand<Request>(async ({ key, prompt, options }) => {
  const { engine } = await opening;
  const agent = options.agent ? { agent: options.agent } : {};
  const conversation = await engine.ensure({ key, ...agent });
  const { turn, seq, duplicate } = await engine.submit(conversation.id, prompt, options);
  say({ accepted: options.requestId, turn: turn.id, n: turn.n, seq, duplicate });
});
await opening;
ready();
