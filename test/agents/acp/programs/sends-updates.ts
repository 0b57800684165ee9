// An agent that sends the updates that its prompt lists: a JSON object with the field `updates`.
import { createInterface } from 'node:readline';

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
}

const send = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

function answerPrompt({ sessionId, prompt }: Record<string, unknown>): object {
  const last = (prompt as { text: string }[]).at(-1)?.text ?? '{}';
  const { updates = [] } = JSON.parse(last) as { updates?: object[] };
  for (const update of updates) send({ method: 'session/update', params: { sessionId, update } });
  return { stopReason: 'end_turn' };
}

const ANSWERS: Readonly<Record<string, (params: Record<string, unknown>) => object>> = {
  initialize: () => ({
    protocolVersion: 1,
    agentCapabilities: {},
    agentInfo: { name: 'sends-updates', version: '1.0.0' },
  }),
  'session/new': () => ({ sessionId: `sends-updates-${process.pid}` }),
  'session/prompt': answerPrompt,
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method = '', params = {} } = JSON.parse(line) as Message;
  if (id !== undefined) send({ id, result: ANSWERS[method]?.(params) ?? {} });
}
