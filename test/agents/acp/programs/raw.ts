// An agent without the SDK, which sends what no SDK would: kinds that nobody knows, fields of its own, noise between the lines.
// It writes every request that it gets to the file `requests.jsonl` in its home.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
}

/** What is said about one request. Written at once: whoever has read the answer can then read what comes after it, too. */
let lines: string[] = [];
const say = (message: object) => lines.push(JSON.stringify({ jsonrpc: '2.0', ...message }));
const update = (sessionId: unknown, value: object) =>
  say({ method: 'session/update', params: { sessionId, update: value } });
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
/** The prompts so far, in order. A later process gets them in a variable. */
const said: string[] = [];

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
    for (const text of JSON.parse(process.env.SAID ?? '[]') as string[]) {
      update(sessionId, chunk('user_message_chunk', text));
      update(sessionId, chunk('agent_message_chunk', `Heard: ${text}`));
    }
    return SESSION;
  },
  'session/prompt': ({ sessionId, prompt }) => {
    const [{ text }] = prompt as [{ text: string }];
    said.push(text);
    lines.push('this line is no message');
    // As pi does: at some time during the first answer.
    if (said.length === 1) update(sessionId, chunk('agent_message_chunk', BANNER));
    update(sessionId, { sessionUpdate: 'weather_update', sky: 'blue', _meta: { since: 1 } });
    if (mode !== 'quiet') update(sessionId, TOOL);
    update('another-session', chunk('agent_message_chunk', 'not ours'));
    say({ method: '_vendor/event', params: { value: 1 } });
    update(sessionId, chunk('agent_message_chunk', `Heard: ${text}`));
    return { stopReason: 'end_turn' };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method = '', params = {} } = JSON.parse(line) as Message;
  appendFileSync(join(process.env.HOME ?? '', 'requests.jsonl'), `${JSON.stringify({ method, params })}\n`);
  const answer = ANSWERS[method];
  if (id !== undefined) say({ id, result: answer?.(params) ?? {} });
  // What comes after the answer belongs to no turn.
  if (method === 'session/prompt') {
    update(params.sessionId, { sessionUpdate: 'session_info_update', title: 'Afterwards' });
    update(params.sessionId, chunk('agent_message_chunk', 'too late'));
    say({ method: '_vendor/later', params: { value: 2 } });
  }
  process.stdout.write(lines.map((one) => `${one}\n`).join(''));
  lines = [];
}
