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
import { agentProcess, type InTheMiddle, killSeries, onThisMachine, ourProcess } from './kill-series.ts';

const ours = onThisMachine();
const PACKAGES = join(import.meta.dirname, '../../../node_modules');
const AGENTS = dirname(agentProgram('complete'));

/** The first process of the agent's container. */
function first({ home }: InTheMiddle): number {
  const all = marked(basename(home.path));
  const agent = all.find(({ parent }) => !all.some(({ pid }) => pid === parent));
  return agent?.parent ?? expect.unreachable('no agent runs');
}

async function client(at: InTheMiddle): Promise<void> {
  const variables = readFileSync(`/proc/${first(at)}/environ`, 'latin1').split('\0');
  const mark = variables.find((variable) => variable.startsWith(`${MARK}=`)) ?? expect.unreachable('it has no mark');
  // One that podman has started for a moment may be gone by now.
  const clients = processesWith('environ', mark).filter((pid) => nameOf(pid) === 'podman');
  expect(clients, 'the client').toHaveLength(1);
  process.kill(clients[0] ?? 0, 'SIGKILL');
}

async function conmon(at: InTheMiddle): Promise<void> {
  const pid = parentOf(first(at));
  expect(readFileSync(`/proc/${pid}/comm`, 'utf8')).toBe('conmon\n');
  process.kill(pid, 'SIGKILL');
}

killSeries({
  name: 'container',
  missing: await whyNoPodman(),
  ...ours,
  agent(model, root) {
    const { env, ...agent } = ours.agent(model, root);
    // It keeps its sessions in the home of its sandbox, and has its cache there.
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
  async running(at) {
    const place = placeOf(at.home.path);
    const containers = [...(await marksOf('podman'))].filter((mark) => starterOf(mark)?.place === place);
    return [...(await ours.running(at)), ...containers];
  },
  victims: { Throughline: ourProcess, 'the agent': agentProcess, "podman's client": client, conmon },
});
