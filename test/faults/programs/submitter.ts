import type { SubmitOptions } from '../../../src/ports/engine.ts';
import { library } from '../../program.ts';
import { settingsFor } from '../harness/agents.ts';
import { input, onCommand, ready, say } from '../harness/commands.ts';

/** Submits what it is told to, and says so once it was accepted. Whether it runs turns itself is its setting. */

interface Request {
  readonly key: string;
  readonly prompt: string;
  readonly options: SubmitOptions & { requestId: string };
}

interface Input {
  readonly home: string;
  readonly store?: string;
  readonly mark: string;
  readonly engine: object;
  /** What an earlier process was asked to submit, and did not say that it did. */
  readonly requests: readonly Request[];
}

const { mark, engine: settings, requests, ...place } = input<Input>();
const opening = library().then(({ open }) => open({ ...place, settings: settingsFor(mark), engine: settings }));

async function submit({ key, prompt, options }: Request): Promise<void> {
  const { engine } = await opening;
  const agent = options.agent ? { agent: options.agent } : {};
  const conversation = await engine.ensure({ key, ...agent });
  const { turn, seq, duplicate } = await engine.submit(conversation.id, prompt, options);
  say({ accepted: options.requestId, turn: turn.id, n: turn.n, seq, duplicate });
}

onCommand<Request>((request) => void submit(request));
await Promise.all(requests.map(submit));
ready();
