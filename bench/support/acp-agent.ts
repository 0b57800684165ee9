// A minimal ACP agent. It answers `chunks N` with N chunks, `chunks N 25ms` with N chunks and that delay before each, and anything else
// with one chunk. Written without the SDK, so that the measure is about its clients.
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

interface Request {
  readonly id?: number;
  readonly method: string;
  readonly params: { readonly prompt?: readonly { readonly text?: string }[] };
}

const SESSION = 'bench-session';
const ANSWERS: Readonly<Record<string, object>> = {
  initialize: { protocolVersion: 1, agentCapabilities: {}, agentInfo: { name: 'bench', version: '1' } },
  'session/new': { sessionId: `${SESSION}-${process.pid}` },
  'session/prompt': { stopReason: 'end_turn' },
};
const line = (message: object) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
const chunk = (text: string) => {
  const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } };
  return line({ method: 'session/update', params: { sessionId: `${SESSION}-${process.pid}`, update } });
};

for await (const text of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(text) as Request;
  if (id === undefined) continue;
  if (method === 'session/prompt') {
    const [, count = '1', ms] = /^chunks (\d+)(?: (\d+)ms)?$/.exec(params.prompt?.at(-1)?.text ?? '') ?? [];
    for (let i = 1; i <= Number(count); i += 1) {
      if (ms !== undefined) await delay(Number(ms));
      process.stdout.write(chunk(`word ${i} `));
    }
  }
  process.stdout.write(line({ id, result: ANSWERS[method] ?? {} }));
}
