import { BASE_PATH } from '../../../../src/wire/operations/operation.ts';
import { type OperationName, ROUTES } from '../../../../src/wire/routes.ts';
import type { Caller } from './caller.ts';
import { DOCUMENT } from './conform.ts';

/** Creates one of everything that an owner can have, with secret texts. Returns the ids and keys by the name of their path parameter. */
export async function belongings(ann: Caller) {
  const { id } = await ann.ok('POST', '/conversations', { key: 'hers', title: 'secret title' });
  const { turn } = await ann.ok('POST', '/conversations/hers/turns', { prompt: 'The codeword is osprey' });
  await ann.finished(turn);
  await ann.ok('POST', '/conversations/hers/turns', { prompt: '/ask May I?', permissions: 'ask' });
  let permission = '';
  for await (const { data } of ann.events('/conversations/hers/events')) {
    if (data.kind !== 'permission.asked') continue;
    permission = data.payload.permissionId;
    break;
  }
  const { tasks } = await ann.ok('POST', '/tasks', { plan: { name: 'secret errand', goal: '/hang' } });
  const tracked = { requestId: 'her-request', agentId: 'her-agent', sessionId: 'her-session', holder: HOLDER };
  await ann.ok('POST', '/tracker/requests', { ...tracked, prompt: 'The codeword is osprey' });
  await ann.ok('POST', '/tracker/requests/her-request/session', { sessionId: 'her-session', holder: HOLDER });
  await ann.ok('POST', '/tracker/requests/her-request/complete', { holder: HOLDER });
  const frames = ann.frames([]);
  const { streamId: stream } = await frames.next('opened');
  const ids: Record<string, string> = {
    ...{ stream, request: 'her-request', agent: 'her-agent', session: 'her-session' },
    ...{ conversation: id, sandbox: id, turn: turn.id, permission, task: tasks[0].id, plan: tasks[0].planId },
  };
  return { byId: ids, byKey: { ...ids, conversation: 'hers', task: 'secret errand' } as Record<string, string> };
}

const HOLDER = 'a-program-of-ann';

/** Valid bodies, by the name of their schema in the document. */
const BODIES: Record<string, object> = {
  NewQueue: { turns: [{ turn: 'x', drop: true }] },
  NewConversation: {},
  Feeds: { feeds: [] },
  ConversationChange: { title: 'stolen' },
  NewSandbox: { name: 'another' },
  NewCommand: { command: ['true'] },
  WarmUp: {},
  NewFork: { turn: 1 },
  Import: { exported: {} },
  NewTurn: { prompt: 'hello', create: false },
  Retry: {},
  PermissionAnswer: { optionId: 'allow' },
  TaskRetry: {},
  NewTrackedRequest: { requestId: 'another', agentId: 'another', sessionId: null, holder: HOLDER },
  NamedSession: { sessionId: 'stolen', holder: HOLDER },
  Held: { holder: HOLDER },
  CompletedRequest: { holder: HOLDER },
  FailedRequest: { holder: HOLDER },
  NewLink: { scopes: ['read'] },
};

/** A valid body for the operation. Undefined: the operation takes none. */
export function bodyOf(name: OperationName): object | undefined {
  const { method, path } = ROUTES[name];
  const { requestBody } = DOCUMENT.paths[`${BASE_PATH}${path}`][method.toLowerCase()];
  return requestBody && BODIES[requestBody.content['application/json'].schema.$ref.split('/').at(-1)];
}
