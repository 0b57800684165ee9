// An agent that violates the protocol in the way that its prompt names. Its answer is "Well."
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
}

/** Writes synchronously, because the process may exit right after it. */
const send = (message: object) => writeSync(1, `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const update = (value: unknown) => send({ method: 'session/update', params: { sessionId: 'one', update: value } });
const chunk = (text: string, more: object = {}, content: object = {}) =>
  update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text, ...content }, ...more });

const VIOLATIONS: Readonly<Record<string, () => void>> = {
  // Every field that Throughline reads has another type than in the protocol.
  'wrong types': () => {
    update({ sessionUpdate: 'tool_call', title: {}, kind: 7, locations: [{ path: 5 }], content: { text: 'x' } });
    update({ sessionUpdate: 'tool_call', toolCallId: [], locations: 'here', content: 'there', rawInput: 'all' });
    update({ sessionUpdate: 'tool_call_update', toolCallId: 'a', title: null, locations: [null], content: [null, 3] });
    update({ sessionUpdate: 'agent_message_chunk', content: null });
    update({ sessionUpdate: 'agent_message_chunk' });
    update({ sessionUpdate: 'session_info_update', title: 5 });
    update({ sessionUpdate: 'usage_update', size: 'large', cost: { amount: -1, currency: 'USD' } });
    update(null);
    send({ method: 'session/update' });
  },
  // A kind of update that only Throughline may create: it removes the text with this id from the answer.
  'our kind': () => {
    chunk('Said. ', { messageId: 'm' });
    update({ sessionUpdate: '_throughline/retracted', messageId: 'm' });
  },
  // One message that is nested too deep, and the answer right after it.
  'too deep': () => update({ sessionUpdate: 'plan', entries: JSON.parse(`${'['.repeat(250)}${']'.repeat(250)}`) }),
  // Additional fields beside the text.
  'more fields': () => {
    chunk('a', { _meta: { at: 1 } });
    chunk('b', { _meta: { at: 1 } });
    chunk('c', { _meta: { at: 2 } });
    chunk('d', {}, { annotations: { audience: ['user'] } });
    chunk('e');
    chunk('f');
  },
};

/** Questions that were not answered yet, and what is due when all are. */
let open = 0;
let answered = () => {};

/** Asks all at once, and waits for the answers. */
function askAll(questions: number): Promise<void> {
  const options = [
    { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
    { optionId: 'no', name: 'No', kind: 'reject_once' },
  ];
  const { promise, resolve } = Promise.withResolvers<void>();
  [open, answered] = [questions, resolve];
  for (let n = 1; n <= questions; n += 1) {
    const toolCall = { toolCallId: `tool-${n}`, title: `Question ${n}` };
    send({
      id: `question-${n}`,
      method: 'session/request_permission',
      params: { sessionId: 'one', toolCall, options },
    });
  }
  return promise;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params = {} } = JSON.parse(line) as Message;
  if (id === undefined) continue;
  if (method === undefined) {
    open -= 1;
    if (open === 0) answered();
    continue;
  }
  const result = { sessionId: 'one', protocolVersion: 1, agentInfo: { name: 'hostile', version: '1' } };
  if (method !== 'session/prompt') {
    send({ id, result });
    continue;
  }
  const [{ text }] = params.prompt as [{ text: string }];
  if (text.startsWith('ask ')) {
    void askAll(Number(text.slice(4))).then(() => {
      chunk('Well.');
      send({ id, result: { stopReason: 'end_turn' } });
    });
    continue;
  }
  VIOLATIONS[text]?.();
  chunk('Well.');
  send({ id, result: { stopReason: text.startsWith('stop: ') ? text.slice(6) : 'end_turn' } });
  if (text === 'exit') process.exit(0);
}
