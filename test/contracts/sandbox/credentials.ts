import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type AgentCredentials, withCredentials } from '../../../src/agents/shared/credentials.ts';
import type { Credentials } from '../../../src/core/sandbox/credentials.ts';
import type { Agent } from '../../../src/ports/agent.ts';
import type { Child, OpenSandbox } from '../../../src/ports/sandbox.ts';
import { type Around, textOf } from './around.ts';

/** In every kind of sandbox, the credentials of an agent reach its program, and nothing else sees them. */
export function credentialsContract(around: () => Around): void {
  /** Opens a session of an agent whose program is a shell command. */
  async function opened(values: Record<string, Credentials>, owner: string, script: string) {
    const { sandbox } = around();
    const started: { child: Child; sandbox: OpenSandbox }[] = [];
    const credentials: AgentCredentials = { perOwner: true, of: async (who) => values[who ?? ''] ?? {} };
    const agent = withCredentials(shellAgent(script, started), credentials);
    await agent.open({
      ...{ how: { kind: 'new', id: null }, noTools: false, signal: new AbortController().signal },
      sandbox: { ...sandbox, owner },
    });
    const [{ child, sandbox: handed } = expect.unreachable('nothing was started')] = started;
    return { handed, ...read(child) };
  }

  describe('credentials', () => {
    test('of each owner are in the environment of the agent’s program, and in no argument of any process', async () => {
      const [anns, bobs] = [randomUUID(), randomUUID()];
      const values = { ann: { AGENT_KEY: anns }, bob: { AGENT_KEY: bobs } };
      const ready = 'echo ready; read -r line; printf %s "$AGENT_KEY"';
      const [ann, bob] = await Promise.all(['ann', 'bob'].map((owner) => opened(values, owner, ready)));
      if (ann === undefined || bob === undefined) expect.unreachable();
      await Promise.all([ann.line(), bob.line()]);
      const said = argumentsOfAll();
      expect(said).toContain('read -r line'); // this shows that the arguments of such programs can be seen
      expect(said.includes(anns) || said.includes(bobs)).toBe(false);
      // A command that the agent starts does not get them.
      const command = await ann.handed.spawn(['/bin/sh', '-c', 'printf "<%s>" "$AGENT_KEY"'], {
        ...{ env: {}, partOf: ann.child.identity },
      });
      expect(await read(command).rest()).toBe('<>');
      expect(await Promise.all([ann.rest(), bob.rest()])).toEqual([anns, bobs]);
    });

    test('in a file are written into the home of the sandbox when they have changed, and refused where the home is a person’s', async () => {
      const show = 'cat "$HOME/.agent/login"; stat -c %a "$HOME/.agent/login"; echo renewed > "$HOME/.agent/login"';
      const values = (value: string) => ({ ann: { '~/.agent/login': value } });
      if (!around().sandbox.ownHome) {
        const refused = opened(values('first\n'), 'ann', show);
        const message = expect.stringContaining('only that of a person');
        await expect(refused).rejects.toMatchObject({ code: 'agent_unavailable', message });
        return;
      }
      const seen = async (value: string) => (await opened(values(value), 'ann', show)).rest();
      expect(await seen('first\n')).toBe('first\n600\n');
      expect(await seen('first\n')).toBe('renewed\n600\n');
      expect(await seen('second\n')).toBe('second\n600\n');
    });
  });
}

/** Reads the output of a program in two parts: its first line, and what it prints after its input was closed. */
function read(child: Child) {
  const output = child.stdout[Symbol.asyncIterator]();
  const errors = textOf(child.stderr);
  let said = '';
  const more = async () => {
    const { value, done } = await output.next();
    if (!done) said += Buffer.from(value).toString();
    return !done;
  };
  return {
    child,
    async line() {
      while (!said.includes('\n')) if (!(await more())) expect.unreachable(`it ended after ${said}`);
      said = said.slice(said.indexOf('\n') + 1);
    },
    async rest() {
      child.stdin.end();
      while (await more());
      await Promise.all([child.exited, errors]);
      return said;
    },
  };
}

/** An agent whose program is the script. It can do nothing else. */
function shellAgent(script: string, started: { child: Child; sandbox: OpenSandbox }[]): Agent {
  const nothing = async () => null;
  return {
    ...{ name: 'shell', traits: () => expect.unreachable(), position: nothing, tail: nothing },
    async open({ sandbox }) {
      started.push({ sandbox, child: await sandbox.spawn(['/bin/sh', '-c', script], { env: {} }) });
      return { ok: false, reason: 'refused', message: 'it is a shell' };
    },
  };
}

/** The arguments of every process of this machine. */
function argumentsOfAll(): string {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      } catch {
        return ''; // it has ended
      }
    })
    .join('\n');
}
