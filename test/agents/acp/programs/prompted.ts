// An agent that does what the prompt says: a JSON object with the `updates` to send.
import { createInterface } from 'node:readline';

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
}

const say = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

function prompted({ sessionId, prompt }: Record<string, unknown>): object {
  const last = (prompt as { text: string }[]).at(-1)?.text ?? '{}';
  const { updates = [] } = JSON.parse(last) as { updates?: object[] };
  for (const update of updates) say({ method: 'session/update', params: { sessionId, update } });
  return { stopReason: 'end_turn' };
}

const ANSWERS: Readonly<Record<string, (params: Record<string, unknown>) => object>> = {
  initialize: () => ({ protocolVersion: 1, agentCapabilities: {}, agentInfo: { name: 'prompted', version: '1.0.0' } }),
  'session/new': () => ({ sessionId: `prompted-${process.pid}` }),
  'session/prompt': prompted,
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method = '', params = {} } = JSON.parse(line) as Message;
  if (id !== undefined) say({ id, result: ANSWERS[method]?.(params) ?? {} });
}
