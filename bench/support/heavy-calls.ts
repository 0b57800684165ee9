import { record, type Sizes, WORDS } from './heavy-store.ts';

/** A request, and the statuses that are allowed as its answer. */
export interface HeavyCall {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly body?: () => Buffer;
  readonly statuses: readonly number[];
}

const REFUSED = [0, 400, 413];

export function heavyCalls({ turns, bodyBytes }: Sizes): HeavyCall[] {
  const repeated = (head: string, piece: string, tail: string) => () =>
    Buffer.concat([
      Buffer.from(head),
      Buffer.alloc(Math.floor((bodyBytes - 200) / piece.length) * piece.length, piece),
      Buffer.from(tail),
    ]);
  const exported = { format: 'throughline.conversation', version: 1, sessions: [] };
  const conversation = { key: 'imported', title: 'imported', agent: 'scripted', restore: {} };
  const records = () => Array.from({ length: turns }, (_, i) => record(i + 1, WORDS));
  const post = (name: string, statuses: readonly number[], body: () => Buffer): HeavyCall => ({
    ...{ name, method: 'POST', path: '/imports', statuses, body },
  });
  const get = (name: string, path: string): HeavyCall => ({ name, method: 'GET', path, statuses: [200] });
  return [
    post('import of empty lists', REFUSED, repeated('{"exported":[', '[],', '[]]}')),
    post('import of very many numbers', REFUSED, repeated('{"exported":[', '1,', '1]}')),
    post('import of very deep lists', REFUSED, () =>
      Buffer.from(`{"exported":${'['.repeat(bodyBytes / 2 - 99)}${']'.repeat(bodyBytes / 2 - 99)}}`),
    ),
    post('import of one long text', REFUSED, repeated('{"exported":"', 'x', '"}')),
    post('import of one long text of escapes', REFUSED, repeated('{"exported":"', '\\n', '"}')),
    post('import of one long number', REFUSED, repeated('{"exported":', '1', '}')),
    post('import of many fields', REFUSED, () => {
      const fields = Array.from({ length: Math.floor(bodyBytes / 14) }, (_, i) => `"f${i}":${i % 10}`);
      return Buffer.from(`{"exported":{${fields.join(',')}}}`);
    }),
    post('import of a long conversation', [201], () =>
      Buffer.from(JSON.stringify({ exported: { ...exported, conversation, records: records() } })),
    ),
    post('import of one long turn', [201, 413], () => {
      const text = WORDS.repeat(Math.floor(Math.min(bodyBytes, 11_000_000) / WORDS.length));
      return Buffer.from(
        JSON.stringify({
          exported: { ...exported, conversation: { ...conversation, key: 'one' }, records: [record(1, text)] },
        }),
      );
    }),
    get('turns of one long turn', '/conversations/one/turns?limit=10000'),
    get('search', '/search?q=mountains+river&limit=100'),
    get('search of a word that is nowhere', '/search?q=xyzzy'),
    get('list by words', '/conversations?q=river&limit=100'),
    // A view of more than 64 MiB is refused after it was read.
    { ...get('view of a long conversation', '/conversations/long/view'), statuses: [200, 413] },
    get('view of a large conversation', '/conversations/large/view'),
    get('sessions', '/conversations/long/sessions'),
    get('turns', '/conversations/long/turns?limit=10000'),
    get('turns of a large conversation', '/conversations/large/turns?limit=10000'),
    get('export of a long conversation', '/conversations/long/export'),
    get('export of a large conversation', '/conversations/large/export'),
    get('verify', '/conversations/events/verify'),
    get('verify of large events', '/conversations/large%20events/verify'),
    get('summary', '/conversations/long/summary'),
    get('list', '/conversations?limit=10000'),
    get('list of conversations with open turns', '/conversations?limit=10000&state=queued'),
    get('outline', '/conversations/long/outline?limit=10000'),
    get('records', '/conversations/long/records?limit=10000'),
    get('records of a large conversation', '/conversations/large/records?limit=10000'),
    get('log', '/conversations/events/log?limit=10000'),
    get('log of large events', '/conversations/large%20events/log?limit=10000'),
    get('restores', '/conversations/receipts/restores?limit=10000'),
    get('receipts', '/conversations/receipts/sessions'),
    get('queue', '/conversations/queue/queue?limit=10000'),
    get('pending', '/pending?limit=10000'),
    get('permissions', '/permissions?limit=10000&open=true'),
    get('board', '/tasks?limit=10000'),
    get('usage', '/usage?limit=10000'),
    get('details of the health', '/health?details=true'),
    get('doctor', '/doctor'),
    {
      name: 'a plan of many tasks',
      ...{ method: 'POST', path: '/tasks', statuses: [202] },
      body: () => {
        // The first task fails, so that none of the others begins.
        const first = { name: 'first', goal: 'fail', gate: { command: 'false' }, maxIterations: 1 };
        const others = Array.from({ length: 999 }, () => ({ goal: WORDS.repeat(80), after: ['first'] }));
        return Buffer.from(JSON.stringify({ plan: { tasks: [first, ...others] } }));
      },
    },
    {
      name: 'a long prompt',
      ...{ method: 'POST', path: '/conversations/prompted/turns', statuses: [202] },
      body: () => Buffer.from(JSON.stringify({ prompt: WORDS.repeat(80_000) })),
    },
    {
      name: 'fork',
      method: 'POST',
      path: '/conversations/long/fork',
      statuses: [201],
      body: () => Buffer.from('{"key":"copy"}'),
    },
    { name: 'erase', method: 'DELETE', path: '/conversations/erase', statuses: [200] },
  ];
}
