import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect } from 'vitest';
import { MARK, starterOf } from '../../../src/core/process.ts';
import { placeOf } from '../../../src/host/place.ts';
import { marksOf } from '../../../src/sandboxes/container/engine.ts';
import { containerSettings, whyNoPodman, writeRootfs } from '../../contracts/sandbox/container-given.ts';
import { marked } from '../../faults/harness/marked.ts';
import { agentProgram } from '../../program.ts';
import { nameOf, parentOf, processesWith } from '../support/processes.ts';
import { killAgentProcess, killSeries, killThroughline, onThisMachine, type RunningTurn } from './kill-series.ts';

const local = onThisMachine();
const PACKAGES = join(import.meta.dirname, '../../../node_modules');
const AGENTS = dirname(agentProgram('complete'));

/** The pid of the first process of the container: the parent of the agent. */
function firstProcess({ home }: RunningTurn): number {
  const all = marked(basename(home.path));
  const agent = all.find(({ parent }) => !all.some(({ pid }) => pid === parent));
  return agent?.parent ?? expect.unreachable('no agent runs');
}

async function killPodmanClient(turn: RunningTurn): Promise<void> {
  const variables = readFileSync(`/proc/${firstProcess(turn)}/environ`, 'latin1').split('\0');
  const mark =
    variables.find((variable) => variable.startsWith(`${MARK}=`)) ??
    expect.unreachable('the first process has no mark');
  // `nameOf` gives null for a short-lived process of podman that has ended meanwhile.
  const clients = processesWith('environ', mark).filter((pid) => nameOf(pid) === 'podman');
  expect(clients, 'the client').toHaveLength(1);
  process.kill(clients[0] ?? 0, 'SIGKILL');
}

/** conmon is the monitor of the container, and the parent of its first process. */
async function killConmon(turn: RunningTurn): Promise<void> {
  const pid = parentOf(firstProcess(turn));
  expect(readFileSync(`/proc/${pid}/comm`, 'utf8')).toBe('conmon\n');
  process.kill(pid, 'SIGKILL');
}

killSeries({
  name: 'container',
  whySkipped: await whyNoPodman(),
  ...local,
  agent(model, root) {
    const { env, ...agent } = local.agent(model, root);
    // Without HOME, the agent stores its sessions in the home of its sandbox. The compile cache of the tests is not in the container.
    const { HOME: _, NODE_COMPILE_CACHE: __, ...others } = env;
    return { ...agent, env: others };
  },
  settings: ({ url }, root) => ({
    sandbox: containerSettings(writeRootfs(join(root, 'rootfs')), {
      network: 'model',
      allow: [new URL(url).host],
      binds: [{ path: PACKAGES }, { path: AGENTS }],
    }),
  }),
  async running(turn) {
    const place = placeOf(turn.home.path);
    const containers = [...(await marksOf('podman'))].filter((mark) => starterOf(mark)?.place === place);
    return [...(await local.running(turn)), ...containers];
  },
  kills: {
    Throughline: killThroughline,
    'the agent': killAgentProcess,
    "podman's client": killPodmanClient,
    conmon: killConmon,
  },
});
