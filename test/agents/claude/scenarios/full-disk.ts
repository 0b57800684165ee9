// The disk of Claude's config directory has no room left.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { ended } from '../../../e2e/support/conversations.ts';
import { ALLOW_BASH, bash, type ClaudeAdapter, ClaudeHome, FIRST, SECOND } from '../../support/claude-home.ts';

const RECALL = 'Which codewords have you seen?';

/** A disk of 16 MB, of its own; skips the test if that is not possible. */
class SmallDisk {
  readonly path = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-disk-')));

  constructor(context: TestContext) {
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m,mode=700', 'tmpfs', this.path], { stdio: 'pipe' });
    } catch (error) {
      rmSync(this.path, { recursive: true });
      context.skip(`no small disk can be mounted here: ${String(error).split('\n').at(-2)}`);
    }
  }

  get filler(): string {
    return join(this.path, 'filler');
  }

  /**
   * A command that takes all room that is left, and does not complain. What it prints does not fit into the last page of any file, which
   * its owner may still fill.
   */
  get fill(): string {
    return `dd if=/dev/zero of=${this.filler} bs=4k >/dev/null 2>&1 || true; head -c 8192 /dev/zero | tr '\\0' x`;
  }

  [Symbol.dispose](): void {
    execFileSync('umount', ['--lazy', this.path]);
    rmSync(this.path, { recursive: true });
  }
}

export function fullDisk(adapter: ClaudeAdapter): void {
  test('before a turn nothing is sent; during a turn, lost entries do not count as kept', async (context) => {
    using disk = new SmallDisk(context);
    const config = join(disk.path, 'config');
    mkdirSync(config);
    writeFileSync(join(config, 'settings.json'), JSON.stringify(ALLOW_BASH));
    await using home = await ClaudeHome.make(adapter, ALLOW_BASH, { CLAUDE_CONFIG_DIR: config });
    const tl = await home.open();
    const chat = tl.conversation('chat', { cwd: home.directory('work') });
    const whole = await chat.ask(FIRST);
    expect(whole.receipt.proof).toBe('proved');

    // Claude answers all the same; only its file lacks what it said.
    const { turn, receipt, reply } = await chat.ask(`${bash(disk.fill)}\nmodel: say ${SECOND}`);
    expect(turn.state).toBe('completed');
    expect(reply).toBe(SECOND);
    expect(receipt).toMatchObject({ before: 'proved', after: 'counted', proof: 'counted' });
    const asked = home.model.requests.length;
    const { turn: next } = await chat.send('Go on.').accepted;
    const { failure } = await ended(tl.engine, next);
    expect(failure).toMatchObject({ code: 'agent_failed', message: expect.stringContaining('nothing was sent') });
    expect(home.model.requests).toHaveLength(asked);

    // There is room again, and Claude is started anew: from our records, for its own file has a hole.
    rmSync(disk.filler);
    await tl.close();
    const again = await (await home.open()).conversation('chat').ask(RECALL);
    expect(again.reply).toBe('I have seen these codewords: amber, birch.');
    expect(again.receipt).toMatchObject({ rung: 'rehydrate', dropped: 0, proof: 'proved' });
  });
}
