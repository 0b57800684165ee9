import { scriptedAgent } from '../../src/agents/scripted/adapter.ts';
import { agentContract } from './agent.contract.ts';
import { TestSandboxes, text } from './agent-sandbox.ts';

const VARIANTS = {
  'as it comes': {},
  'ids that we assign': { ids: 'assigned' },
  'a new id with every prompt': { ids: 'rotating' },
  'a name only with the first answer': { nameLate: true },
  'nothing outlives the process': { memory: 'process' },
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
