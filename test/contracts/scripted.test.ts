import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { scriptedAgent } from '../../src/agents/scripted/adapter.ts';
import type { OpenHow } from '../../src/ports/agent.ts';
import type { Sandboxes } from '../../src/ports/sandbox.ts';
import { PROGRAM } from '../program.ts';
import { disk } from '../temporary-folder.ts';
import { agentContract } from './agent.contract.ts';
import { ask, TestSandboxes, text } from './agent-sandbox.ts';
import { isolatedSandboxes, whyNoBubblewrap } from './sandbox/bubblewrap-given.ts';
import { containerSandboxes, whyNoPodman, writeRootfs } from './sandbox/container-given.ts';

const VARIANTS = {
  'as it comes': {},
  'ids that we assign': { ids: 'assigned' },
  'a new id with every prompt': { ids: 'rotating' },
  'an id only with the first answer': { nameLate: true },
  'nothing stored after the end of the process': { memory: 'process' },
  'storage that cannot be read': { position: false },
  'cannot resume, has no profile without tools': { resume: 'none', noTools: false },
  'tied to its directory, tools only by reopening': { tied: true, toolsInPlace: false },
} as const;

for (const [name, options] of Object.entries(VARIANTS)) {
  agentContract(`scripted, ${name}`, async () => ({
    agent: scriptedAgent({ name: 'scripted', options }),
    sandboxes: new TestSandboxes(),
    tell: (codeword) => text(`The codeword is ${codeword}.`),
    recall: text('Which codewords have you seen?'),
    endless: text('/say Well.\n/hang'),
    tool: (file) => text(`/tool write ${file}`),
    toolThenEndless: (file) => text(`/tool write ${file}\n/say Half of it.\n/hang`),
  }));
}

const FOLDER = join(dirname(PROGRAM), '../dist');
const ISOLATED: Readonly<Record<string, [why: () => Promise<string | null>, (base: string) => Sandboxes]>> = {
  bubblewrap: [async () => whyNoBubblewrap(), (base) => isolatedSandboxes(base, { network: 'none' })],
  'a container': [
    whyNoPodman,
    (base) => {
      writeRootfs(join(base, 'rootfs'));
      return containerSandboxes(base, { network: 'none', binds: [{ path: FOLDER }] });
    },
  ],
};

for (const [name, [why, sandboxes]] of Object.entries(ISOLATED)) {
  test(`scripted in ${name} answers, and remembers when it is resumed`, async (context) => {
    const reason = await why();
    if (reason !== null) context.skip(reason);
    const base = realpathSync(mkdtempSync(join(disk(), 'throughline-scripted-')));
    try {
      const sandbox = await sandboxes(base).open('one', { cwd: null });
      const agent = scriptedAgent({ name: 'scripted' });
      await agent.traits(sandbox);
      const told = async (how: OpenHow, prompt: string) => {
        const opened = await agent.open({ how, sandbox, noTools: false, signal: new AbortController().signal });
        if (!opened.ok) return expect.unreachable(opened.message);
        const { reply } = await ask(opened.session, prompt);
        await opened.session.close();
        return { reply, id: opened.session.id };
      };
      const { id } = await told({ kind: 'new', id: null }, 'The codeword is amber.');
      const { reply } = await told({ kind: 'resume', id: id ?? '' }, 'Which codewords have you seen?');
      expect(reply).toBe('I have seen these codewords: amber.');
    } finally {
      rmSync(base, { recursive: true, force: true });
    }
  });
}
