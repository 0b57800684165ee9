import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sandboxAt } from '../../../test/contracts/agent-sandbox.ts';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import { acpAgent } from './adapter.ts';
import { capabilitiesOf } from './connection/capabilities.ts';
import { AgentMemory, fingerprintOf } from './known/memory.ts';

test.for([
  ['agent', 0],
  ['unknown', 1],
] as const)(
  'the storage of the agent "%s" is named after %i searches for its program, which are slow on another machine',
  async ([name, looks]) => {
    const root = temporaryFolder();
    const [memory, file] = [join(root, 'learnt'), join(root, 'agent.js')];
    writeFileSync(file, '');
    const command: [string, string] = [process.execPath, file];
    const plain = sandboxAt(root);
    let found = 0;
    const sandbox: OpenSandbox = {
      ...plain,
      find: (program) => {
        found += 1;
        return plain.find(program);
      },
    };
    const info = name === 'unknown' ? {} : { agentInfo: { name, version: '1' } };
    new AgentMemory(memory, await fingerprintOf(command, plain)).saw(
      capabilitiesOf({ ...info, agentCapabilities: {} }),
    );
    const agent = acpAgent({
      name: 'a',
      command,
      options: {},
      installed: root,
      memory,
      clock: { now: () => 0, monotonic: () => 0 },
    });
    await agent.traits(sandbox);
    found = 0;
    const storage = await agent.storage?.(sandbox);
    expect([storage, found]).toEqual([expect.stringMatching(name === 'unknown' ? /agent\.js:/ : /^acp:agent:/), looks]);
  },
);
