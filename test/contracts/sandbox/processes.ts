import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { SandboxProcess } from '../../../src/ports/sandbox.ts';
import { type Around, textOf } from './around.ts';

/**
 * A program that ignores the end of its input, SIGHUP and SIGTERM, with such a child in its own process session. Both hold the pipe
 * open, and write their name to it.
 */
const deaf = (pipe: string) =>
  `exec 9>'${pipe}'; trap '' HUP TERM; setsid sh -c 'trap "" HUP TERM; echo child >&9; sleep 100000' & echo leader >&9; sleep 100000`;

export function processesContract(around: () => Around): void {
  programsContract(around);

  /** A pipe that shows who is alive: its reader ends when no process holds it any more. */
  async function pipe(name: string) {
    const { run, start, sandbox } = around();
    const path = `${sandbox.work}/${name}`;
    await run(`mkfifo '${path}'`);
    const reader = await start(`cat '${path}'`);
    const output = reader.stdout[Symbol.asyncIterator]();
    let said = '';
    return {
      path,
      async holds(...names: string[]) {
        while (!names.every((one) => said.includes(one))) {
          const { value, done } = await output.next();
          if (done) expect.unreachable(`it ended after ${JSON.stringify(said)}`);
          said += Buffer.from(value);
        }
      },
      async released() {
        while (!(await output.next()).done);
        expect(await reader.exited).toMatchObject({ code: 0 });
      },
    };
  }

  describe('processes', () => {
    test('another process of ours finds one by its stored identity, and ends it with its children', async () => {
      const held = await pipe('held');
      const child = await around().start(deaf(held.path));
      await held.holds('child', 'leader');
      const stored = JSON.parse(JSON.stringify(child.identity)) as SandboxProcess;
      const others = around().given.sandboxes();
      expect(await others.status(stored)).toBe('alive');
      expect(await others.end(stored)).toBe('ended');
      expect(await others.status(stored)).toBe('dead');
      await held.released();
      await child.exited;
      expect(child.alive).toBe(false);
      expect(await others.end(stored)).toBe('ended');
    });

    test('when one is killed, its children end as well', async () => {
      const held = await pipe('held');
      const child = await around().start(deaf(held.path));
      await held.holds('child', 'leader');
      child.kill('SIGKILL');
      await child.exited;
      await held.released();
      expect(await around().sandboxes.status(child.identity)).toBe('dead');
      expect(await around().sandboxes.end(child.identity)).toBe('ended');
    });

    test('a process that is part of another ends with it, but not the other way round', async () => {
      const { start, sandboxes } = around();
      const [heldByWhole, heldByPart, heldByOther] = [await pipe('whole'), await pipe('part'), await pipe('other')];
      const whole = await start(deaf(heldByWhole.path));
      const part = await start(deaf(heldByPart.path), { partOf: whole.identity });
      const other = await start(deaf(heldByOther.path), { partOf: whole.identity });
      for (const held of [heldByWhole, heldByPart, heldByOther]) await held.holds('child', 'leader');
      part.kill('SIGKILL');
      await part.exited;
      expect([whole.alive, other.alive]).toEqual([true, true]);
      expect(await sandboxes.status(whole.identity)).toBe('alive');
      expect(await sandboxes.end(whole.identity)).toBe('ended');
      for (const held of [heldByWhole, heldByPart, heldByOther]) await held.released();
      await Promise.all([whole.exited, other.exited]);
    });

    test('a process that is part of another ends by itself with its own exit code', async () => {
      const { start } = around();
      const whole = await start('read -r go');
      const part = await start('exit 7', { partOf: whole.identity });
      expect(await part.exited).toEqual({ code: 7, signal: null });
      expect(whole.alive).toBe(true);
    });

    test('after a crash of ours, a process is found by its identity and ended', async () => {
      const held = await pipe('held');
      const [program, ...args] = around().given.starter(['/bin/sh', '-c', deaf(held.path)]);
      const ours = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
      onTestFinished(() => void ours.kill('SIGKILL'));
      const gone = new Promise((resolve) => ours.once('exit', resolve));
      let stored: SandboxProcess | null = null;
      for await (const line of createInterface(ours.stdout)) {
        stored = JSON.parse(line) as SandboxProcess;
        break;
      }
      if (stored === null) expect.unreachable('it started nothing');
      await held.holds('child', 'leader');
      ours.kill('SIGKILL');
      await gone;
      expect(await around().sandboxes.end(stored)).toBe('ended');
      await held.released();
      expect(await around().sandboxes.status(stored)).toBe('dead');
    });
  });
}

function programsContract(around: () => Around): void {
  describe('programs', () => {
    test('are found by name and by path, and other files are not', async () => {
      const { sandbox, run } = around();
      const shell = await sandbox.find('sh');
      expect(shell).toMatch(/^\/.*\/sh$/);
      expect(await sandbox.find(shell ?? '')).toBe(shell);
      await run(`cd '${sandbox.work}' && touch plain && mkdir -p bin && cp "$(command -v sh)" own`);
      expect(await sandbox.find(`${sandbox.work}/own`)).toBe(`${sandbox.work}/own`);
      for (const none of ['no-such-program-here', `${sandbox.work}/plain`, `${sandbox.work}/bin`, './own', 'own', '']) {
        expect(await sandbox.find(none)).toBeNull();
      }
    });

    test('start in the working directory or the given one, with the environment of the sandbox', async () => {
      const { sandbox, run } = around();
      expect(await run('pwd; printf %s "$HOME"')).toBe(`${sandbox.work}\n${sandbox.home}`);
      expect(sandbox.env.PATH).toContain('/');
      const child = await sandbox.spawn(['/bin/sh', '-c', 'pwd; echo "$ADDED"'], { env: { ADDED: 'yes' }, cwd: '/' });
      child.stdin.end();
      expect(await textOf(child.stdout)).toBe('/\nyes\n');
      await child.exited;
    });

    test('that do not exist are agent_unavailable', async () => {
      const unavailable = expect.objectContaining({ code: 'agent_unavailable' });
      const spawned = around().sandbox.spawn(['no-such-program-here'], { env: {} });
      await expect(spawned).rejects.toEqual(unavailable);
    });

    test('run in a sandbox for a probe as well, which is empty and removed afterwards', async () => {
      const { given, sandboxes, sandbox } = around();
      const before = (await sandboxes.list()).ids;
      expect(before).toContain('one');
      let work: string;
      {
        await using probe = await sandboxes.probe();
        work = probe.work;
        expect(probe.host).toBe(sandbox.host);
        if (!given.ownHomes) expect(probe.home).toBe(sandbox.home);
        const child = await probe.spawn(['/bin/sh', '-c', 'pwd; ls -A; touch left'], { env: {} });
        expect(await textOf(child.stdout)).toBe(`${work}\n`);
        await child.exited;
        expect((await sandboxes.list()).ids.toSorted()).toEqual(before.toSorted());
      }
      // In some kinds of sandboxes this folder was never visible.
      const left = await sandbox.folder(work).catch(() => null);
      expect((await left?.stat('')) ?? null).toBeNull();
      await using there = await sandboxes.probe({ cwd: sandbox.work });
      expect(there.work).toBe(sandbox.work);
    });
  });
}
