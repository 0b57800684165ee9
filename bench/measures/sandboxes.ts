import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { acpAgent } from '../../src/agents/acp/adapter.ts';
import { systemClock } from '../../src/host/clock.ts';
import { processesAt } from '../../src/host/processes.ts';
import type { Engine } from '../../src/ports/engine.ts';
import type { Sandboxes } from '../../src/ports/sandbox.ts';
import { sshSandboxes } from '../../src/sandboxes/ssh/ssh-sandboxes.ts';
import { isolatedSandboxes, whyNoBubblewrap } from '../../test/contracts/sandbox/bubblewrap-given.ts';
import { containerSandboxes, whyNoPodman, writeRootfs } from '../../test/contracts/sandbox/container-given.ts';
import { startSshd, whyNoSshd } from '../../test/contracts/sandbox/sshd.ts';
import { sandboxesOf, VENDORS } from '../../test/contracts/sandbox/vendor-given.ts';
import { Service, whyNoDoubles } from '../../test/vendors/double/service.ts';
import type { Finding, Measure } from '../finding.ts';
import { AGENT_COMMAND } from '../support/acp-client.ts';
import { BenchHome } from '../support/bench-home.ts';
import { median } from '../support/statistics.ts';
import { TurnWatch } from '../support/turn-watch.ts';

/** An answer that takes half a second. */
const SLOWLY = 'chunks 20 25ms';

interface Kind {
  readonly name: string;
  /** Left out: directories, which the others are compared with. */
  readonly sandboxes?: (root: string) => Sandboxes;
  /** The most that it should add to the start of an agent. Null: there is no target. */
  readonly coldMs: number | null;
  /** How often a start is measured, where it takes long. Left out: 20 times. */
  readonly starts?: number;
}

/** The kinds of sandboxes that are available here. Missing ones are reported. */
async function kinds(used: AsyncDisposableStack): Promise<Kind[]> {
  const makers: [why: () => string | null | Promise<string | null>, make: () => Kind[] | Promise<Kind[]>][] = [
    [whyNoBubblewrap, bubblewrap],
    [whyNoPodman, () => containers(used)],
    [whyNoSshd, () => ssh(used)],
    [whyNoDoubles, () => rented(used)],
  ];
  const all: Kind[] = [{ name: 'directory', coldMs: null }];
  for (const [why, make] of makers) {
    const reason = await why();
    if (reason === null) all.push(...(await make()));
    else console.error(`not measured: ${reason}`);
  }
  return all;
}

const ALLOW = ['api.example.org'];

function bubblewrap(): Kind[] {
  return [
    { name: 'bubblewrap', sandboxes: (root) => isolatedSandboxes(root, { network: 'none' }), coldMs: 30 },
    {
      name: 'bubblewrap with the network of the model',
      sandboxes: (root) => isolatedSandboxes(root, { network: 'model', allow: ALLOW }),
      coldMs: null,
    },
  ];
}

function containers(used: AsyncDisposableStack): Kind[] {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-bench-')));
  used.defer(() => rmSync(folder, { recursive: true, force: true }));
  writeRootfs(join(folder, 'rootfs'));
  const binds = [{ path: dirname(AGENT_COMMAND[1]) }];
  return [
    {
      name: 'container',
      sandboxes: (root) => containerSandboxes(folder, { network: 'none', binds }, [], root),
      coldMs: 400,
    },
    {
      name: 'container with the network of the model',
      sandboxes: (root) => containerSandboxes(folder, { network: 'model', allow: ALLOW, binds }, [], root),
      coldMs: null,
    },
  ];
}

async function ssh(used: AsyncDisposableStack): Promise<Kind[]> {
  const { settings } = used.use(await startSshd());
  return [
    {
      name: 'ssh, on an open connection',
      sandboxes: () => sshSandboxes({ ...settings, processes: processesAt(settings.place) }),
      coldMs: 150,
    },
  ];
}

/** Every conversation has its own machine, so a start includes creating one. This is the time of the test double, not of the vendor. */
function rented(used: AsyncDisposableStack): Kind[] {
  return VENDORS.map((vendor) => {
    const service = new Service(realpathSync(mkdtempSync(join(tmpdir(), 'throughline-machines-'))));
    used.defer(() => service.dispose());
    const sandboxes = () => sandboxesOf(vendor, service.root);
    return { name: `a double of ${vendor}`, sandboxes, coldMs: null, starts: 5 };
  });
}

/** The same agent in every kind of sandbox. They alternate, each in its own data home. */
const measure: Measure = async ({ quick }) => {
  await using homes = new AsyncDisposableStack();
  const all: InSandbox[] = [];
  for (const kind of await kinds(homes)) all.push(homes.use(await InSandbox.open(kind)));
  for (const one of all) await one.warmUp();
  const starts = quick ? 2 : 20;
  for (let i = 0; i < starts; i += 1) {
    for (const one of all) if (i < (one.kind.starts ?? starts)) await one.coldTurn();
  }
  for (let i = 0; i < (quick ? 1 : 20); i += 1) for (const one of all) await one.warmTurn();
  const [directory, ...others] = all;
  if (directory === undefined) throw new Error('nothing was measured');
  return [startOf(directory), ...others.flatMap((one) => beside(one, directory))];
};

function startOf({ cold }: InSandbox): Finding {
  return {
    name: 'a first turn in a directory: to the first of the answer, p50',
    value: median(cold),
    unit: 'ms',
    target: null,
    note: 'a new conversation: the sandbox is made, the agent starts',
  };
}

function beside({ kind, warm, cold }: InSandbox, directory: InSandbox): Finding[] {
  const [ours, plain] = [median(warm), median(directory.warm)];
  const [started, before] = [median(cold), median(directory.cold)];
  return [
    {
      name: `${kind.name}: a warm turn whose answer takes half a second ÷ the same in a directory, p50`,
      value: ours / plain,
      unit: '×',
      target: { kind: 'must', most: 1.05 },
      note: `${ours.toFixed(0)} and ${plain.toFixed(0)} ms; 20 pieces with 25 ms before each`,
    },
    {
      name: `${kind.name}: added to the start of an agent, p50`,
      value: started - before,
      unit: 'ms',
      target: kind.coldMs === null ? null : { kind: 'aim', most: kind.coldMs },
      note:
        `${started.toFixed(0)} ms to the first of the answer in a new conversation, ${before.toFixed(0)} in a directory; ` +
        `the shortest of all ${Math.min(...cold).toFixed(0)} and ${Math.min(...directory.cold).toFixed(0)} ms`,
    },
  ];
}

class InSandbox implements AsyncDisposable {
  readonly kind: Kind;
  readonly warm: number[] = [];
  readonly cold: number[] = [];
  readonly #home: BenchHome;
  readonly #engine: Engine;

  static async open(kind: Kind): Promise<InSandbox> {
    const home = new BenchHome();
    const memory = join(home.path, 'memory');
    mkdirSync(memory);
    const agent = acpAgent({
      name: 'acp',
      command: AGENT_COMMAND,
      options: {},
      installed: home.path,
      memory,
      clock: systemClock,
    });
    const { engine } = await home.open({ agent, ...(kind.sandboxes && { sandboxes: kind.sandboxes }) });
    return new InSandbox(kind, home, engine);
  }

  private constructor(kind: Kind, home: BenchHome, engine: Engine) {
    this.kind = kind;
    this.#home = home;
    this.#engine = engine;
  }

  async warmUp(): Promise<void> {
    await this.#engine.ensure({ key: 'warm' });
    for (let i = 0; i < 3; i += 1) await this.#timed('warm', 'Hello.');
  }

  async warmTurn(): Promise<void> {
    this.warm.push((await this.#timed('warm', SLOWLY)).ended);
  }

  async coldTurn(): Promise<void> {
    const { id } = await this.#engine.ensure({});
    this.cold.push((await this.#timed(id, 'Hello.')).first);
    await this.#engine.kill(id);
  }

  async #timed(conversation: string, prompt: string): Promise<{ first: number; ended: number }> {
    const { lastSeq } = await this.#engine.conversation(conversation);
    const watch = new TurnWatch(this.#engine, conversation, lastSeq);
    const start = performance.now();
    const { turn } = await this.#engine.submit(conversation, prompt);
    const first = (await watch.first(turn.id)) - start;
    const ended = (await watch.ended(turn.id)) - start;
    await watch.stop();
    return { first, ended };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#home[Symbol.asyncDispose]();
  }
}

export default measure;
