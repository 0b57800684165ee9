import { type IncomingHttpHeaders, request } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import type { Scope } from '../../../src/core/key.ts';
import { BASE_PATH } from '../../../src/wire/operations/operation.ts';
import { type OperationName, ROUTES } from '../../../src/wire/routes.ts';
import { belongings, bodyOf } from '../../e2e/http/support/belongings.ts';
import { until } from '../../faults/harness/until.ts';
import type { Scenario } from '../harness/figures.ts';
import { ALL_SCOPES, World } from '../harness/world.ts';

/**
 * `token`: the token of the data home. `read+admin`: a key that has both scopes. `operator`: the token, or a key of the server's own owner
 * (no test has one); the answer is about all owners.
 */
type Need = Scope | 'token' | 'read+admin' | 'operator';

/** What each operation needs. Written independently of the server's own table, so that a mistake there is found. */
const NEEDS: Readonly<Record<OperationName, Need>> = {
  ...{ listConversations: 'read', ensureConversation: 'prompt', getConversation: 'read', changeConversation: 'prompt' },
  listDirectories: 'admin',
  ...{
    eraseConversation: 'admin',
    moveConversation: 'admin',
    summarise: 'read',
    show: 'read',
    listSessions: 'read',
    follow: 'read',
  },
  ...{
    warm: 'prompt',
    kill: 'prompt',
    changes: 'prompt',
    keepChanges: 'approve',
    discardChanges: 'approve',
    listFiles: 'prompt',
    fork: 'prompt',
    exportConversation: 'read',
    importConversation: 'prompt',
    verify: 'read',
  },
  ...{ submit: 'prompt', listTurns: 'read', getTurn: 'read', answerOf: 'read', cancel: 'prompt', retry: 'prompt' },
  ...{
    listOutline: 'read',
    listRecords: 'read',
    listRestores: 'read',
    listEvents: 'read',
    told: 'read',
    listPending: 'read',
    setDelivered: 'prompt',
  },
  ...{ listQueue: 'read', requeue: 'prompt' },
  ...{ sandboxOf: 'read', listSandboxes: 'read', showSandbox: 'read', openSandbox: 'prompt' },
  ...{ restSandbox: 'prompt', removeSandbox: 'admin', execInSandbox: 'admin' },
  ...{ listPermissions: 'read', getPermission: 'read', answer: 'approve' },
  ...{ listTasks: 'read', addTasks: 'prompt', followTasks: 'read', taskUsage: 'read', getTask: 'read' },
  ...{ getPlan: 'read', reportTask: 'read', cancelTask: 'prompt', retryTask: 'prompt' },
  ...{ trackRequest: 'prompt', getTrackedRequest: 'read', updateTrackedSession: 'prompt', renewTracked: 'prompt' },
  ...{ releaseTracked: 'prompt', completeTracked: 'prompt', failTracked: 'prompt', getTrackedAgent: 'read' },
  getTrackedSession: 'read',
  ...{
    whoAmI: 'read',
    getHealth: 'admin',
    examine: 'operator',
    newLink: 'token',
    hints: 'read',
    openStream: 'read',
    setFeeds: 'read',
    search: 'read',
    usage: 'read',
    listAgents: 'read',
  },
};

/** Only Ann may see these words. */
const SECRETS = /osprey|secret title|secret errand/;

interface Credentials {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  /**
   * A scope: a key of Ann with that scope. `unknown`: credentials that the server does not accept. `other`: a key of another owner.
   * `acting`: a key of another owner that names Ann, and must not. `application`: a key of another owner that may act for Ann, and does.
   * `token`: the token of the data home, for the server's own owner. `forAnn`: the token, for Ann. `misled`: the token, sent to another
   * host name. `foreignPage`: the token, sent by a page of another site.
   */
  readonly as: Scope | 'unknown' | 'acting' | 'other' | 'token' | 'forAnn' | 'application' | 'misled' | 'foreignPage';
}

/** The status that the answer must have. `allowed`: any except 401 and 403. */
export function expected(need: Need, as: Credentials['as'], hasId: boolean): number | 'allowed' {
  if (as === 'unknown') return 401;
  if (as === 'misled') return 421;
  if (as === 'acting' || as === 'foreignPage') return 403;
  if (need === 'token') return as === 'token' || as === 'forAnn' ? 'allowed' : 403;
  if (need === 'operator') return as === 'token' || as === 'forAnn' ? 'allowed' : 403;
  if (as === 'other' || as === 'token') return hasId ? 404 : 'allowed';
  return as === need || as === 'forAnn' || as === 'application' ? 'allowed' : 403;
}

export const access: Scenario = {
  name: 'access',
  does: 'every operation with every kind of credentials: missing, wrong, expired, revoked, of each scope, of another owner, acting for another owner with and without the right to, sent to another host name, sent by a foreign page',
  async run({ random, long }) {
    await using world = await World.start({
      agents: () => ({ scripted: { adapter: 'scripted' } }),
      owners: ['ann', 'bob'],
    });
    const { byId } = await belongings(world.caller('ann'));
    // Her task runs by itself. What it changes must not be mistaken for a change by a request.
    const turns = `/conversations/${encodeURIComponent(`task/${byId.task}`)}/turns`;
    await until('the task is at work', async () => (await world.caller('ann').get(turns)).body.turns?.[0]?.sent);
    const credentials = await everyKind(world);
    const all = operations(byId);
    const attempts = credentials.flatMap((one) => {
      const some = long || one.as !== 'unknown' ? all : Array.from({ length: GUESSES }, () => random.pick(all));
      return some.map((call) => ({ call, one, must: expected(call.need, one.as, call.id !== null) }));
    });
    const guesses = attempts.filter(({ one }) => one.as === 'unknown');
    const refused = attempts.filter(({ must, one }) => must !== 'allowed' && one.as !== 'unknown');
    const allowed = attempts.filter(({ must }) => must === 'allowed');
    const violations: string[] = [];
    const tried = async (some: readonly Attempt[]) => {
      for (const attempt of some) violations.push(...(await tryIt(world, attempt)));
    };

    const before = await stateOf(world);
    for (let i = 0; i < guesses.length; i += AT_ONCE) {
      await Promise.all(guesses.slice(i, i + AT_ONCE).map((attempt) => tried([attempt])));
    }
    await tried(refused);
    const after = await stateOf(world);
    if (after !== before) violations.push(`refused requests have changed something: ${before} → ${after}`);
    // A warm-up would wait for the running turn, and that turn waits for an answer to its question.
    const hers = await world.caller('ann').ok('GET', '/conversations/hers/turns');
    await world.caller('ann').ok('POST', `/turns/${hers.turns.at(-1).id}/cancel`);
    await tried(allowed);
    violations.push(...(await world.leftOver()));
    const counts = { requests: attempts.length, refused: guesses.length + refused.length, allowed: allowed.length };
    return { figures: { operations: all.length, 'kinds of credentials': credentials.length, ...counts }, violations };
  },
};

/** The server delays its answers to wrong secrets more and more. So the short version tries few, and many at the same time. */
const GUESSES = 6;
const AT_ONCE = 80;

interface Attempt {
  readonly call: Call;
  readonly one: Credentials;
  readonly must: number | 'allowed';
}

async function tryIt(world: World, { call, one, must }: Attempt): Promise<string[]> {
  const { status, text } = await ask(world, call, one);
  const what = `${call.name} with ${one.name}: ${status}`;
  const right = must === 'allowed' ? status !== 401 && status !== 403 && status < 500 : status === must;
  const isOther = must !== 'allowed' || (call.need !== 'operator' && (one.as === 'other' || one.as === 'token'));
  return [
    ...(right ? [] : [`${what}, expected ${must}`]),
    ...(isOther && SECRETS.test(text) ? [`${what}, and the answer contains a secret of Ann`] : []),
  ];
}

const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

async function everyKind(world: World): Promise<Credentials[]> {
  const make = (owner: string, scopes: string, ...more: string[]) => world.newKey(owner, scopes, ...more);
  const [read, prompt, approve, admin] = await Promise.all(
    (['read', 'prompt', 'approve', 'admin'] as const).map(async (scope) => ({
      ...{ name: `a key with ${scope}`, as: scope, headers: bearer((await make('ann', scope)).key) },
    })),
  );
  const [expired, revoked] = [await make('ann', ALL_SCOPES, '--expires', '2999-01-01'), await make('ann', ALL_SCOPES)];
  expire(world, expired.id);
  await world.home.ok('keys', 'revoke', revoked.id, '--as', 'ann');
  const acts = `act-as,${ALL_SCOPES}`;
  const [limited, application] = [await make('app', acts, '--owners', 'an:*'), await make('app', acts)];
  const own = world.key('ann');
  const damaged = own.slice(0, -1) + (own.endsWith('A') ? 'B' : 'A');
  const unknown = (name: string, headers: Record<string, string>): Credentials => ({ name, headers, as: 'unknown' });
  return [
    unknown('no credentials', {}),
    unknown('a wrong token', bearer('x'.repeat(43))),
    unknown('another scheme', { authorization: `Basic ${world.token}` }),
    unknown('a key with a wrong secret', bearer(damaged)),
    unknown('a key that does not exist', bearer(`tl_0123456789abcdef.${'A'.repeat(43)}`)),
    unknown('an expired key', bearer(expired.key)),
    unknown('a revoked key', bearer(revoked.key)),
    unknown('a made-up cookie', { cookie: `throughline_${world.port}=${'A'.repeat(43)}` }),
    { name: 'the key of another owner', as: 'other', headers: bearer(world.key('bob')) },
    {
      name: 'the key of another owner that names Ann',
      as: 'acting',
      headers: { ...bearer(world.key('bob')), 'throughline-owner': 'ann' },
    },
    {
      name: 'a key that may act for some, and names Ann',
      as: 'acting',
      headers: { ...bearer(limited.key), 'throughline-owner': 'ann' },
    },
    ...[read, prompt, approve, admin].flatMap((one) => (one === undefined ? [] : [one])),
    { name: 'the token', as: 'token', headers: bearer(world.token) },
    { name: 'the token and another Host', as: 'misled', headers: { ...bearer(world.token), host: 'other.example' } },
    {
      name: 'the token from a foreign page',
      as: 'foreignPage',
      headers: { ...bearer(world.token), origin: 'https://other.example', 'sec-fetch-site': 'cross-site' },
    },
    {
      name: 'a key that may act for all, and names Ann',
      as: 'application',
      headers: { ...bearer(application.key), 'throughline-owner': 'ann' },
    },
    { name: 'the token for Ann', as: 'forAnn', headers: { ...bearer(world.token), 'throughline-owner': 'ann' } },
  ];
}

/** Makes a key expire now. */
function expire(world: World, id: string): void {
  const db = new DatabaseSync(`${world.home.path}/home/throughline.db`, { timeout: 10_000 });
  db.prepare('UPDATE keys SET expires_at = 1 WHERE id = ?').run(id);
  db.close();
}

interface Call {
  readonly name: string;
  readonly need: Need;
  readonly method: string;
  readonly path: string;
  /** The id in the path, of something that belongs to Ann. */
  readonly id: string | null;
  readonly body: object | undefined;
}

const BESIDE_ROUTES: readonly Pick<Call, 'name' | 'need' | 'path'>[] = [
  { name: 'metrics', need: 'admin', path: '/metrics' },
  { name: 'backup', need: 'operator', path: '/backup' },
  { name: 'logins of agents', need: 'read+admin', path: `${BASE_PATH}/agents?login=true` },
];

/** The number of operations. */
export const OPERATIONS = Object.keys(ROUTES).length + BESIDE_ROUTES.length;

/** Every operation, on what belongs to Ann. Erasing comes last. */
function operations(ids: Readonly<Record<string, string>>): Call[] {
  const calls = (Object.keys(ROUTES) as OperationName[]).map((name): Call => {
    const { method, path } = ROUTES[name];
    const [, parameter] = /\{(\w+)\}/.exec(path) ?? [];
    const id = parameter === undefined ? null : (ids[parameter] ?? null);
    const filled = `${BASE_PATH}${path.replace(/\{\w+\}/, id ?? '')}${name === 'search' ? '?q=osprey' : ''}`;
    return { name, need: NEEDS[name], method, path: filled, id, body: bodyOf(name) };
  });
  const more = { method: 'GET', id: null, body: undefined } as const;
  calls.push(...BESIDE_ROUTES.map((call) => ({ ...call, ...more })));
  return calls.toSorted((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'));
}

/** Makes one request with exactly these headers. Of a stream, only the beginning is read. */
function ask(world: World, call: Call, { headers }: Credentials) {
  const host = `127.0.0.1:${world.port}`;
  return new Promise<{ status: number; text: string; headers: IncomingHttpHeaders }>((resolve, reject) => {
    const json = call.body === undefined ? {} : { 'content-type': 'application/json' };
    const options = { host: '127.0.0.1', port: world.port, method: call.method, path: call.path, setHost: false };
    const asked = request({ ...options, headers: { host, ...headers, ...json }, agent: false }, (response) => {
      const done = (text: string) => resolve({ status: response.statusCode ?? 0, text, headers: response.headers });
      if (/event-stream/.test(response.headers['content-type'] ?? '')) {
        done('');
        asked.destroy();
        return;
      }
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => done(text));
    });
    asked.setTimeout(ANSWER_MS, () => asked.destroy(new Error(`${call.name}: no answer within ${ANSWER_MS} ms`)));
    asked.on('error', reject);
    asked.end(call.body === undefined ? '' : JSON.stringify(call.body));
  });
}

const ANSWER_MS = 120_000;

/** Everything that Ann and Bob have, as text. */
async function stateOf(world: World): Promise<string> {
  const ann = world.caller('ann');
  const views = [await ann.ok('GET', '/conversations/hers/view'), await ann.ok('GET', '/tasks')];
  const lists = await Promise.all(['ann', 'bob'].map((owner) => world.caller(owner).ok('GET', '/conversations')));
  return JSON.stringify([views, lists]);
}
