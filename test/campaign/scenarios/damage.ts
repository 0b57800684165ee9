import {
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { parseLines } from '../../e2e/cli/process.ts';
import type { Random } from '../../faults/harness/random.ts';
import { until } from '../../faults/harness/until.ts';
import type { Scenario } from '../harness/figures.ts';
import { World } from '../harness/world.ts';

const KEYS = ['a', 'b', 'c'];
const PAGE = 4_096;

export const damage: Scenario = {
  name: 'damage',
  does: 'the data file is taken away, replaced or cut under the running server; after a kill its log is cut or overwritten, an older copy is put back, pages are overwritten; a backup made meanwhile is restored',
  async run({ random, long }) {
    const kinds = long
      ? [...TAKEN, ...CHANGED, ...CHANGED, ...RESTORED, ...PAGES, ...PAGES]
      : [TAKEN[0], random.pick(CHANGED)];
    const violations: string[] = [];
    const figures = { damages: 0, 'prompts refused meanwhile': 0, 'turns lost': 0, 'losses reported': 0 };
    for (const damaged of kinds) {
      if (damaged === undefined) continue;
      await using world = await World.start({ agents: () => ({ scripted: { adapter: 'scripted' } }), owners: ['ann'] });
      const tried = new Tried(world, random);
      await damaged.run(tried).catch((error) => tried.violations.push(String(error)));
      figures.damages += 1;
      figures['prompts refused meanwhile'] += tried.refused;
      figures['turns lost'] += tried.lost.length;
      figures['losses reported'] += tried.said ? 1 : 0;
      violations.push(...tried.violations.map((violation) => `${damaged.name}: ${violation}`));
    }
    return { figures, violations };
  },
};

interface Damage {
  readonly name: string;
  run(tried: Tried): Promise<void>;
}

/** What was acknowledged to clients before and after the damage, and what was lost. */
class Tried {
  readonly world: World;
  readonly random: Random;
  readonly data: string;
  readonly violations: string[] = [];
  /** Acknowledged turns. */
  readonly turns: string[] = [];
  /** By conversation: the number of the last event that the server has shown. */
  readonly seqs = new Map<string, number>();
  refused = 0;
  lost: readonly string[] = [];
  said = false;

  constructor(world: World, random: Random) {
    this.world = world;
    this.random = random;
    this.data = join(world.home.path, 'home', 'throughline.db');
  }

  get caller() {
    return this.world.caller('ann');
  }

  /** Runs turns, one after the other. */
  async work(count: number): Promise<void> {
    for (let i = 0; i < count; i += 1) {
      const key = this.random.pick(KEYS);
      const { turn } = await this.caller.ok('POST', `/conversations/${key}/turns`, { prompt: `Number ${i}.` });
      this.turns.push(turn.id);
      await this.caller.finished(turn);
      this.seqs.set(key, (await this.caller.ok('GET', `/conversations/${key}`)).lastSeq);
    }
  }

  /** Sends prompts that the server must refuse now. */
  async refuse(count: number): Promise<void> {
    for (let i = 0; i < count; i += 1) {
      const { status, body } = await this.caller.post('/conversations/a/turns', { prompt: 'Now?' });
      if (status === 503 && body.code === 'storage_gone') this.refused += 1;
      else this.violations.push(`a prompt was answered with ${status} ${JSON.stringify(body)}`);
    }
    const { status, body } = await this.caller.get('//healthz');
    if (status !== 503 || body.ready !== false) this.violations.push(`healthz says ${status} ${JSON.stringify(body)}`);
  }

  /** Finds out which acknowledged turns and shown events are missing. */
  async look(): Promise<void> {
    const missing: string[] = [];
    for (const id of this.turns) {
      const { status, body } = await this.caller.get(`/turns/${id}`);
      if (status !== 200 || body.state !== 'completed') missing.push(id);
    }
    const shorter = [];
    for (const [key, seq] of this.seqs) {
      const { body } = await this.caller.get(`/conversations/${key}`);
      if (!(body.lastSeq >= seq)) shorter.push(key);
    }
    this.lost = missing;
    const reasons = await this.reasons();
    const found = await this.findings();
    this.said = reasons.length > 0 && found.length > 0;
    if (missing.length + shorter.length > 0 && !this.said) {
      this.violations.push(
        `${missing.length} turns are lost, ${shorter.length} conversations are shorter, and health says ${reasons}, doctor ${found}`,
      );
    }
  }

  async reasons(): Promise<string[]> {
    const { body } = await this.caller.get('//healthz');
    return body.reasons.map(({ code }: { code: string }) => code);
  }

  async findings(): Promise<string[]> {
    const { stdout } = await this.world.home.run('doctor', '--json');
    const found = parseLines(stdout).filter(
      ({ check }) => !['agents', 'sessions', 'leases', 'processes'].includes(check),
    );
    return found.map(({ check, subject }) => `${check}: ${subject}`);
  }
}

/** The file is damaged while the server runs. Until it is repaired nothing may be acknowledged, and nothing acknowledged may be lost. */
const TAKEN: readonly Damage[] = [
  {
    name: 'taken away',
    async run(tried) {
      const { data, world } = tried;
      await tried.work(3);
      renameSync(data, `${data}.kept`);
      await tried.refuse(5);
      renameSync(`${data}.kept`, data);
      await tried.work(2);
      await world.kill();
      await world.up();
      await tried.look();
      if (tried.said) tried.violations.push('a loss is reported, but nothing was lost');
      if (tried.lost.length > 0) tried.violations.push(`${tried.lost.length} acknowledged turns are gone`);
      tried.violations.push(...(await world.leftOver()));
    },
  },
  {
    name: 'replaced by a copy',
    async run(tried) {
      const { data, world } = tried;
      await tried.work(3);
      renameSync(data, `${data}.kept`);
      copyFileSync(`${data}.kept`, data);
      await tried.refuse(5);
      rmSync(data);
      renameSync(`${data}.kept`, data);
      await tried.work(1);
      await tried.look();
      if (tried.lost.length > 0) tried.violations.push(`${tried.lost.length} acknowledged turns are gone`);
      tried.violations.push(...(await world.leftOver()));
    },
  },
  {
    name: 'cut in its place',
    async run(tried) {
      const { data, world } = tried;
      await tried.work(6);
      // So that the log is written into the data file.
      await world.stop();
      await world.up();
      const pages = Math.floor(statSync(data).size / PAGE);
      truncateSync(data, tried.random.whole(1, pages - 1) * PAGE);
      await tried.refuse(5);
      await world.kill();
      if (!(await startsDamaged(tried))) return;
      const reasons = await tried.reasons();
      tried.said = reasons.length > 0 && (await tried.findings()).length > 0;
      if (!tried.said) tried.violations.push(`after a restart, healthz says ${reasons}`);
      await world.kill();
      await until('agents to end', () => world.agents().length === 0).catch(() => {});
    },
  },
];

/** The files are damaged after a kill, before the next server starts. The server and `doctor` must report what is lost. */
const CHANGED: readonly Damage[] = [
  afterKill('the log cut', ({ data, random }) => {
    const { size } = statSync(`${data}-wal`);
    truncateSync(`${data}-wal`, random.whole(1, size - 1));
  }),
  afterKill('the log overwritten', ({ data, random }) => {
    overwrite(`${data}-wal`, random.whole(PAGE, statSync(`${data}-wal`).size - PAGE));
  }),
  afterKill('the log removed', ({ data }) => rmSync(`${data}-wal`)),
  afterKill('an older copy put back', ({ data }) => {
    rmSync(`${data}-wal`, { force: true });
    copyFileSync(`${data}.old`, data);
  }),
];

const RESTORED: readonly Damage[] = [{ name: 'restored from a backup', run: restored }];

/** A backup is made while turns run. After a restore, every turn that ended before the backup is there, and no loss is reported. */
async function restored(tried: Tried): Promise<void> {
  const { world } = tried;
  await tried.work(4);
  const before = tried.turns.length;
  const [key] = tried.seqs.keys();
  const file = join(world.home.path, 'backup.db');
  const [made] = await Promise.all([world.home.run('backup', file), tried.work(2)]);
  if (made.code !== 0) tried.violations.push(`backup ended with ${made.code}: ${made.stderr}`);
  await tried.work(2);
  const told = Math.max(...tried.seqs.values());
  await world.stop();
  const back = await world.home.run('restore', file);
  if (back.code !== 0) tried.violations.push(`restore ended with ${back.code}: ${back.stderr}`);
  await world.up();
  for (const id of tried.turns.slice(0, before)) {
    const { status, body } = await tried.caller.get(`/turns/${id}`);
    if (status !== 200 || body.state !== 'completed') tried.violations.push(`a turn from before the backup: ${status}`);
  }
  const reasons = await tried.reasons();
  if (reasons.length > 0) tried.violations.push(`after a restore, healthz says ${reasons}`);
  const { status } = await tried.caller.get(`/conversations/${key}/events?after=${told + 1_000}`);
  if (status !== 409) tried.violations.push(`a reader from beyond the end was answered with ${status}`);
  await tried.work(2);
  tried.violations.push(...(await world.leftOver()));
}

const PAGES: readonly Damage[] = [{ name: 'pages overwritten', run: damagedPage }];

function afterKill(name: string, change: (tried: Tried) => void): Damage {
  return {
    name,
    async run(tried) {
      const { data, world } = tried;
      await tried.work(2);
      // The copy is complete: the server is stopped, so the log is empty.
      await world.stop();
      copyFileSync(data, `${data}.old`);
      await world.up();
      await tried.work(tried.random.whole(3, 6));
      await world.kill();
      change(tried);
      await world.up();
      await tried.look();
      // After the loss is acknowledged, work continues. The sandboxes of lost conversations are put aside.
      if (tried.said) await world.home.run('doctor', '--accept-loss', '--fix');
      const before = tried.turns.length;
      await tried.work(2);
      for (const id of tried.turns.slice(before)) await tried.caller.ok('GET', `/turns/${id}`);
      tried.violations.push(...(await world.leftOver()));
    },
  };
}

/** Pages of the data file are overwritten. The server must report that, answer requests, and not retry in a busy loop. */
async function damagedPage(tried: Tried): Promise<void> {
  const { data, world, random } = tried;
  await tried.work(6);
  await world.stop();
  // Not the first pages, which have the header and the list of tables: without them the file cannot be opened.
  for (let i = 0; i < 3; i += 1) overwrite(data, random.whole(8, Math.floor(statSync(data).size / PAGE) - 1) * PAGE);
  const isDamaged = !isWhole(data);
  if (!(await startsDamaged(tried))) return;
  const start = cpuSeconds(world.server.pid);
  const answers = await Promise.all(
    KEYS.map((key) => tried.caller.post(`/conversations/${key}/turns`, { prompt: 'On.' })),
  );
  await pause(4_000);
  const spent = (cpuSeconds(world.server.pid) - start) / 4;
  if (spent > 0.6) tried.violations.push(`the server used ${Math.round(spent * 100)} % of a core`);
  const { status } = await tried.caller.get('//livez');
  if (status !== 200) tried.violations.push(`livez says ${status}`);
  const found = await tried.findings();
  tried.said = found.length > 0;
  if (isDamaged && found.length === 0) tried.violations.push('doctor does not report the damage');
  const met = answers.some(({ status: answered }) => answered >= 500);
  if (met && (await tried.reasons()).length === 0)
    tried.violations.push('healthz does not report the damage, although requests failed because of it');
  await world.kill();
  await until('agents to end', () => world.agents().length === 0).catch(() => {});
}

/** False: the server found the damage while it started, reported it, and ended. */
async function startsDamaged(tried: Tried): Promise<boolean> {
  try {
    await tried.world.up();
    return true;
  } catch (error) {
    tried.said = String(error).includes('storage_damaged');
    if (tried.said) return false;
    throw error;
  }
}

function overwrite(file: string, at: number): void {
  const fd = openSync(file, 'r+');
  writeSync(fd, Buffer.alloc(PAGE, 0xa5), 0, PAGE, at);
  closeSync(fd);
}

function isWhole(file: string): boolean {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return (db.prepare('PRAGMA integrity_check').get() as { integrity_check: string }).integrity_check === 'ok';
  } catch {
    return false;
  } finally {
    db.close();
  }
}

/** The processor time of a process so far. Linux only; elsewhere 0. */
function cpuSeconds(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [user = 0, system = 0] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13)
      .map(Number);
    return (user + system) / 100;
  } catch {
    return 0;
  }
}
