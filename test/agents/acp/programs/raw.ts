// An agent without the SDK. It sends what an SDK would not: unknown kinds of updates, additional fields, and lines that are no messages.
// It appends every request that it gets to the file `requests.jsonl` in its home.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
}

/** All messages about one request. They are written together, so that a client that has the answer also has what follows it. */
let lines: string[] = [];
const send = (message: object) => lines.push(JSON.stringify({ jsonrpc: '2.0', ...message }));
const update = (sessionId: unknown, value: object) =>
  send({ method: 'session/update', params: { sessionId, update: value } });
const chunk = (kind: string, text: string) => ({ sessionUpdate: kind, content: { type: 'text', text } });

const SESSION = {
  modes: { currentModeId: 'usual', availableModes: [] },
  configOptions: [{ id: 'model', name: 'Model', category: 'model', type: 'select', currentValue: 'a' }],
};
const TOOL = {
  sessionUpdate: 'tool_call_update',
  toolCallId: 't1',
  title: 'Look',
  status: 'completed',
  extra: { kept: true },
};
let mode: unknown = 'usual';
const BANNER = 'raw v1.0.0\n---\n';
/** The prompts of this process, in order. A later process gets its history in the variable PROMPTS. */
const prompts: string[] = [];

const ANSWERS: Readonly<Record<string, (params: Record<string, unknown>) => object>> = {
  initialize: () => ({
    protocolVersion: 1,
    agentCapabilities: { loadSession: true, sessionCapabilities: { additionalDirectories: {}, close: {} } },
    agentInfo: { name: 'raw', version: '1.0.0' },
  }),
  'session/set_mode': ({ modeId }) => {
    mode = modeId;
    return {};
  },
  'session/new': () => ({ sessionId: `raw-${process.pid}`, ...SESSION, _meta: { piAcp: { startupInfo: BANNER } } }),
  'session/load': ({ sessionId }) => {
    for (const text of JSON.parse(process.env.PROMPTS ?? '[]') as string[]) {
      update(sessionId, chunk('user_message_chunk', text));
      update(sessionId, chunk('agent_message_chunk', `Answer to: ${text}`));
    }
    return SESSION;
  },
  'session/prompt': ({ sessionId, prompt }) => {
    const [{ text }] = prompt as [{ text: string }];
    prompts.push(text);
    lines.push('this line is no message');
    // pi sends its banner during the first answer.
    if (prompts.length === 1) update(sessionId, chunk('agent_message_chunk', BANNER));
    update(sessionId, { sessionUpdate: 'weather_update', sky: 'blue', _meta: { since: 1 } });
    if (mode !== 'quiet') update(sessionId, TOOL);
    update('another-session', chunk('agent_message_chunk', 'not ours'));
    send({ method: '_vendor/event', params: { value: 1 } });
    update(sessionId, chunk('agent_message_chunk', `Answer to: ${text}`));
    return { stopReason: 'end_turn' };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method = '', params = {} } = JSON.parse(line) as Message;
  appendFileSync(join(process.env.HOME ?? '', 'requests.jsonl'), `${JSON.stringify({ method, params })}\n`);
  const answer = ANSWERS[method];
  if (id !== undefined) send({ id, result: answer?.(params) ?? {} });
  // Updates after the answer belong to no turn.
  if (method === 'session/prompt') {
    update(params.sessionId, { sessionUpdate: 'session_info_update', title: 'Afterwards' });
    update(params.sessionId, chunk('agent_message_chunk', 'too late'));
    send({ method: '_vendor/later', params: { value: 2 } });
  }
  process.stdout.write(lines.map((one) => `${one}\n`).join(''));
  lines = [];
}
