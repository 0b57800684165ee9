import type { SubmitOptions } from '../../../src/ports/engine.ts';
import { library } from '../../program.ts';
import { settingsFor } from '../harness/agents.ts';
import { input, onCommand, ready, say } from '../harness/commands.ts';

/** Submits the requests that it gets, and prints a line when one was accepted. Its settings decide whether it runs turns itself. */

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
  /** Requests that an earlier process got and did not report as accepted. */
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
